(* The trees of a statement in factors, and the weighted sum of its rows as a sum over them. *)

From Coq Require Import ZArith List Bool Lia.
From Treesens Require Import Lists Cells Steps Statement Factor.
Import ListNotations.
Open Scope Z_scope.

Definition numbered (s : statement) : list (Z * copy) := number 0 (copies s).

Definition contains (l : list Z) (i : Z) : bool := existsb (Z.eqb i) l.

(* The trees of a model at a group of copies that see it: together, but for those that are named. *)
Definition plan_group (s : statement) (apart : list Z) (g : list (Z * copy)) : list (list (Z * copy) * scored) :=
  match g with
  | [] => []
  | (_, c) :: _ =>
      flat_map (fun q => if contains apart (fst q) then map (fun e => ([e], snd q)) g else [(g, snd q)])
               (number 0 (model_of s c))
  end.

Definition one_model (g : list (Z * copy)) : bool :=
  match g with [] => true | (_, c) :: rest => forallb (fun e => sees (snd e) =? sees c) rest end.

Definition plan (s : statement) (joint : bool) (apart : list Z) : option (list (list (Z * copy) * scored)) :=
  if joint then if one_model (numbered s) then Some (plan_group s apart (numbered s)) else None
  else Some (flat_map (fun c => plan_group s apart [c]) (numbered s)).

Lemma sum_plan_group : forall s apart g (h : Z * copy -> scored -> Z), one_model g = true ->
  sum (fun q => sum (fun c => h c (snd q)) (fst q)) (plan_group s apart g)
  = sum (fun c => sum (h c) (model_of s (snd c))) g.
Proof.
  intros s apart g h O. destruct g as [|[p c] rest]; [reflexivity|]. set (g := (p, c) :: rest).
  assert (P : sum (fun q => sum (fun c => h c (snd q)) (fst q)) (plan_group s apart g)
            = sum (fun q => sum (fun c => h c (snd q)) g) (number 0 (model_of s c))).
  { change (plan_group s apart g) with (flat_map (fun q : Z * scored => if contains apart (fst q)
      then map (fun e : Z * copy => ([e], snd q)) g else [(g, snd q)]) (number 0 (model_of s c))).
    rewrite sum_flat_map. apply sum_ext. intros [i t] _. simpl fst. simpl snd.
    destruct (contains apart i).
    - rewrite sum_map. apply sum_ext. intros e _. simpl. lia.
    - simpl. lia. }
  rewrite P, (sum_number _ (fun t => sum (fun c => h c t) g)), sum_swap. apply sum_ext. intros e E.
  replace (model_of s (snd e)) with (model_of s c); [reflexivity|]. unfold model_of.
  destruct E as [<-|E]; [reflexivity|]. simpl in O. apply (proj1 (forallb_forall _ _)) with (x := e) in O; auto.
  apply Z.eqb_eq in O. rewrite O. reflexivity.
Qed.

Lemma sum_plan : forall s joint apart l (h : Z * copy -> scored -> Z), plan s joint apart = Some l ->
  sum (fun q => sum (fun c => h c (snd q)) (fst q)) l = sum (fun c => sum (h c) (model_of s (snd c))) (numbered s).
Proof.
  intros s joint apart l h P. unfold plan in P. destruct joint.
  - destruct (one_model (numbered s)) eqn:O; [|discriminate]. injection P as <-. apply sum_plan_group. assumption.
  - injection P as <-. rewrite sum_flat_map. apply sum_ext. intros [p c] _.
    etransitivity; [apply (sum_plan_group s apart [(p, c)] h); reflexivity|]. simpl. lia.
Qed.

Definition make_factors (s : statement) (joint : bool) (apart : list Z) : option (list factor) :=
  match plan s joint apart with
  | Some l => options (map (fun q => make_factor s (fst q) (snd q)) l)
  | None => None
  end.

Lemma make_factors_fit : forall s joint apart fs x, satisfies s x -> make_factors s joint apart = Some fs ->
  Forall (fun f => fits f x) fs.
Proof.
  intros s joint apart fs x S H. unfold make_factors in H. destruct (plan s joint apart) as [l|]; [|discriminate].
  apply options_map in H. induction H; constructor; eauto using make_factor_fits.
Qed.

(* Rows with their weights, and what a leaf of an output counts at a copy. *)
Definition weighted := list (Z * row).

Definition of_term (p o : Z) (t : term) : Z :=
  if (term_copy t =? p) && (term_output t =? o) then coefficient t else 0.
Definition share (w : weighted) (p o : Z) : Z := sum (fun q => fst q * sum (of_term p o) (terms (snd q))) w.
Definition shares (w : weighted) (f : factor) : list (list Z) :=
  map (fun c => map (share w (fst c)) (feeds f)) (group f).

(* What a leaf counts, and the sum over all copies and trees, if an output counts `count`. *)
Definition counted (count : Z -> Z) (fed leaf : list Z) : Z := sum (fun q => count (fst q) * snd q) (combine fed leaf).

Definition tree_counts (x : point) (count : Z -> Z -> Z) (c : Z * copy) (t : scored) : Z :=
  counted (count (fst c)) (outputs t) (reach (grown t) (cell_of (snd c) x)).

Definition ensemble (s : statement) (x : point) (count : Z -> Z -> Z) : Z :=
  sum (fun c => sum (tree_counts x count c) (model_of s (snd c))) (numbered s).

Lemma dot_counted : forall count fed leaf, dot (map count fed) leaf = counted count fed leaf.
Proof.
  unfold counted. induction fed as [|o fed IH]; intros [|v leaf]; simpl; try reflexivity. rewrite IH. reflexivity.
