(* Factors: what one tree, at one copy or several, may contribute at most in a box, with messages about its scope. *)

From Coq Require Import ZArith List Bool Lia.
From Treesens Require Import Lists Cells Steps Statement Ways.
From Treesens Require Export Slots.
Import ListNotations.
Open Scope Z_scope.

(* `alike`: all copies reach the same leaf. `shut`: an order or a clause excludes the whole domain. *)
Record factor := {
  group : list (Z * copy);
  feeds : list Z;
  trunk : tree Z (list Z);
  scope : list Z;
  alike : bool;
  shut : bool;
  ways : tree nat (option (list (list Z)))
}.

Fixpoint features {L : Type} (t : tree Z L) : list Z :=
  match t with Leaf _ => [] | Node f _ a b => f :: features a ++ features b end.

Definition distinct (l : list Z) : list Z :=
  fold_right (fun v found => if existsb (Z.eqb v) found then found else v :: found) [] l.

Definition variables_in {L : Type} (t : tree Z L) (c : copy) : option (list Z) :=
  options (map (at_index (variable_of c)) (distinct (features t))).

Definition same_values (a b : option (list Z)) : bool :=
  match a, b with Some l, Some m => if list_eq_dec Z.eq_dec l m then true else false | _, _ => false end.

Definition both_alike {L : Type} (t : tree Z L) (g : list (Z * copy)) : bool :=
  match g with
  | [(_, c); (_, e)] => same_values (variables_in t c) (variables_in t e)
  | _ => false
  end.

Definition make_factor (s : statement) (g : list (Z * copy)) (t : scored) : option factor :=
  let used := flat_map (fun c => match variables_in (grown t) (snd c) with Some l => l | None => [] end) g in
  let sc := distinct used in
  match options (map (fun c => localise (locate sc (snd c)) (grown t)) g), options (map (at_index (domain s)) sc) with
  | Some ts, Some b =>
      let r := rules_of s sc in
      Some {| group := g; feeds := outputs t; trunk := grown t; scope := sc; alike := both_alike (grown t) g;
              shut := excluded r b; ways := combine_ways r ts b [] |}
  | _, _ => None
  end.

(* The leaves that the copies reach. *)
Definition values (f : factor) (x : point) : list (list Z) :=
  map (fun c => reach (trunk f) (cell_of (snd c) x)) (group f).

Record fits (f : factor) (x : point) : Prop := {
  ways_reached : reach (ways f) (local (scope f) x) = Some (values f x);
  values_alike : alike f = true -> exists v, values f x = [v; v];
  not_shut : shut f = false
}.

Lemma in_distinct : forall v l, In v l -> In v (distinct l).
Proof.
  induction l as [|w l IH]; simpl; [tauto|]. intros [->|H]; destruct (existsb _ _) eqn:E; simpl; auto.
  apply existsb_exists in E as [u [U Q]]. apply Z.eqb_eq in Q. subst u. assumption.
Qed.

Lemma reach_ext : forall L (t : tree Z L) y z, (forall f, In f (features t) -> y f = z f) -> reach t y = reach t z.
Proof.
  induction t as [v|f side a IHa b IHb]; simpl; intros y z H; [reflexivity|].
  rewrite (H f) by auto. rewrite (IHa y z), (IHb y z) by (intros; apply H; auto with datatypes). reflexivity.
Qed.

Lemma both_alike_sound : forall L (t : tree Z L) g x, both_alike t g = true ->
  exists v, map (fun c : Z * copy => reach t (cell_of (snd c) x)) g = [v; v].
