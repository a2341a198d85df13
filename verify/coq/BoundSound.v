(* The bound of a leaf is one: points that satisfy the statement stay below. *)

From Coq Require Import ZArith List Bool Lia.
From Treesens Require Import Lists Cells Steps Statement Ways Factor Factors Bound.
From Treesens Require Export Kept.
Import ListNotations.
Open Scope Z_scope.

Lemma refresh_held_right : forall w d h h' r, held_right h -> refresh_held w d h = Some (h', r) ->
  held_right h' /\ of_factor h' = of_factor h /\ messages h' = messages h /\
  exists b, options (map (at_index d) (scope (of_factor h))) = Some b /\
            r = at_most (of_factor h) (shares w (of_factor h)) (messages h) b.
Proof.
  intros w d h h' r H E. unfold refresh_held in E. destruct (options _) as [b|]; [|discriminate].
  assert (N : Some ({| of_factor := of_factor h; messages := messages h;
      kept := Some (shares w (of_factor h), b, at_most (of_factor h) (shares w (of_factor h)) (messages h) b) |},
      at_most (of_factor h) (shares w (of_factor h)) (messages h) b) = Some (h', r) ->
    held_right h' /\ of_factor h' = of_factor h /\ messages h' = messages h /\
    exists b0, Some b = Some b0 /\ r = at_most (of_factor h) (shares w (of_factor h)) (messages h) b0).
  { intros Q. injection Q as <- <-. repeat split; eauto. intros k c q K. simpl in K. injection K as <- <- <-.
    reflexivity. }
  destruct (kept h) as [[[k0 b0] r0]|] eqn:K; [|auto].
  destruct (same_tables _ k0 && same_sets b b0) eqn:S; [|auto].
  injection E as <- <-. apply andb_true_iff in S as [S1 S2]. apply same_tables_eq in S1. apply same_sets_eq in S2.
  subst k0 b0. repeat split; eauto.
Qed.

Lemma options_length : forall (A B : Type) (f : A -> option B) l found,
  options (map f l) = Some found -> length found = length l.
Proof. intros A B f l found H. apply options_map in H. induction H; simpl; congruence. Qed.

Lemma refresh_helds_right : forall w d l l' r, Forall held_right l -> refresh_helds w d l = Some (l', r) ->
  Forall held_right l' /\ map of_factor l' = map of_factor l /\ (forall x, sum (said_by x) l' = sum (said_by x) l) /\
  (forall x, within d x -> Forall (fun f => fits f x) (map of_factor l) -> exists z, r = Some z /\
     sum (fun f => dots (shares w f) (values f x)) (map of_factor l) + sum (said_by x) l <= z).
Proof.
  induction l as [|h l IH]; simpl; intros l' r H E.
  - injection E as <- <-. repeat split; auto. intros. exists 0. split; auto. simpl. lia.
  - destruct (refresh_held w d h) as [[h' p]|] eqn:R; [|discriminate].
    destruct (refresh_helds w d l) as [[l0 q]|]; [|discriminate]. injection E as <- <-. inversion H; subst.
    destruct (refresh_held_right _ _ _ _ _ ltac:(eassumption) R) as [A [B [C [b [D P]]]]].
    destruct (IH l0 q ltac:(assumption) eq_refl) as [I [J [K L]]].
    repeat split; auto.
    + simpl. congruence.
    + intros x. simpl. rewrite K. unfold said_by at 1 3. rewrite B, C. reflexivity.
    + intros x X F. inversion F; subst. destruct (L x X ltac:(assumption)) as [z [-> Z]].
      destruct (at_most_sound (of_factor h) (shares w (of_factor h)) (messages h) b x) as [y [-> Y]]; auto.
      * apply (in_box_scope x d); assumption.
      * apply (options_length _ _ _ _ _ D).
      * eexists. split; [reflexivity|]. simpl. unfold said_by at 1. lia.
Qed.

Lemma refresh_rests_right : forall d l l' b, Forall rest_right l -> refresh_rests d l = Some (l', b) ->
  Forall rest_right l' /\
  (forall x from, sum_from (own_at x) from l' = sum_from (own_at x) from l) /\
  (forall x from, sum_from (total_at x) from l' = sum_from (total_at x) from l) /\
  (forall x from, (forall v c, at_index d v = Some c -> member (x (from + v)) c = true) ->
     sum_from (own_at x) from l - sum_from (total_at x) from l <= b).
Proof.
  induction d as [|c d IH]; intros [|r l] l' b H E; cbn [refresh_rests] in E; try discriminate.
  - injection E as <- <-. repeat split; auto. intros. simpl. lia.
  - destruct (refresh_rests d l) as [[l0 q]|] eqn:R; [|discriminate]. inversion H as [|? ? Hr Hl]; subst.
    destruct (IH l l0 q Hl R) as [I [J [K L]]].
    assert (G : exists r' p, refresh_rest c r = (r', p) /\ own r' = own r /\ total r' = total r /\ rest_right r' /\
                             p = best (net r) c).
    { unfold refresh_rest.
      assert (N : rest_right {| own := own r; total := total r; kept_best := Some (c, best (net r) c) |})
        by (intros e p Q; simpl in Q; injection Q as <- <-; reflexivity).
      destruct (kept_best r) as [[c0 p]|] eqn:Q; [|eexists; eexists; repeat split; auto].
      destruct (same_cells c c0) eqn:S; [|eexists; eexists; repeat split; auto].
      apply same_cells_eq in S. subst c0. exists r, p. repeat split; auto. }
    destruct G as [r' [p [G0 [G1 [G2 [G3 ->]]]]]]. rewrite G0 in E. injection E as <- <-.
    repeat split; auto; intros x from.
    + simpl. rewrite J. unfold own_at at 1 3. rewrite G1. reflexivity.
    + simpl. rewrite K. unfold total_at at 1 3. rewrite G2. reflexivity.
    + intros W. simpl. assert (M : member (x from) c = true) by (rewrite <- (Z.add_0_r from); apply W; reflexivity).
      assert (P := value_best (net r) c _ M). unfold net in P. rewrite value_plus, value_times in P.
      assert (Q : sum_from (own_at x) (from + 1) l - sum_from (total_at x) (from + 1) l <= q).
      { apply L. intros v e A. replace (from + 1 + v) with (from + (v + 1)) by lia. apply W.
        apply at_index_later. assumption. }
      unfold own_at at 1, total_at at 1, net. lia.
Qed.

Theorem bound_sound : forall s fs joint apart d st weights exponent l st' b,
  make_factors s joint apart = Some fs -> right s fs st ->
  bound s d st weights exponent l = Some (st', b) ->
  right s fs st' /\ (forall x, satisfies s x -> within d x -> exists z, b = Some z /\ 0 <= z).
Proof.
  intros s fs joint apart d st weights exponent l st' b M R E. unfold bound in E.
  destruct (forallb (Z.leb 0) weights && _ && _ && _) eqn:Q; [|discriminate].
  apply andb_true_iff in Q as [Q _]. apply andb_true_iff in Q as [Q _]. apply andb_true_iff in Q as [W _].
  destruct (apply_changes s exponent st l) as [changed|] eqn:C; [|discriminate].
  apply (apply_changes_right s fs) in C; auto.
  destruct (set_weights s changed weights) as [now|] eqn:N; [|discriminate].
  destruct (set_weights_right s fs _ _ _ C N) as [[F H T B O] V]. clear N C R.
  destruct (refresh_helds _ d (helds now)) as [[hs a]|] eqn:Eh; [|discriminate].
  destruct (refresh_rests d (rests now)) as [[rs q]|] eqn:Er; [|discriminate]. injection E as <- <-.
  destruct (refresh_helds_right _ _ _ _ _ H Eh) as [H1 [H2 [H3 H4]]].
  destruct (refresh_rests_right _ _ _ _ T Er) as [T1 [T2 [T3 T4]]].
  split.
  - constructor; simpl; auto; [congruence| |]; intros x; rewrite ?H3, ?T2, ?T3; auto.
  - intros x S D. rewrite F in H4. destruct (H4 x D) as [z [-> Z]].
    { eapply make_factors_fit; eauto. }
    eexists. split; [reflexivity|].
    assert (P := weighted_rows_hold s x weights (rows s) W (rows_hold s x S)).
    rewrite rows_are_ensemble in P. rewrite (factors_are_ensemble _ _ _ _ _ x M) in Z.
    assert (U := T4 x 0 D). rewrite O, V in U. specialize (B x). unfold costs_at in U. lia.
Qed.