Qed.

Lemma dots_map : forall (A : Type) (f g : A -> list Z) l, dots (map f l) (map g l) = sum (fun a => dot (f a) (g a)) l.
Proof. induction l; simpl; congruence. Qed.

Lemma factors_are_ensemble : forall s joint apart fs w x, make_factors s joint apart = Some fs ->
  sum (fun f => dots (shares w f) (values f x)) fs = ensemble s x (share w).
Proof.
  intros s joint apart fs w x H. unfold make_factors in H. destruct (plan s joint apart) as [l|] eqn:P; [|discriminate].
  unfold ensemble. rewrite <- (sum_plan s joint apart l
    (tree_counts x (share w)) P).
  clear P. apply options_map in H. induction H as [|[g t] f l fs E H IH]; simpl; [reflexivity|].
  rewrite IH. f_equal. unfold make_factor in E. simpl in E.
  destruct (options _); [|discriminate]. destruct (options _); [|discriminate]. injection E as <-.
  unfold shares, values. simpl. rewrite dots_map. apply sum_ext. intros c _. apply dot_counted.
Qed.

Lemma ensemble_plus : forall s x a b,
  ensemble s x (fun p o => a p o + b p o) = ensemble s x a + ensemble s x b.
Proof.
  intros. unfold ensemble, tree_counts, counted. rewrite <- sum_plus. apply sum_ext. intros c _. rewrite <- sum_plus.
  apply sum_ext. intros t _. rewrite <- sum_plus. apply sum_ext. intros. lia.
Qed.

Lemma ensemble_scale : forall s x k a, ensemble s x (fun p o => k * a p o) = k * ensemble s x a.
Proof.
  intros. unfold ensemble, tree_counts, counted. rewrite <- sum_scale. apply sum_ext. intros c _. rewrite <- sum_scale.
  apply sum_ext. intros t _. rewrite <- sum_scale. apply sum_ext. intros. lia.
Qed.

Lemma sum_of_zeros : forall (A : Type) (f : A -> Z) l, (forall a, In a l -> f a = 0) -> sum f l = 0.
Proof. intros A f l H. etransitivity; [apply sum_ext; exact H|apply sum_zero]. Qed.

Lemma ensemble_zero : forall s x, ensemble s x (fun _ _ => 0) = 0.
Proof. intros. do 3 (apply sum_of_zeros; intros). reflexivity. Qed.

Lemma ensemble_term : forall s x t,
  ensemble s x (fun p o => of_term p o t) = coefficient t * score s x (term_copy t) (term_output t).
Proof.
  intros s x t. unfold ensemble, score, numbered.
  rewrite (sum_ext _ _ (fun c => if term_copy t =? fst c
    then coefficient t * score_of s x (term_output t) (snd c) else 0)).
  - rewrite (sum_chosen _ (fun c => coefficient t * score_of s x (term_output t) c)).
    rewrite Z.sub_0_r. destruct (at_index (copies s) (term_copy t)); lia.
  - intros [p c] _. unfold tree_counts, counted, of_term. simpl. destruct (term_copy t =? p); simpl.
    + unfold score_of, adds. rewrite <- sum_scale. apply sum_ext. intros u _. rewrite <- sum_scale. apply sum_ext.
      intros q _. rewrite Z.eqb_sym. destruct (fst q =? term_output t); lia.
    + apply sum_of_zeros. intros u _. apply sum_of_zeros. reflexivity.
Qed.

Lemma ensemble_terms : forall s x l, ensemble s x (fun p o => sum (of_term p o) l)
  = sum (fun t => coefficient t * score s x (term_copy t) (term_output t)) l.
Proof.
  induction l as [|t l IH]; simpl; [apply ensemble_zero|].
  rewrite ensemble_plus, IH, ensemble_term. reflexivity.
Qed.

Definition price_of (x : point) (r : row) : Z := sum (fun c => value_at (price c) (x (cost_variable c))) (costs r).

Theorem rows_are_ensemble : forall s x w, sum (fun q => fst q * left_over s x (snd q)) w
  = sum (fun q => fst q * constant (snd q)) w + ensemble s x (share w) + sum (fun q => fst q * price_of x (snd q)) w.
Proof.
  intros s x w. induction w as [|[k r] w IH].
  - simpl. unfold share. simpl. rewrite ensemble_zero. reflexivity.
  - change (ensemble s x (share ((k, r) :: w)))
      with (ensemble s x (fun p o => k * sum (of_term p o) (terms r) + share w p o)).
    rewrite (ensemble_plus s x (fun p o => k * sum (of_term p o) (terms r))), ensemble_scale, ensemble_terms.
    simpl. rewrite IH. unfold left_over, price_of. lia.
Qed.

(* Rows that hold, weighed by numbers of at least 0, are at least 0 together. *)
Lemma weighted_rows_hold : forall s x weights l, forallb (Z.leb 0) weights = true ->
  Forall (fun r => 0 <= left_over s x r) l -> 0 <= sum (fun q => fst q * left_over s x (snd q)) (combine weights l).
Proof.
  induction weights as [|w ws IH]; intros [|r l] W H; simpl; try lia.
  simpl in W. apply andb_true_iff in W as [W0 W]. apply Z.leb_le in W0. inversion H; subst.
  assert (0 <= w * left_over s x r) by (apply Z.mul_nonneg_nonneg; assumption).
  specialize (IH l W ltac:(assumption)). lia.
Qed.