Proof.
  intros L t g x H. destruct g as [|[p c] [|[q e] [|]]]; try discriminate. simpl in *.
  unfold same_values in H. destruct (variables_in t c) as [l|] eqn:C; [|discriminate].
  destruct (variables_in t e) as [m|] eqn:E; [|discriminate].
  destruct (list_eq_dec Z.eq_dec l m) as [<-|]; [|discriminate].
  exists (reach t (cell_of c x)). replace (reach t (cell_of e x)) with (reach t (cell_of c x)); [reflexivity|].
  apply reach_ext. intros f F. apply in_distinct in F.
  unfold variables_in in *. apply options_map in C. apply options_map in E. clear H.
  revert l C E F. induction (distinct (features t)) as [|g fs IH]; intros l C E F; [contradiction|].
  inversion C as [|? v ? l' C1 C2]; subst. inversion E as [|? w ? ? E1 E2]; subst.
  destruct F as [->|F]; [|eauto]. unfold cell_of. rewrite C1, E1. reflexivity.
Qed.

Lemma in_box_scope : forall x d sc b, within d x -> options (map (at_index d) sc) = Some b -> in_box (local sc x) b.
Proof.
  intros x d sc b D H. apply options_map in H. revert b H. induction sc as [|v sc IH]; intros b H j c N.
  - inversion H; subst. destruct j; discriminate.
  - inversion H as [|? e ? b' E R]; subst. destruct j as [|j]; simpl in *.
    + injection N as <-. apply (D _ _ E).
    + apply (IH b' R j c N).
Qed.

Theorem make_factor_fits : forall s g t f x, satisfies s x -> make_factor s g t = Some f -> fits f x.
Proof.
  intros s g t f x S H. unfold make_factor in H.
  set (sc := distinct _) in H. clearbody sc. destruct (options (map _ g)) as [ts|] eqn:T; [|discriminate].
  destruct (options (map _ sc)) as [b|] eqn:B; [|discriminate]. injection H as <-.
  assert (K := keeps_rules s sc x S). assert (I := in_box_scope x _ sc b (in_domain s x S) B).
  constructor; unfold values; simpl.
  - rewrite (reach_ways _ _ (local sc x)) by auto. simpl. f_equal.
    apply options_map in T. clear -T. induction T as [|c u g0 ts0 E T IH]; simpl; auto.
    rewrite (reach_localise _ _ _ x _ _ E), IH. reflexivity.
  - apply both_alike_sound.
  - exact (not_excluded _ _ _ K I).
Qed.

Definition silent (messages : list step) : bool := forallb (fun m => match m with [] => true | _ => false end) messages.

(* Whether the weights of two copies sum to 0, so that equal leaves cancel. *)
Fixpoint opposite (a b : list Z) : bool :=
  match a, b with
  | [], [] => true
  | x :: a', y :: b' => (x + y =? 0) && opposite a' b'
  | _, _ => false
  end.

Definition cancelling (weights : list (list Z)) : bool := match weights with [a; b] => opposite a b | _ => false end.

Definition idle (weights : list (list Z)) : bool := forallb (forallb (fun w => w =? 0)) weights.

(* At most this is the weighted value of a factor with its messages where the scope lies in the box. *)
Definition at_most (f : factor) (weights : list (list Z)) (messages : list step) (b : box) : option Z :=
  let cancels := alike f && cancelling weights in
  if silent messages && (cancels || idle weights) then Some 0
  else
    let slots := map (fun q => slot_of (fst q) (snd q)) (combine messages b) in
    let now := sum peak slots in
    if cancels then if shut f then None else Some now
    else most weights (ways f) slots now.

(* What the messages of a factor say at a point. *)
Definition said (f : factor) (messages : list step) (x : point) : Z :=
  sum (fun q => value_at (fst q) (x (snd q))) (combine messages (scope f)).

Lemma dot_zero : forall weights v, forallb (fun w => w =? 0) weights = true -> dot weights v = 0.
Proof.
  induction weights as [|w ws IH]; intros [|v vs] H; simpl in *; try reflexivity.
  apply andb_true_iff in H as [W H]. apply Z.eqb_eq in W. subst w. rewrite IH by assumption. lia.
Qed.

Lemma dots_idle : forall weights v, idle weights = true -> dots weights v = 0.
Proof.
  induction weights as [|w ws IH]; intros [|v vs] H; simpl in *; try reflexivity.
  apply andb_true_iff in H as [W H]. rewrite (dot_zero _ _ W), IH by assumption. reflexivity.
Qed.

Lemma dot_opposite : forall a b v, opposite a b = true -> dot a v + dot b v = 0.
Proof.
  induction a as [|x a IH]; intros [|y b] [|z v] H; simpl in *; try discriminate; try reflexivity.
  apply andb_true_iff in H as [E H]. apply Z.eqb_eq in E. specialize (IH b v H). nia.
Qed.

Lemma said_nothing : forall messages sc (x : point), silent messages = true ->
  sum (fun q => value_at (fst q) (x (snd q))) (combine messages sc) = 0.
Proof.
  induction messages as [|m ms IH]; intros [|v sc] x H; simpl in *; try reflexivity.
  destruct m; [|discriminate]. rewrite IH by assumption. reflexivity.
Qed.

Lemma slots_at_point : forall messages sc b (x : point), in_box (local sc x) b -> length b = length sc ->
  let slots := map (fun q => slot_of (fst q) (snd q)) (combine messages b) in
  in_slots slots (local sc x) /\
  sum peak slots + gain slots (local sc x) = sum (fun q => value_at (fst q) (x (snd q))) (combine messages sc).
Proof.
  induction messages as [|m ms IH]; intros [|v sc] [|c b] x B E; simpl in *; try discriminate;
    try (split; [intros [|j] s N; discriminate|reflexivity]).
  assert (B' : in_box (local sc x) b) by (intros j e N; exact (B (S j) e N)).
  destruct (IH sc b x B' ltac:(lia)) as [I G]. split.
  - intros [|j] s N; simpl in N; [injection N as <-; simpl|exact (I j s N)].
    assert (M := B O c eq_refl). simpl in M. auto using value_best.
  - change (fun j => local (v :: sc) x (S j)) with (local sc x). change (local (v :: sc) x 0) with (x v). lia.
Qed.

Theorem at_most_sound : forall f weights messages b x, fits f x -> in_box (local (scope f) x) b ->
  length b = length (scope f) ->
  exists r, at_most f weights messages b = Some r /\ dots weights (values f x) + said f messages x <= r.
Proof.
  intros f weights messages b x F B E. unfold at_most, said.
  assert (C : alike f && cancelling weights = true -> dots weights (values f x) = 0).
  { intros H. apply andb_true_iff in H as [A N]. destruct (values_alike f x F A) as [v ->].
    destruct weights as [|p [|q [|]]]; try discriminate. simpl in *. assert (D := dot_opposite p q v N). lia. }
  set (cancels := alike f && _) in *.
  destruct (silent messages && _) eqn:Q.
  - apply andb_true_iff in Q as [M Q]. exists 0. split; auto. rewrite (said_nothing _ _ _ M).
    apply orb_true_iff in Q as [Q|Q]; [rewrite (C Q); lia|rewrite (dots_idle _ _ Q); lia].
  - destruct (slots_at_point messages (scope f) b x B E) as [I G]. set (slots := map _ (combine messages b)) in *.
    destruct cancels.
    + rewrite (not_shut f x F). eexists. split; eauto. rewrite (C eq_refl).
      assert (H := gain_not_positive _ _ I). lia.
    + destruct (most_sound weights _ _ (ways f) slots (sum peak slots) I (ways_reached f x F)) as [r [R L]].
      exists r. split; auto. lia.
Qed.
