(* Unit propagation over clauses and orders: narrows the domains, and loses no point that satisfies them. *)

From Coq Require Import ZArith List Bool Lia.
From Treesens Require Import Lists Cells Statement.
Import ListNotations.
Open Scope Z_scope.

(* The domain with other cells of a variable; none if they are no cells. *)
Definition narrow (d : list cells) (v : Z) (c : cells) : option (list cells) :=
  if is_empty c then None
  else match replace d v c with Some changed => Some changed | None => Some d end.

Definition keep_order (d : list cells) (o : Z * Z) : option (list cells) :=
  match at_index d (fst o), at_index d (snd o) with
  | Some a, Some b =>
      let lower := up_to a (highest b) in
      match narrow d (fst o) lower with
      | Some changed => narrow changed (snd o) (from b (lowest lower))
      | None => None
      end
  | _, _ => Some d
  end.

Definition possible (d : list cells) (q : Z * cells) : bool :=
  match at_index d (fst q) with Some c => negb (is_empty (meet c (snd q))) | None => true end.

Definition union (parts : list (Z * cells)) : cells := tidy (flat_map snd parts).

(* If all parts that may hold are about one variable, one of them does. *)
Definition keep_clause (d : list cells) (clause : list (Z * cells)) : option (list cells) :=
  match filter (possible d) clause with
  | [] => None
  | (v, c) :: rest =>
      if forallb (fun q => fst q =? v) rest then
        match at_index d v with
        | Some here => narrow d v (meet here (union ((v, c) :: rest)))
        | None => Some d
        end
      else Some d
  end.

Fixpoint keep_all {A : Type} (keep : list cells -> A -> option (list cells)) (l : list A) (d : list cells) :=
  match l with
  | [] => Some d
  | a :: rest => match keep d a with Some changed => keep_all keep rest changed | None => None end
  end.

Definition round (s : statement) (d : list cells) : option (list cells) :=
  match keep_all keep_order (orders s) d with
  | Some changed => keep_all keep_clause (clauses s) changed
  | None => None
  end.

Fixpoint settle (fuel : nat) (s : statement) (d : list cells) : option (list cells) :=
  match round s d with
  | None => None
  | Some changed =>
      match fuel with
      | O => Some changed
      | S less => if same_sets changed d then Some changed else settle less s changed
      end
  end.

(* Every round but the last one takes a cell away, so that there are at most as many rounds as cells. *)
Definition propagate (fuel : nat) (s : statement) (d : list cells) : option (list cells) :=
  if existsb is_empty d then None else settle fuel s d.

Lemma within_narrow : forall d v c x,
  within d x -> member (x v) c = true -> exists changed, narrow d v c = Some changed /\ within changed x.
Proof.
  intros d v c x D M. unfold narrow. rewrite (member_not_empty _ _ M).
  destruct (replace d v c) as [changed|] eqn:R; [|eauto].
  exists changed. split; auto. intros w b A. rewrite (at_replace _ _ _ _ _ w R) in A.
  destruct (Z.eqb_spec w v) as [->|N]; [injection A as <-; auto|eauto].
Qed.

Lemma keep_order_sound : forall d o x,
  within d x -> order_holds x o -> exists changed, keep_order d o = Some changed /\ within changed x.
Proof.
  intros d [v w] x D O. unfold keep_order, order_holds in *. simpl in *.
  destruct (at_index d v) as [a|] eqn:A; [|eauto]. destruct (at_index d w) as [b|] eqn:B; [|eauto].
  assert (Ma := D _ _ A). assert (Mb := D _ _ B).
  assert (L : member (x v) (up_to a (highest b)) = true).
  { apply member_up_to; auto. apply member_bounds in Mb. lia. }
  destruct (within_narrow d v _ x D L) as [changed [-> C]]. apply within_narrow; auto.
  apply member_from; auto. apply member_bounds in L. lia.
Qed.

Lemma possible_if_holds : forall d q x, within d x -> part_holds x q -> possible d q = true.
Proof.
  intros d [v c] x D H. unfold possible, part_holds in *. simpl in *.
  destruct (at_index d v) as [here|] eqn:A; auto.
  rewrite (member_not_empty (x v)); auto. apply member_meet; auto.
Qed.

Lemma member_union : forall x v parts, forallb (fun q => fst q =? v) parts = true ->
  Exists (part_holds x) parts -> member (x v) (union parts) = true.
Proof.
  intros x v parts F E. apply member_tidy. apply Exists_exists in E as [q [I H]].
  apply (proj1 (forallb_forall _ _)) with (x := q) in F; auto. apply Z.eqb_eq in F. subst v.
  apply member_in in H as [r [R B]]. apply member_in. exists r. split; auto. apply in_flat_map. eauto.
Qed.

Lemma keep_clause_sound : forall d clause x,
  within d x -> Exists (part_holds x) clause -> exists changed, keep_clause d clause = Some changed /\ within changed x.
Proof.
  intros d clause x D E. unfold keep_clause.
  assert (L : Exists (part_holds x) (filter (possible d) clause)).
  { apply Exists_exists in E as [q [I H]]. apply Exists_exists. exists q. split; auto.
    apply filter_In. eauto using possible_if_holds. }
  destruct (filter (possible d) clause) as [|[v c] rest]; [inversion L|].
  destruct (forallb (fun q => fst q =? v) rest) eqn:F; [|eauto].
  destruct (at_index d v) as [here|] eqn:A; [|eauto].
  apply within_narrow; auto. apply member_meet; [eauto|]. apply member_union; auto.
  simpl. rewrite Z.eqb_refl. assumption.
Qed.

Lemma keep_all_sound : forall (A : Type) keep (holds : A -> Prop) x,
  (forall d a, within d x -> holds a -> exists changed, keep d a = Some changed /\ within changed x) ->
  forall l d, within d x -> Forall holds l -> exists changed, keep_all keep l d = Some changed /\ within changed x.
Proof.
  intros A keep holds x K. induction l as [|a l IH]; simpl; intros d D F; [eauto|].
  inversion F; subst. destruct (K d a D) as [changed [-> C]]; auto.
Qed.

Lemma round_sound : forall s x d, satisfies s x -> within d x ->
  exists changed, round s d = Some changed /\ within changed x.
Proof.
  intros s x d S D. unfold round.
  destruct (keep_all_sound _ keep_order (order_holds x) x (fun d a => keep_order_sound d a x) (orders s) d D
    (orders_hold _ _ S)) as [changed [-> C]].
  apply (keep_all_sound _ keep_clause (Exists (part_holds x)) x); auto using keep_clause_sound, (clauses_hold s x S).
Qed.

Lemma within_not_empty : forall d x, within d x -> existsb is_empty d = false.
Proof.
  intros d x D. assert (G : forall l y, (forall v c, at_index l v = Some c -> member (y v) c = true) ->
    existsb is_empty l = false).
  { induction l as [|c l IH]; intros y H; [reflexivity|]. simpl. apply orb_false_iff. split.
    - apply (member_not_empty (y 0)). apply H. reflexivity.
    - apply (IH (fun v => y (v + 1))). intros v e A. apply H. apply at_index_later. assumption. }
  exact (G d x D).
Qed.

Theorem propagate_sound : forall fuel s x d, satisfies s x -> within d x ->
  exists changed, propagate fuel s d = Some changed /\ within changed x.
Proof.
  intros fuel s x d S D. unfold propagate. rewrite (within_not_empty d x D). revert d D.
  induction fuel as [|less IH]; simpl; intros d D; destruct (round_sound s x d S D) as [changed [-> C]]; eauto.
  destruct (same_sets changed d); eauto.
Qed.
