(* What is kept from leaf to leaf stays right if messages and weights change. *)

From Coq Require Import ZArith List Bool Lia.
From Treesens Require Import Lists Cells Steps Statement Ways Factor Factors Bound.
Import ListNotations.
Open Scope Z_scope.

Definition held_right (h : held) : Prop :=
  forall k b r, kept h = Some (k, b, r) -> r = at_most (of_factor h) k (messages h) b.
Definition rest_right (r : rest) : Prop := forall c b, kept_best r = Some (c, b) -> b = best (net r) c.

Definition said_by (x : point) (h : held) : Z := said (of_factor h) (messages h) x.
Definition own_at (x : point) (v : Z) (r : rest) : Z := value_at (own r) (x v).
Definition total_at (x : point) (v : Z) (r : rest) : Z := value_at (total r) (x v).
Definition costs_at (s : statement) (x : point) (weights : list Z) : Z :=
  sum (fun q => fst q * price_of x (snd q)) (combine weights (rows s)).

Record right (s : statement) (fs : list factor) (st : state) : Prop := {
  of_factors : map of_factor (helds st) = fs;
  helds_right : Forall held_right (helds st);
  rests_right : Forall rest_right (rests st);
  balanced : forall x, sum (said_by x) (helds st) = sum_from (total_at x) 0 (rests st);
  owned : forall x, sum_from (own_at x) 0 (rests st) = costs_at s x (at_weights st)
}.

Lemma said_set : forall sc (ms : list step) j (old new : step) v (x : point),
  nth_error ms j = Some old -> nth_error sc j = Some v ->
  sum (fun q => value_at (fst q) (x (snd q))) (combine (set_nth j new ms) sc)
  = sum (fun q => value_at (fst q) (x (snd q))) (combine ms sc) + value_at new (x v) - value_at old (x v).
Proof.
  induction sc as [|u sc IH]; intros [|m ms] [|j] old new v x M V; try discriminate; simpl in *.
  - injection M as <-. injection V as <-. lia.
  - rewrite (IH ms j old new v x M V). lia.
Qed.

