(* The cell of a value: how many cuts it has reached. *)

From Coq Require Import ZArith QArith List Bool Lia.
From Treesens Require Values.
Import ListNotations.
Open Scope Z_scope.

(* Cell j holds cuts[j-1] <= z < cuts[j]; one more cell, after them all, stands for a missing value. *)
Fixpoint cell (l : list Z) (z : Z) : Z :=
  match l with [] => 0 | c :: rest => if z <? c then 0 else 1 + cell rest z end.

Definition missing_cell (l : list Z) : Z := Z.of_nat (length l) + 1.

Fixpoint ascending (l : list Z) : bool :=
  match l with c :: (d :: _) as rest => (c <? d) && ascending rest | _ => true end.

Definition is_cut (l : list Z) (c : Z) : bool := existsb (Z.eqb c) l.

(* The greatest whole number of units at most a rational. *)
Definition floor (u : positive) (q : Q) : Z := (Qnum q * Zpos u) / Zpos (Qden q).

Definition cell_of_value (u : positive) (l : list Z) (x : Values.value) : Z :=
  match x with None => missing_cell l | Some q => cell l (floor u q) end.

Lemma floor_spec : forall u q c, (c # u <= q)%Q <-> c <= floor u q.
Proof.
  intros u [n d] c. unfold Qle, floor. simpl. split; intros H.
  - apply Z.div_le_lower_bound; lia.
  - assert (Zpos d * ((n * Zpos u) / Zpos d) <= n * Zpos u) by (apply Z.mul_div_le; lia). nia.
Qed.

Lemma Qle_bool_floor : forall u q c, Qle_bool (c # u) q = (c <=? floor u q).
Proof.
  intros. apply eq_true_iff_eq. rewrite Qle_bool_iff, Z.leb_le. apply floor_spec.
Qed.

Lemma floor_mono : forall u p q, (p <= q)%Q -> floor u p <= floor u q.
Proof.
  intros u p q H. apply floor_spec. apply Qle_trans with p; auto. apply floor_spec. lia.
Qed.

Lemma floor_at : forall u c, floor u (c # u) = c.
Proof. intros. unfold floor. simpl. apply Z.div_mul. lia. Qed.

Lemma floor_eq : forall u q c, (q == c # u)%Q -> floor u q = c.
Proof.
  intros u q c H. rewrite <- (floor_at u c).
  apply Z.le_antisymm; apply floor_mono; rewrite H; apply Qle_refl.
Qed.

Lemma cell_of_same : forall u l x y, Values.same_value x y -> cell_of_value u l x = cell_of_value u l y.
Proof.
  intros u l [a|] [b|] H; simpl in H; try contradiction; [|reflexivity]. simpl. f_equal.
  apply Z.le_antisymm; apply floor_mono; rewrite H; apply Qle_refl.
Qed.

Lemma cell_range : forall l z, 0 <= cell l z <= Z.of_nat (length l).
Proof.
  induction l as [|c l IH]; cbn [cell length]; intros z; [lia|]. specialize (IH z). destruct (z <? c); lia.
Qed.

Lemma cell_mono : forall l a b, a <= b -> cell l a <= cell l b.
Proof.
  induction l as [|c l IH]; cbn [cell]; intros a b H; [lia|]. specialize (IH a b H).
  assert (R := cell_range l b). destruct (Z.ltb_spec a c); destruct (Z.ltb_spec b c); lia.
Qed.

Lemma ascending_tail : forall c l, ascending (c :: l) = true -> ascending l = true /\ (forall d, In d l -> c < d).
Proof.
  intros c l. revert c. induction l as [|d l IH]; intros c H; [split; [reflexivity|contradiction]|].
  simpl in H. apply andb_true_iff in H as [C H]. apply Z.ltb_lt in C. split; [exact H|].
  destruct (IH d H) as [_ T]. intros e [->|I]; [assumption|]. specialize (T e I). lia.
Qed.

(* At a cut, values and cells are in the same order. *)
Lemma cell_at_cut : forall l c z, ascending l = true -> In c l -> (z <? c) = (cell l z <? cell l c).
Proof.
  induction l as [|d l IH]; intros c z A I; [contradiction|]. apply ascending_tail in A as [A T].
  assert (R := cell_range l c). assert (Rz := cell_range l z). cbn [cell]. destruct I as [->|I].
  - rewrite Z.ltb_irrefl. destruct (Z.ltb_spec z c).
    + symmetry. apply Z.ltb_lt. lia.
    + symmetry. apply Z.ltb_ge. assert (M := cell_mono l c z). lia.
  - specialize (T c I). rewrite (proj2 (Z.ltb_ge c d)) by lia. rewrite (IH c z A I).
    destruct (Z.ltb_spec z d).
    + rewrite <- (IH c z A I). transitivity true; [apply Z.ltb_lt; lia|symmetry; apply Z.ltb_lt; lia].
    + apply eq_true_iff_eq. rewrite !Z.ltb_lt. lia.
Qed.

Lemma is_cut_in : forall l c, is_cut l c = true -> In c l.
Proof. intros l c H. apply existsb_exists in H as [d [I E]]. apply Z.eqb_eq in E. subst. assumption. Qed.
