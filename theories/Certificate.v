(* Why a certificate is a proof (docs/certificates.md), over integer cells and integer values.

   A point gives every variable a cell. A factor is a list of entries; an entry holds of a point if all its literals do.
   For any messages whatever, the bound of a leaf is at least the weighted sum that it bounds; and a tree of cuts all of
   whose leaves have a bound below zero leaves no point of the box that satisfies the rows. *)

From Coq Require Import ZArith List Bool Lia.
Import ListNotations.
Open Scope Z_scope.

Definition point := nat -> Z.

(* The cells low..high of a variable. *)
Record range := { variable : nat; low : Z; high : Z }.
Definition inside (r : range) (x : point) : Prop := low r <= x (variable r) <= high r.

Record entry := { literals : list range; value : Z }.
Definition holds (e : entry) (x : point) : Prop := Forall (fun r => inside r x) (literals e).

Definition box := list range.
Definition within (b : box) (x : point) : Prop := Forall (fun r => inside r x) b.

Fixpoint sum (l : list Z) : Z :=
  match l with [] => 0 | a :: rest => a + sum rest end.

Lemma sum_le : forall (A : Type) (f g : A -> Z) (l : list A),
  (forall a, In a l -> f a <= g a) -> sum (map f l) <= sum (map g l).
Proof.
  intros A f g l. induction l as [|a l IH]; simpl; intros H; [lia|].
  assert (f a <= g a) by (apply H; auto).
  assert (sum (map f l) <= sum (map g l)) by (apply IH; intros; apply H; auto).
  lia.
Qed.

Lemma sum_plus : forall (A : Type) (f g : A -> Z) (l : list A),
  sum (map (fun a => f a + g a) l) = sum (map f l) + sum (map g l).
Proof. intros A f g l. induction l; simpl; lia. Qed.

Lemma sum_minus : forall (A : Type) (f g : A -> Z) (l : list A),
  sum (map (fun a => f a - g a) l) = sum (map f l) - sum (map g l).
Proof. intros A f g l. induction l; simpl; lia. Qed.

Lemma sum_zero : forall (A : Type) (l : list A), sum (map (fun _ => 0) l) = 0.
Proof. intros A l. induction l; simpl; lia. Qed.

Lemma sum_swap : forall (A B : Type) (f : A -> B -> Z) (l : list A) (m : list B),
  sum (map (fun a => sum (map (fun b => f a b) m)) l) = sum (map (fun b => sum (map (fun a => f a b) l)) m).
Proof.
  intros A B f l m. induction l as [|a l IH]; simpl.
  - symmetry. apply sum_zero.
  - rewrite IH. symmetry. apply sum_plus.
Qed.

Section Leaf.
  (* Numbers of the factors and of the variables, and what the rows, weighed and added up, say of a point. *)
  Variable factors : list nat.
  Variable variables : list nat.
  Variable entries : nat -> list entry.
  Variable unary : nat -> Z -> Z.
  Variable constant : Z.
  (* Messages: of a factor, about a variable, in a cell. Nothing is asked of them. *)
  Variable message : nat -> nat -> Z -> Z.

  (* What each factor and each variable may contribute at most in a box; the checker computes both by looking. *)
  Variable best_entry : nat -> Z.
  Variable best_cell : nat -> Z.
  Variable b : box.

  Definition messages_at (t : nat) (x : point) : Z := sum (map (fun v => message t v (x v)) variables).
  Definition rest (v : nat) (k : Z) : Z := unary v k - sum (map (fun t => message t v k) factors).

  Hypothesis entry_bound : forall t e x, In t factors -> In e (entries t) -> within b x -> holds e x ->
    value e + messages_at t x <= best_entry t.
  Hypothesis cell_bound : forall v x, In v variables -> within b x -> rest v (x v) <= best_cell v.

  (* The value of a factor at a point is that of the entry which holds it. *)
  Variable reached : nat -> point -> Z.
  Hypothesis covered : forall t x, In t factors -> within b x ->
    exists e, In e (entries t) /\ holds e x /\ value e = reached t x.

  Definition weighted (x : point) : Z :=
    constant + sum (map (fun t => reached t x) factors) + sum (map (fun v => unary v (x v)) variables).

  Definition bound : Z := constant + sum (map best_entry factors) + sum (map best_cell variables).

  Theorem weighted_at_most_bound : forall x, within b x -> weighted x <= bound.
  Proof.
    intros x inside_box. unfold weighted, bound.
    assert (F : sum (map (fun t => reached t x + messages_at t x) factors) <= sum (map best_entry factors)).
    { apply sum_le. intros t member. destruct (covered t x member inside_box) as [e [chosen [here equal]]].
      rewrite <- equal. apply entry_bound; auto. }
    assert (V : sum (map (fun v => rest v (x v)) variables) <= sum (map best_cell variables)).
    { apply sum_le. intros v member. apply cell_bound; auto. }
    rewrite sum_plus in F. unfold rest in V. rewrite sum_minus in V.
    unfold messages_at in F. rewrite sum_swap in F. lia.
  Qed.