Lemma apply_change_right : forall s fs e st c st', right s fs st -> apply_change s e st c = Some st' -> right s fs st'.
Proof.
  intros s fs e st c st' [F H R B O] A. unfold apply_change in A.
  destruct (at_index (helds st) (whose c)) as [h|] eqn:Eh; [|discriminate].
  destruct (at_index (rests st) (about c)) as [r|] eqn:Er; [|discriminate].
  destruct (at_index (sizes s) (about c)) as [size|]; [|discriminate].
  destruct (index_of (about c) (scope (of_factor h))) as [j|] eqn:J; [|discriminate].
  destruct (nth_error (messages h) j) as [old|] eqn:M; [|discriminate].
  destruct (proper (-1) size (steps c)); [|discriminate].
  set (new := map _ (steps c)) in A. set (h' := {| of_factor := of_factor h |}) in A.
  set (r' := {| own := own r |}) in A.
  destruct (replace (helds st) (whose c) h') as [hs|] eqn:Rh; [|discriminate].
  destruct (replace (rests st) (about c) r') as [rs|] eqn:Rr; [|discriminate]. injection A as <-.
  constructor; simpl.
  - rewrite <- F. apply (map_replace _ _ _ _ _ _ _ _ Eh Rh). reflexivity.
  - apply (Forall_replace _ _ _ _ _ _ Rh); auto. intros k b q D. discriminate.
  - apply (Forall_replace _ _ _ _ _ _ Rr); auto. intros k b D. discriminate.
  - intros x. rewrite (sum_replace _ (said_by x) _ _ _ _ _ Eh Rh), (sum_from_replace _ (total_at x) _ _ _ _ _ 0 Er Rr).
    rewrite B. unfold said_by, said, total_at. simpl.
    rewrite (said_set _ _ _ _ new _ x M (nth_index_of _ _ _ J)).
    rewrite !value_plus, value_times. lia.
  - intros x. rewrite (sum_from_replace _ (own_at x) _ _ _ _ _ 0 Er Rr). rewrite <- O. unfold own_at. simpl. lia.
Qed.

Lemma apply_changes_right : forall s fs e l st st',
  right s fs st -> apply_changes s e st l = Some st' -> right s fs st'.
Proof.
  induction l as [|c l IH]; simpl; intros st st' R A; [injection A as <-; assumption|].
  destruct (apply_change s e st c) as [n|] eqn:E; [|discriminate]. eauto using apply_change_right.
Qed.

Definition value_of (x : point) (v : Z) (f : step) : Z := value_at f (x v).

Lemma add_cost_none : forall k l, fold_left (add_cost k) l None = None.
Proof. induction l; simpl; auto. Qed.

Lemma add_costs_none : forall w, fold_left add_costs w None = None.
Proof.
  induction w as [|[k r] w IH]; simpl; auto. unfold add_costs at 2. simpl.
  destruct (k =? 0); [|rewrite add_cost_none]; assumption.
Qed.

Lemma add_cost_sum : forall x k l u u', fold_left (add_cost k) l (Some u) = Some u' ->
  sum_from (value_of x) 0 u'
  = sum_from (value_of x) 0 u + k * sum (fun c => value_at (price c) (x (cost_variable c))) l.
Proof.
  induction l as [|c l IH]; intros u u' H.
  - simpl in H. injection H as <-. simpl. lia.
  - simpl fold_left in H.
    destruct (at_index u (cost_variable c)) as [f|] eqn:E; [|rewrite add_cost_none in H; discriminate].
    destruct (replace u (cost_variable c) (plus f (times k (price c)))) as [n|] eqn:R;
      [|rewrite add_cost_none in H; discriminate].
    rewrite (IH _ _ H), (sum_from_replace _ (value_of x) _ _ _ _ _ 0 E R). unfold value_of. simpl.
    rewrite value_plus, value_times. lia.
Qed.

Lemma owns_sum : forall s x w u, owns s w = Some u ->
  sum_from (value_of x) 0 u = sum (fun q => fst q * price_of x (snd q)) w.
Proof.
  intros s x w u. unfold owns.
  assert (G : forall w a, fold_left add_costs w (Some a) = Some u ->
    sum_from (value_of x) 0 u = sum_from (value_of x) 0 a + sum (fun q => fst q * price_of x (snd q)) w).
  { clear. induction w as [|[k r] w IH]; intros a H.
    - simpl in H. injection H as <-. simpl. lia.
    - simpl fold_left in H. unfold add_costs at 2 in H. simpl fst in H. simpl snd in H. simpl sum.
      destruct (Z.eqb_spec k 0) as [->|N].
      + rewrite (IH _ H). simpl. lia.
      + destruct (fold_left (add_cost k) (costs r) (Some a)) as [n|] eqn:E;
          [|rewrite add_costs_none in H; discriminate].
        rewrite (IH _ H), (add_cost_sum x _ _ _ _ E). unfold price_of. lia. }
  intros H. rewrite (G _ _ H), sum_from_zero; [lia|].
  intros i f I. apply in_map_iff in I as [c [<- _]]. reflexivity.
Qed.

Lemma set_weights_right : forall s fs st w st', right s fs st -> set_weights s st w = Some st' ->
  right s fs st' /\ at_weights st' = w.
Proof.
  intros s fs st w st' [F H R B O] A. unfold set_weights in A.
  destruct (same_numbers w (at_weights st)) eqn:E.
  - injection A as <-. apply same_numbers_eq in E. split; [constructor; auto|auto].
  - destruct (owns s _) as [u|] eqn:U; [|discriminate].
    destruct (Nat.eqb_spec (length u) (length (rests st))) as [L|]; [|discriminate]. injection A as <-.
    split; [|reflexivity]. clear E.
    assert (C : forall from x,
      let l := map (fun q : step * rest => {| own := fst q; total := total (snd q); kept_best := None |})
                   (combine u (rests st)) in
      sum_from (total_at x) from l = sum_from (total_at x) from (rests st) /\
      sum_from (own_at x) from l = sum_from (value_of x) from u).
    { clear -L. revert L. generalize (rests st). induction u as [|f u IH]; intros [|r l] L from x; try discriminate;
        [split; reflexivity|].
      simpl in L. destruct (IH l ltac:(lia) (from + 1) x) as [I J]. simpl in *. rewrite I, J. split; reflexivity. }
    constructor; simpl; auto.
    + apply Forall_forall. intros r I. apply in_map_iff in I as [q [<- _]]. intros c b D. discriminate.
    + intros x. rewrite B. symmetry. apply C.
    + intros x. destruct (C 0 x) as [_ ->]. apply (owns_sum s). assumption.
Qed.
