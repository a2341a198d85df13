(* Sets of cells, as runs low..high with both ends in them. What is proved is that nothing is lost: a result may hold more. *)

From Coq Require Import ZArith List Bool Lia.
Import ListNotations.
Open Scope Z_scope.

Definition run := (Z * Z)%type.
Definition cells := list run.

Definition in_run (k : Z) (r : run) : bool := (fst r <=? k) && (k <=? snd r).
Definition member (k : Z) (s : cells) : bool := existsb (in_run k) s.

Lemma member_in : forall k s, member k s = true <-> exists r, In r s /\ fst r <= k <= snd r.
Proof.
  intros. unfold member, in_run. rewrite existsb_exists. split; intros [r [I H]]; exists r; split; auto.
  - apply andb_true_iff in H. rewrite !Z.leb_le in H. exact H.
  - apply andb_true_iff. rewrite !Z.leb_le. exact H.
Qed.

(* The run low..high, if it holds a cell. *)
Definition piece (low high : Z) : cells := if low <=? high then [(low, high)] else [].

Lemma in_piece : forall low high k, low <= k <= high -> In (low, high) (piece low high).
Proof. intros. unfold piece. destruct (Z.leb_spec low high); [left; reflexivity|lia]. Qed.

Definition is_empty (s : cells) : bool := match s with [] => true | _ => false end.

Lemma member_not_empty : forall k s, member k s = true -> is_empty s = false.
Proof. intros k [|r s]; simpl; [discriminate|reflexivity]. Qed.

(* What two sets have in common. *)
Definition meet (a b : cells) : cells :=
  flat_map (fun r => flat_map (fun q => piece (Z.max (fst r) (fst q)) (Z.min (snd r) (snd q))) b) a.

Lemma member_meet : forall k a b, member k a = true -> member k b = true -> member k (meet a b) = true.
Proof.
  intros k a b A B. apply member_in in A as [r [R I]]. apply member_in in B as [q [Q J]].
  apply member_in. exists (Z.max (fst r) (fst q), Z.min (snd r) (snd q)). split; [|simpl; lia].
  apply in_flat_map. exists r. split; auto. apply in_flat_map. exists q. split; auto. apply in_piece with k. lia.
Qed.

(* The cells of a set outside of a run, and outside of another set. *)
Definition outside (a : cells) (q : run) : cells :=
  flat_map (fun r => piece (fst r) (Z.min (snd r) (fst q - 1)) ++ piece (Z.max (fst r) (snd q + 1)) (snd r)) a.

Definition minus (a b : cells) : cells := fold_left outside b a.

Lemma member_outside : forall k a q, member k a = true -> in_run k q = false -> member k (outside a q) = true.
Proof.
  intros k a q A Q. apply member_in in A as [r [R I]]. apply andb_false_iff in Q.
  rewrite !Z.leb_gt in Q. apply member_in. destruct Q as [Q|Q].
  - exists (fst r, Z.min (snd r) (fst q - 1)). split; [|simpl; lia].
    apply in_flat_map. exists r. split; auto. apply in_or_app. left. apply in_piece with k. lia.
  - exists (Z.max (fst r) (snd q + 1), snd r). split; [|simpl; lia].
    apply in_flat_map. exists r. split; auto. apply in_or_app. right. apply in_piece with k. lia.
Qed.

Lemma member_minus : forall k b a, member k a = true -> member k b = false -> member k (minus a b) = true.
Proof.
  unfold minus. induction b as [|q b IH]; simpl; intros a A B; auto.
  apply orb_false_iff in B as [Q B]. apply IH; auto. apply member_outside; auto.
Qed.

(* Runs in order, with gaps between them: what is the same set is the same list. *)
Fixpoint insert (low high : Z) (s : cells) : cells :=
  match s with
  | [] => [(low, high)]
  | (a, b) :: rest =>
      if high + 1 <? a then (low, high) :: s
      else if b + 1 <? low then (a, b) :: insert low high rest
      else insert (Z.min low a) (Z.max high b) rest
  end.

Definition tidy (s : cells) : cells :=
  fold_right (fun r t => if fst r <=? snd r then insert (fst r) (snd r) t else t) [] s.

