(* All ways to go through the trees of a factor together, as one tree whose leaves hold the values of all copies.

   A factor is one tree at one copy or at several copies. Its scope are the variables that its tests are about; within the
   factor they are numbered by their places in the scope. *)

From Coq Require Import ZArith List Bool Lia.
From Treesens Require Import Lists Cells Statement.
Import ListNotations.
Open Scope Z_scope.

(* The cell of the variable at a place of the scope. *)
Definition local (scope : list Z) (x : point) (j : nat) : Z :=
  match nth_error scope j with Some v => x v | None => 0 end.

Definition locate (scope : list Z) (c : copy) (f : Z) : option nat :=
  match at_index (variable_of c) f with Some v => index_of v scope | None => None end.

(* A tree of a copy about places of the scope instead of features. *)
Fixpoint localise {L : Type} (find : Z -> option nat) (t : tree Z L) : option (tree nat L) :=
  match t with
  | Leaf v => Some (Leaf v)
  | Node f side a b =>
      match find f, localise find a, localise find b with
      | Some j, Some a', Some b' => Some (Node j side a' b')
      | _, _, _ => None
      end
  end.

Lemma reach_localise : forall L scope c x (t : tree Z L) u, localise (locate scope c) t = Some u ->
  reach u (local scope x) = reach t (cell_of c x).
