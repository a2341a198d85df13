(* The checker, and the theorem: a proof that it accepts leaves no point that satisfies the statement. *)

From Coq Require Import ZArith List Bool Lia.
From Treesens Require Import Lists Cells Steps Statement Propagate Factor Factors Bound BoundSound.
Import ListNotations.
Open Scope Z_scope.

(* Nodes in preorder. A cut leaves the cells below `at_cell` to its first child, and the others to the second one. *)
Inductive node :=
| Cut (cut_variable at_cell : Z)
| Closed
| Refuted (weights : list Z) (exponent : Z) (changes : list change).

Record proof := { joint : bool; apart : list Z; nodes : list node }.

(* What is still to be dealt with; none stands for a part that propagation has refuted. *)
Definition part := option (list cells).

Definition below (d : list cells) (v k : Z) : part :=
  match at_index d v with Some c => narrow d v (up_to c (k - 1)) | None => Some d end.
Definition above (d : list cells) (v k : Z) : part :=
  match at_index d v with Some c => narrow d v (from c k) | None => Some d end.

Definition between_cells (s : statement) (v k : Z) : bool :=
  match at_index (sizes s) v with Some size => (0 <? k) && (k <? size) | None => false end.

Fixpoint run (fuel : nat) (s : statement) (l : list node) (stack : list part) (st : state) : bool :=
  match l, stack with
  | [], [] => true
  | n :: l', p :: stack' =>
      let left_of := match p with Some d => propagate fuel s d | None => None end in
      match n with
      | Cut v k =>
          between_cells s v k &&
          match left_of with
          | Some d => run fuel s l' (below d v k :: above d v k :: stack') st
          | None => run fuel s l' (None :: None :: stack') st
          end
      | Closed => match left_of with Some _ => false | None => run fuel s l' stack' st end
      | Refuted weights exponent changes =>
          match left_of with
          | None => run fuel s l' stack' st
          | Some d =>
              match bound s d st weights exponent changes with
              | Some (st', b) =>
                  match b with Some z => z <? 0 | None => true end && run fuel s l' stack' st'
              | None => false
              end
          end
      end
  | _, _ => false
  end.

Definition count_cells (c : cells) : Z := sum (fun r => snd r - fst r + 1) c.

Definition start (s : statement) (fs : list factor) : state := {|
  helds := map (fun f => {| of_factor := f; messages := map (fun _ => []) (scope f); kept := None |}) fs;
  rests := map (fun _ => {| own := []; total := []; kept_best := None |}) (domain s);
  at_weights := []
|}.

Definition check (s : statement) (p : proof) : bool :=
  match make_factors s (joint p) (apart p) with
  | Some fs => run (Z.to_nat (1 + sum count_cells (domain s))) s (nodes p) [Some (domain s)] (start s fs)
  | None => false
  end.

Lemma start_right : forall s fs, right s fs (start s fs).
Proof.
  intros s fs. constructor; simpl.
  - rewrite map_map. simpl. apply map_id.
  - apply Forall_forall. intros h I. apply in_map_iff in I as [f [<- _]]. intros k b r K. discriminate.
  - apply Forall_forall. intros r I. apply in_map_iff in I as [c [<- _]]. intros k b K. discriminate.
  - intros x. rewrite sum_from_zero.
    + rewrite sum_map. etransitivity; [apply sum_ext|apply sum_zero]. intros f _. unfold said_by, said. simpl.
      apply said_nothing. unfold silent. apply forallb_forall. intros m I. apply in_map_iff in I as [v [<- _]].
      reflexivity.
    + intros i r I. apply in_map_iff in I as [c [<- _]]. reflexivity.
  - intros x. rewrite sum_from_zero; [reflexivity|]. intros i r I. apply in_map_iff in I as [c [<- _]]. reflexivity.
Qed.

Lemma below_sound : forall d v k x, within d x -> x v < k -> exists c, below d v k = Some c /\ within c x.
Proof.
  intros d v k x D L. unfold below. destruct (at_index d v) as [c|] eqn:A; [|eauto].
  apply within_narrow; auto. apply member_up_to; [apply (D _ _ A)|lia].
Qed.

Lemma above_sound : forall d v k x, within d x -> k <= x v -> exists c, above d v k = Some c /\ within c x.
Proof.
  intros d v k x D L. unfold above. destruct (at_index d v) as [c|] eqn:A; [|eauto].
  apply within_narrow; auto. apply member_from; [apply (D _ _ A)|lia].
Qed.

Lemma run_sound : forall s fs j a fuel, make_factors s j a = Some fs -> forall l stack st, right s fs st ->
  run fuel s l stack st = true -> forall d, In (Some d) stack -> forall x, within d x -> ~ satisfies s x.
Proof.
  intros s fs j a fuel M. induction l as [|n l IH]; intros [|p stack] st R E; simpl in E; try discriminate.
  - intros d [].
  - destruct n as [v k| |weights exponent changes].
    + apply andb_true_iff in E as [_ E]. intros d [->|I] x X S.
      * destruct (propagate_sound fuel s x d S X) as [e [P W]]. rewrite P in E.
        destruct (Z.lt_ge_cases (x v) k) as [L|L].
        -- destruct (below_sound e v k x W L) as [c [B C]]. rewrite B in E.
           exact (IH _ _ R E c (or_introl eq_refl) x C S).
        -- destruct (above_sound e v k x W L) as [c [B C]]. rewrite B in E.
           exact (IH _ _ R E c (or_intror (or_introl eq_refl)) x C S).
      * destruct (match p with Some d => propagate fuel s d | None => None end);
          exact (IH _ _ R E d (or_intror (or_intror I)) x X S).
    + intros d [->|I] x X S.
      * destruct (propagate_sound fuel s x d S X) as [e [P W]]. rewrite P in E. discriminate.
      * destruct (match p with Some d => propagate fuel s d | None => None end); [discriminate|].
        exact (IH _ _ R E d I x X S).
    + intros d [->|I] x X S.
      * destruct (propagate_sound fuel s x d S X) as [e [P W]]. rewrite P in E.
        destruct (bound s e st weights exponent changes) as [[st' b]|] eqn:B; [|discriminate].
        destruct (bound_sound _ _ _ _ _ _ _ _ _ _ _ M R B) as [_ C]. destruct (C x S W) as [z [-> Z0]].
        apply andb_true_iff in E as [E _]. apply Z.ltb_lt in E. lia.
      * destruct (match p with Some d => propagate fuel s d | None => None end) as [e|].
        -- destruct (bound s e st weights exponent changes) as [[st' b]|] eqn:B; [|discriminate].
           destruct (bound_sound _ _ _ _ _ _ _ _ _ _ _ M R B) as [R' _].
           apply andb_true_iff in E as [_ E]. exact (IH _ _ R' E d I x X S).
        -- exact (IH _ _ R E d I x X S).
Qed.

Theorem check_is_sound : forall s p, check s p = true -> forall x, ~ satisfies s x.
Proof.
  intros s p C x S. unfold check in C. destruct (make_factors s (joint p) (apart p)) as [fs|] eqn:M; [|discriminate].
  exact (run_sound _ _ _ _ _ M _ _ _ (start_right s fs) C (domain s) (or_introl eq_refl) x (in_domain s x S) S).
Qed.
