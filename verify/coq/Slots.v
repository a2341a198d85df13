(* The greatest value plus messages over the ways through the trees of a factor. *)

From Coq Require Import ZArith List Bool Lia.
From Treesens Require Import Lists Cells Steps Statement Ways.
Import ListNotations.
Open Scope Z_scope.

(* A place of the scope: the cells that are left, the message, and its greatest value there. *)
Record slot := { here : cells; message : step; peak : Z }.

Definition slot_of (m : step) (c : cells) : slot := {| here := c; message := m; peak := best m c |}.

Definition larger (a b : option Z) : option Z :=
  match a, b with
  | Some x, Some y => Some (Z.max x y)
  | None, _ => b
  | _, None => a
  end.

Fixpoint dot (a b : list Z) : Z :=
  match a, b with x :: a', y :: b' => x * y + dot a' b' | _, _ => 0 end.

(* The same for the leaves of all copies. *)
Fixpoint dots (a b : list (list Z)) : Z :=
  match a, b with x :: a', y :: b' => dot x y + dots a' b' | _, _ => 0 end.

(* The greatest weighted value plus messages over the ways that meet the slots; `now` is the sum of the peaks. *)
Fixpoint most (weights : list (list Z)) (t : tree nat (option (list (list Z)))) (slots : list slot) (now : Z)
  : option Z :=
  match t with
  | Leaf None => None
  | Leaf (Some values) => Some (now + dots weights values)
  | Node j side t1 t2 =>
      match nth_error slots j with
      | None => larger (most weights t1 slots now) (most weights t2 slots now)
      | Some old =>
          let inside := meet (here old) side in
          let rest := minus (here old) side in
          larger
            (if is_empty inside then None
             else let new := slot_of (message old) inside in
                  most weights t1 (set_nth j new slots) (now - peak old + peak new))
            (if is_empty rest then None
             else let new := slot_of (message old) rest in
                  most weights t2 (set_nth j new slots) (now - peak old + peak new))
      end
  end.

(* What the messages are at a point, less their peaks. *)
Fixpoint gain (slots : list slot) (y : nat -> Z) : Z :=
  match slots with
  | [] => 0
  | s :: rest => value_at (message s) (y O) - peak s + gain rest (fun j => y (S j))
  end.

Definition in_slots (slots : list slot) (y : nat -> Z) : Prop := forall j s, nth_error slots j = Some s ->
  member (y j) (here s) = true /\ value_at (message s) (y j) <= peak s.

Lemma gain_not_positive : forall slots y, in_slots slots y -> gain slots y <= 0.
Proof.
  induction slots as [|s slots IH]; simpl; intros y H; [lia|].
  assert (value_at (message s) (y O) <= peak s) by (apply (H O s); reflexivity).
  assert (gain slots (fun j => y (S j)) <= 0) by (apply IH; intros j t E; apply (H (S j) t E)). lia.
Qed.

Lemma gain_set : forall slots j old new y, nth_error slots j = Some old -> message new = message old ->
  gain (set_nth j new slots) y = gain slots y + peak old - peak new.
Proof.
  induction slots as [|s slots IH]; intros [|j] old new y E M; try discriminate; simpl.
  - injection E as <-. rewrite M. lia.
  - simpl in E. rewrite (IH j old new (fun i => y (S i)) E M). lia.
Qed.

Lemma in_slots_set : forall slots j old c y, nth_error slots j = Some old -> in_slots slots y ->
  member (y j) c = true -> in_slots (set_nth j (slot_of (message old) c) slots) y.
Proof.
  intros slots j old c y E H M i s N. rewrite nth_set_nth, E in N.
  destruct (Nat.eqb_spec i j) as [->|]; [|auto]. injection N as <-. simpl. auto using value_best.
Qed.

Lemma larger_left : forall a b x, a = Some x -> exists r, larger a b = Some r /\ x <= r.
Proof. intros a [b|] x ->; simpl; eexists; split; eauto; lia. Qed.

Lemma larger_right : forall a b x, b = Some x -> exists r, larger a b = Some r /\ x <= r.
Proof. intros [a|] b x ->; simpl; eexists; split; eauto; lia. Qed.

Theorem most_sound : forall weights y values t slots now, in_slots slots y -> reach t y = Some values ->
  exists r, most weights t slots now = Some r /\ now + gain slots y + dots weights values <= r.
Proof.
  intros weights y values. induction t as [v|j side t1 IH1 t2 IH2]; simpl; intros slots now H R.
  - subst v. eexists. split; eauto. assert (G := gain_not_positive _ _ H). lia.
  - destruct (nth_error slots j) as [old|] eqn:E.
    + destruct (H _ _ E) as [M _]. destruct (member (y j) side) eqn:S.
      * assert (I := member_meet _ _ _ M S). rewrite (member_not_empty _ _ I).
        destruct (IH1 _ (now - peak old + peak (slot_of (message old) (meet (here old) side)))
          (in_slots_set _ _ _ _ _ E H I) R) as [r [F L]].
        rewrite (gain_set _ _ old) in L; auto. destruct (larger_left _ (if is_empty (minus (here old) side) then None
          else let new := slot_of (message old) (minus (here old) side) in
            most weights t2 (set_nth j new slots) (now - peak old + peak new)) _ F) as [q [Q ?]].
        exists q. split; [exact Q|lia].
      * assert (I := member_minus _ _ _ M S). rewrite (member_not_empty _ _ I).
        destruct (IH2 _ (now - peak old + peak (slot_of (message old) (minus (here old) side)))
          (in_slots_set _ _ _ _ _ E H I) R) as [r [F L]].
        rewrite (gain_set _ _ old) in L; auto. destruct (larger_right (if is_empty (meet (here old) side) then None
          else let new := slot_of (message old) (meet (here old) side) in
            most weights t1 (set_nth j new slots) (now - peak old + peak new)) _ _ F) as [q [Q ?]].
        exists q. split; [exact Q|lia].
    + destruct (member (y j) side).
      * destruct (IH1 slots now H R) as [r [F L]].
        destruct (larger_left _ (most weights t2 slots now) _ F) as [q [Q ?]]. exists q. split; [exact Q|lia].
      * destruct (IH2 slots now H R) as [r [F L]].
        destruct (larger_right (most weights t1 slots now) _ _ F) as [q [Q ?]]. exists q. split; [exact Q|lia].
Qed.