End Leaf.

(* Rows that hold, weighed by numbers of at least 0, are at least 0 together. *)
Lemma weighted_rows : forall (weights slacks : list Z),
  Forall (fun w => 0 <= w) weights -> Forall (fun s => 0 <= s) slacks ->
  0 <= sum (map (fun p => fst p * snd p) (combine weights slacks)).
Proof.
  intros weights. induction weights as [|w ws IH]; intros [|s ss] W S; simpl; try lia.
  inversion W; inversion S; subst. assert (0 <= w * s) by (apply Z.mul_nonneg_nonneg; assumption).
  specialize (IH ss). assert (0 <= sum (map (fun p => fst p * snd p) (combine ws ss))) by (apply IH; assumption).
  lia.
Qed.

(* Trees of cuts. `refuted` is what the checker establishes of a leaf: no point of its box satisfies the rows. *)
Inductive tree :=
| Leaf : tree
| Cut : nat -> Z -> tree -> tree -> tree.

Definition point_set := point -> Prop.

Fixpoint closes (refuted : point_set -> Prop) (t : tree) (s : point_set) : Prop :=
  match t with
  | Leaf => refuted s
  | Cut v k below above =>
      closes refuted below (fun x => s x /\ x v < k) /\ closes refuted above (fun x => s x /\ k <= x v)
  end.

Theorem tree_of_cuts_is_sound : forall (rows_hold : point_set) (refuted : point_set -> Prop) t s,
  (forall s', refuted s' -> forall x, s' x -> ~ rows_hold x) ->
  closes refuted t s -> forall x, s x -> ~ rows_hold x.
Proof.
  intros rows_hold refuted t. induction t as [|v k below IHb above IHa]; simpl; intros s leaf closed x member.
  - eapply leaf; eauto.
  - destruct closed as [cb ca]. destruct (Z_lt_le_dec (x v) k).
    + eapply IHb; eauto. simpl. auto.
    + eapply IHa; eauto. simpl. auto.
Qed.

(* A leaf with a bound below zero refutes its box, if the weighted sum of what the rows have left is what it bounds. *)
Theorem leaf_is_sound : forall (slacks : point -> list Z) (weights : list Z) (s : point_set) (most : Z),
  Forall (fun w => 0 <= w) weights ->
  (forall x, s x -> sum (map (fun p => fst p * snd p) (combine weights (slacks x))) <= most) ->
  most < 0 ->
  forall x, s x -> ~ Forall (fun v => 0 <= v) (slacks x).
Proof.
  intros slacks weights s most W B negative x member holds_all.
  specialize (B x member). assert (H := weighted_rows weights (slacks x) W holds_all). lia.
Qed.

Print Assumptions weighted_at_most_bound.
Print Assumptions tree_of_cuts_is_sound.
Print Assumptions leaf_is_sound.