Lemma member_insert : forall k s low high, low <= k <= high \/ member k s = true -> member k (insert low high s) = true.
Proof.
  assert (N : forall k low high, low <= k <= high -> in_run k (low, high) = true)
    by (intros; unfold in_run; simpl; rewrite andb_true_iff, !Z.leb_le; assumption).
  induction s as [|[a b] s IH]; simpl; intros low high H.
  - destruct H as [H|H]; [rewrite N by assumption; reflexivity|discriminate].
  - assert (C : low <= k <= high \/ a <= k <= b \/ member k s = true).
    { destruct H as [H|H]; auto. apply orb_true_iff in H as [H|H]; auto.
      unfold in_run in H. simpl in H. rewrite andb_true_iff, !Z.leb_le in H. auto. }
    destruct (Z.ltb_spec (high + 1) a); [|destruct (Z.ltb_spec (b + 1) low)].
    + simpl. destruct C as [C|[C|C]]; rewrite ?C, ?(N k low high C), ?(N k a b C), ?orb_true_r; reflexivity.
    + simpl. destruct C as [C|[C|C]]; [rewrite IH by auto|rewrite (N k a b C)|rewrite IH by auto];
        rewrite ?orb_true_r; reflexivity.
    + apply IH. destruct C as [C|[C|C]]; [left; lia|left; lia|auto].
Qed.

Lemma member_tidy : forall k s, member k s = true -> member k (tidy s) = true.
Proof.
  induction s as [|[a b] s IH]; simpl; intros H; [discriminate|]. apply orb_true_iff in H as [H|H].
  - unfold in_run in H. simpl in H. rewrite andb_true_iff, !Z.leb_le in H.
    destruct (Z.leb_spec a b); [|lia]. apply member_insert. auto.
  - destruct (a <=? b); auto. apply member_insert. auto.
Qed.

Lemma member_app : forall k a b, member k (a ++ b) = member k a || member k b.
Proof. intros. unfold member. apply existsb_app. Qed.

(* The greatest and the least cell. *)
Fixpoint highest (s : cells) : Z :=
  match s with [] => 0 | [r] => snd r | r :: rest => Z.max (snd r) (highest rest) end.
Fixpoint lowest (s : cells) : Z :=
  match s with [] => 0 | [r] => fst r | r :: rest => Z.min (fst r) (lowest rest) end.

Lemma member_bounds : forall k s, member k s = true -> lowest s <= k <= highest s.
Proof.
  induction s as [|r s IH]; [discriminate|]. intros H.
  simpl in H. apply orb_true_iff in H.
  assert (E : in_run k r = true -> fst r <= k <= snd r)
    by (unfold in_run; rewrite andb_true_iff, !Z.leb_le; auto).
  destruct s as [|q s].
  - simpl in *. destruct H as [H|H]; [auto|discriminate].
  - change (lowest (r :: q :: s)) with (Z.min (fst r) (lowest (q :: s))).
    change (highest (r :: q :: s)) with (Z.max (snd r) (highest (q :: s))).
    destruct H as [H|H]; [specialize (E H)|specialize (IH H)]; lia.
Qed.

Definition up_to (s : cells) (h : Z) : cells := flat_map (fun r => piece (fst r) (Z.min (snd r) h)) s.
Definition from (s : cells) (l : Z) : cells := flat_map (fun r => piece (Z.max (fst r) l) (snd r)) s.

Lemma member_up_to : forall k s h, member k s = true -> k <= h -> member k (up_to s h) = true.
Proof.
  intros k s h S H. apply member_in in S as [r [R I]]. apply member_in.
  exists (fst r, Z.min (snd r) h). split; [|simpl; lia].
  apply in_flat_map. exists r. split; auto. apply in_piece with k. lia.
Qed.

Lemma member_from : forall k s l, member k s = true -> l <= k -> member k (from s l) = true.
Proof.
  intros k s l S H. apply member_in in S as [r [R I]]. apply member_in.
  exists (Z.max (fst r) l, snd r). split; [|simpl; lia].
  apply in_flat_map. exists r. split; auto. apply in_piece with k. lia.
Qed.

Fixpoint same_cells (a b : cells) : bool :=
  match a, b with
  | [], [] => true
  | r :: rest, q :: others => (fst r =? fst q) && (snd r =? snd q) && same_cells rest others
  | _, _ => false
  end.

Fixpoint same_sets (a b : list cells) : bool :=
  match a, b with
  | [], [] => true
  | s :: rest, t :: others => same_cells s t && same_sets rest others
  | _, _ => false
  end.

Lemma same_cells_eq : forall a b, same_cells a b = true -> a = b.
Proof.
  induction a as [|[l h] a IH]; intros [|[m i] b]; simpl; try discriminate; auto.
  rewrite !andb_true_iff, !Z.eqb_eq. intros [[-> ->] H]. f_equal. auto.
Qed.

Lemma same_sets_eq : forall a b, same_sets a b = true -> a = b.
Proof.
  induction a as [|s a IH]; intros [|t b]; simpl; try discriminate; auto.
  rewrite andb_true_iff. intros [S H]. f_equal; auto using same_cells_eq.
Qed.