Proof.
  induction t as [v|f side a IHa b IHb]; simpl; intros u H; [injection H as <-; reflexivity|].
  destruct (locate scope c f) as [j|] eqn:E; [|discriminate].
  destruct (localise (locate scope c) a) as [a'|]; [|discriminate].
  destruct (localise (locate scope c) b) as [b'|]; [|discriminate]. injection H as <-. simpl.
  rewrite (IHa a'), (IHb b') by reflexivity.
  unfold locate, cell_of, local in *. destruct (at_index (variable_of c) f) as [v|]; [|discriminate].
  rewrite (nth_index_of _ _ _ E). reflexivity.
Qed.

(* The cells of the places: all that is known of a point. *)
Definition box := list cells.
Definition in_box (y : nat -> Z) (b : box) : Prop := forall j c, nth_error b j = Some c -> member (y j) c = true.

Lemma in_box_set : forall y b j c, in_box y b -> member (y j) c = true -> in_box y (set_nth j c b).
Proof.
  intros y b j c B M i e H. rewrite nth_set_nth in H. destruct (Nat.eqb_spec i j) as [->|N]; [|eauto].
  destruct (nth_error b j); [|discriminate]. injection H as <-. assumption.
Qed.

(* Goes on with `k` at every leaf of a tree that a point of the box can reach. *)
Fixpoint descend {A L : Type} (t : tree nat A) (b : box) (k : A -> box -> tree nat L) : tree nat L :=
  match t with
  | Leaf v => k v b
  | Node j side t1 t2 =>
      match nth_error b j with
      | None => Node j side (descend t1 b k) (descend t2 b k)
      | Some here =>
          let inside := meet here side in
          let rest := minus here side in
          if is_empty inside then descend t2 (set_nth j rest b) k
          else if is_empty rest then descend t1 (set_nth j inside b) k
          else Node j side (descend t1 (set_nth j inside b) k) (descend t2 (set_nth j rest b) k)
      end
  end.

Lemma reach_descend : forall (A L : Type) y (result : A -> L) t b k,
  in_box y b -> (forall v b', in_box y b' -> reach (k v b') y = result v) ->
  reach (descend t b k) y = result (reach t y).
Proof.
  intros A L y result. induction t as [v|j side t1 IH1 t2 IH2]; simpl; intros b k B K; auto.
  destruct (nth_error b j) as [here|] eqn:H.
  - assert (M := B _ _ H). destruct (member (y j) side) eqn:S.
    + assert (I := member_meet _ _ _ M S). rewrite (member_not_empty _ _ I).
      assert (B' := in_box_set y b j _ B I).
      destruct (is_empty (minus here side)); simpl; try rewrite S; auto.
    + assert (I := member_minus _ _ _ M S). rewrite (member_not_empty _ _ I).
      assert (B' := in_box_set y b j _ B I).
      destruct (is_empty (meet here side)); simpl; try rewrite S; auto.
  - simpl. destruct (member (y j) side); auto.
Qed.

(* Orders, and clauses of two parts, whose variables are in the scope, by places. *)
Record local_rules := { place_orders : list (nat * nat); place_clauses : list (list (nat * cells)) }.

Definition rules_of (s : statement) (scope : list Z) : local_rules := {|
  place_orders := flat_map (fun o => match index_of (fst o) scope, index_of (snd o) scope with
                                     | Some i, Some j => [(i, j)] | _, _ => [] end) (orders s);
  place_clauses := flat_map (fun c => match c with
                                      | [(v, a); (w, b)] => match index_of v scope, index_of w scope with
                                                            | Some i, Some j => [[(i, a); (j, b)]] | _, _ => [] end
                                      | _ => [] end) (clauses s)
|}.

Definition breaks_order (b : box) (o : nat * nat) : bool :=
  match nth_error b (fst o), nth_error b (snd o) with
  | Some lower, Some upper => highest upper <? lowest lower
  | _, _ => false
  end.

Definition breaks_part (b : box) (q : nat * cells) : bool :=
  match nth_error b (fst q) with Some here => is_empty (meet here (snd q)) | None => false end.

(* Whether an order, or a clause of two parts, excludes all of a box. *)
Definition excluded (r : local_rules) (b : box) : bool :=
  existsb (breaks_order b) (place_orders r) || existsb (forallb (breaks_part b)) (place_clauses r).

Definition keeps (r : local_rules) (y : nat -> Z) : Prop :=
  Forall (fun o => y (fst o) <= y (snd o)) (place_orders r) /\
  Forall (Exists (fun q => member (y (fst q)) (snd q) = true)) (place_clauses r).

Lemma local_index : forall scope x v j, index_of v scope = Some j -> local scope x j = x v.
Proof. intros. unfold local. rewrite (nth_index_of _ _ _ H). reflexivity. Qed.

Lemma keeps_rules : forall s scope x, satisfies s x -> keeps (rules_of s scope) (local scope x).
Proof.
  intros s scope x S. split; apply Forall_forall; simpl; intros q Q; apply in_flat_map in Q as [o [O Q]].
  - destruct (index_of (fst o) scope) as [i|] eqn:I; [|contradiction].
    destruct (index_of (snd o) scope) as [j|] eqn:J; [|contradiction]. destruct Q as [<-|[]]. simpl.
    rewrite (local_index _ _ _ _ I), (local_index _ _ _ _ J).
    exact (proj1 (Forall_forall _ _) (orders_hold s x S) o O).
  - assert (H := proj1 (Forall_forall _ _) (clauses_hold s x S) o O).
    destruct o as [|[v a] [|[w e] [|]]]; try contradiction.
    destruct (index_of v scope) as [i|] eqn:I; [|contradiction].
    destruct (index_of w scope) as [j|] eqn:J; [|contradiction]. destruct Q as [<-|[]].
    inversion H as [? ? P|? ? P]; subst.
    + left. simpl. rewrite (local_index _ _ _ _ I). exact P.
    + right. left. simpl. rewrite (local_index _ _ _ _ J). inversion P as [? ? R|? ? R]; [exact R|inversion R].
Qed.

Lemma not_excluded : forall r b y, keeps r y -> in_box y b -> excluded r b = false.
Proof.
  intros r b y [O C] B. apply orb_false_iff. rewrite Forall_forall in O. rewrite Forall_forall in C. split.
  - destruct (existsb _ _) eqn:E; auto. apply existsb_exists in E as [[i j] [I E]]. specialize (O _ I). simpl in O.
    unfold breaks_order in E. simpl in E.
    destruct (nth_error b i) as [lower|] eqn:L; [|discriminate].
    destruct (nth_error b j) as [upper|] eqn:U; [|discriminate].
    apply Z.ltb_lt in E. assert (F := member_bounds _ _ (B _ _ L)). assert (G := member_bounds _ _ (B _ _ U)). lia.
  - destruct (existsb _ (place_clauses r)) eqn:E; auto. apply existsb_exists in E as [c [I E]].
    specialize (C _ I). apply Exists_exists in C as [[j s] [J M]].
    apply (proj1 (forallb_forall _ _)) with (x := (j, s)) in E; auto.
    unfold breaks_part in E. simpl in *. destruct (nth_error b j) as [here|] eqn:H; [|discriminate].
    rewrite (member_not_empty (y j)) in E; [discriminate|]. apply member_meet; auto.
Qed.

(* One tree after the other; the values of those before are in `found`. *)
Fixpoint combine_ways {A : Type} (r : local_rules) (ts : list (tree nat A)) (b : box) (found : list A)
  : tree nat (option (list A)) :=
  match ts with
  | [] => Leaf (if excluded r b then None else Some found)
  | t :: rest => descend t b (fun v b' => combine_ways r rest b' (found ++ [v]))
  end.

Theorem reach_ways : forall A r y (ts : list (tree nat A)) b found, keeps r y -> in_box y b ->
  reach (combine_ways r ts b found) y = Some (found ++ map (fun t => reach t y) ts).
Proof.
  induction ts as [|t ts IH]; simpl; intros b found K B.
  - rewrite (not_excluded r b y K B), app_nil_r. reflexivity.
  - rewrite (reach_descend _ _ y (fun v => Some (found ++ v :: map (fun t => reach t y) ts)) t b); auto.
    intros v b' B'. rewrite IH by auto. rewrite <- app_assoc. reflexivity.
Qed.
