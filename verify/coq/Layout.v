(* A layout cuts every feature into cells and numbers the variables. Nobody has to trust it: it is checked here that it fits the
   statement, so that what holds of values holds of their cells. *)

From Coq Require Import ZArith QArith List Bool Lia.
From Treesens Require Import Lists Cells.
From Treesens Require Export Translate.
From Treesens Require Statement Values.
Import ListNotations.
Open Scope Z_scope.

(* Cuts of every feature, the variable of every feature at every point, and of which point and feature a variable is. *)
Record layout := { cuts : list (list Z); variables : list (list Z); owners : list (Z * Z) }.

Definition right_owner (s : Values.statement) (y : layout) (p : Z) (q : Z * Z) : bool :=
  match at_index (owners y) (snd q) with
  | Some (p', f') => (f' =? fst q) && ((p' =? p) || Values.shared s (fst q))
  | None => false
  end.

Definition fits_layout (s : Values.statement) (y : layout) : bool :=
  forallb ascending (cuts y) &&
  forallb (fun q => Nat.eqb (length (snd q)) (length (cuts y)) && forallb (right_owner s y (fst q)) (number 0 (snd q)))
          (number 0 (variables y)).

(* The variable of a feature at a point, and the cuts of the feature. *)
Definition place (y : layout) (p f : Z) : option (Z * list Z) :=
  match at_index (variables y) p, at_index (cuts y) f with
  | Some l, Some c => match at_index l f with Some v => Some (v, c) | None => None end
  | _, _ => None
  end.

Definition cells_of (s : Values.statement) (y : layout) (x : Values.inputs) : Statement.point := fun v =>
  match at_index (owners y) v with
  | Some (p, f) => match at_index (cuts y) f with Some l => cell_of_value (Values.unit s) l (x p f) | None => 0 end
  | None => 0
  end.

Lemma forallb_number : forall (A : Type) (P : Z * A -> bool) l from i a,
  forallb P (number from l) = true -> at_index l i = Some a -> P (from + i, a) = true.
Proof.
  induction l as [|b l IH]; intros from i a F E; [discriminate|]. simpl in *. apply andb_true_iff in F as [Q F].
  destruct (Z.eqb_spec i 0) as [->|N].
  - injection E as <-. rewrite Z.add_0_r. assumption.
  - replace (from + i) with (from + 1 + (i - 1)) by lia. eauto.
Qed.

Lemma forallb_at : forall (A : Type) (P : A -> bool) l i a, forallb P l = true -> at_index l i = Some a -> P a = true.
Proof.
  induction l as [|b l IH]; simpl; intros i a F E; [discriminate|]. apply andb_true_iff in F as [Q F].
  destruct (i =? 0); [injection E as <-; assumption|eauto].
Qed.

Lemma place_cell : forall s y x p f v c, fits_layout s y = true -> Values.satisfies s x -> place y p f = Some (v, c) ->
  cells_of s y x v = cell_of_value (Values.unit s) c (x p f) /\ ascending c = true.
Proof.
  intros s y x p f v c F S P. unfold place in P.
  destruct (at_index (variables y) p) as [l|] eqn:L; [|discriminate].
  destruct (at_index (cuts y) f) as [c'|] eqn:C; [|discriminate].
  destruct (at_index l f) as [v'|] eqn:E; [|discriminate]. injection P as -> ->.
  unfold fits_layout in F. apply andb_true_iff in F as [A F]. split; [|exact (forallb_at _ _ _ _ _ A C)].
  apply (forallb_number _ _ _ _ _ _ F) in L. simpl in L. apply andb_true_iff in L as [_ L].
  apply (forallb_number _ _ _ _ _ _ L) in E. unfold right_owner in E. simpl in E. unfold cells_of.
  destruct (at_index (owners y) v) as [[p' f']|]; [|discriminate].
  apply andb_true_iff in E as [E1 E2]. apply Z.eqb_eq in E1. subst f'. rewrite C.
  apply orb_true_iff in E2 as [E2|E2]; [apply Z.eqb_eq in E2; congruence|].
  apply cell_of_same. apply (Values.points_agree s x S f E2).
Qed.

Lemma place_there : forall s y p l f c, fits_layout s y = true -> at_index (variables y) p = Some l ->
  at_index (cuts y) f = Some c -> exists v, at_index l f = Some v /\ place y p f = Some (v, c).
Proof.
  intros s y p l f c F L C. unfold place. rewrite L, C. unfold fits_layout in F. apply andb_true_iff in F as [_ F].
  apply (forallb_number _ _ _ _ _ _ F) in L. simpl in L. apply andb_true_iff in L as [N _]. apply Nat.eqb_eq in N.
  clear F. assert (G : forall (l' : list (list Z)) i d,
    length l = length l' -> at_index l' i = Some d -> exists v, at_index l i = Some v).
  { clear. induction l as [|a l IH]; intros [|b l'] i d N E; try discriminate. simpl in *.
    destruct (i =? 0); [eauto|]. apply (IH l' (i - 1) d); [lia|assumption]. }
  destruct (G (cuts y) f c N C) as [v Ev]. rewrite Ev. eauto.
Qed.

(* Sets of values at places, as cells of variables. *)
Definition resolve (u : positive) (y : layout) (a : Values.place_set) : option (Z * cells) :=
  match place y (Values.at_point a) (Values.at_feature a) with
  | Some (v, c) => Some (v, set_cells u c (Values.allowed a))
  | None => None
  end.

Lemma resolve_holds : forall s y x a q,
  fits_layout s y = true -> Values.satisfies s x -> resolve (Values.unit s) y a = Some q ->
  Values.place_holds s x a -> Statement.part_holds (cells_of s y x) q.
Proof.
  intros s y x a q F S R H. unfold resolve in R.
  destruct (place y _ _) as [[v c]|] eqn:P; [|discriminate]. injection R as <-. unfold Statement.part_holds. simpl.
  destruct (place_cell s y x _ _ _ _ F S P) as [-> A]. apply member_set_cells; assumption.
Qed.

Definition translate_order (y : layout) (o : Z * Z * Z) : option (Z * Z * list Z) :=
  match o with (p, q, f) => match place y p f, place y q f with
                            | Some (v, c), Some (w, _) => Some (v, w, c)
                            | _, _ => None end end.

(* A missing value is in no order. *)
Definition not_missing (o : Z * Z * list Z) : list (Z * cells) :=
  match o with (v, w, c) => let known := [(0, Z.of_nat (length c))] in [(v, known); (w, known)] end.

Lemma order_translated : forall s y x o r, fits_layout s y = true -> Values.satisfies s x -> Values.order_holds x o ->
  translate_order y o = Some r ->
  Statement.order_holds (cells_of s y x) (fst r) /\ Forall (Statement.part_holds (cells_of s y x)) (not_missing r).
Proof.
  intros s y x [[p q] f] r F S H T. unfold translate_order in T.
  destruct (place y p f) as [[v c]|] eqn:P; [|discriminate].
  destruct (place y q f) as [[w e]|] eqn:Q; [|discriminate]. injection T as <-.
  assert (E : e = c). { unfold place in P, Q. destruct (at_index (cuts y) f) as [d|];
    destruct (at_index (variables y) p) as [l|]; destruct (at_index (variables y) q) as [m|]; try discriminate.
    destruct (at_index l f); [|discriminate]. destruct (at_index m f); [|discriminate]. congruence. }
  subst e. destruct (place_cell s y x _ _ _ _ F S P) as [X A]. destruct (place_cell s y x _ _ _ _ F S Q) as [Y _].
  simpl in H. destruct (x p f) as [a|]; [|contradiction]. destruct (x q f) as [b|]; [|contradiction].
  unfold Statement.order_holds, not_missing, Statement.part_holds. simpl fst. simpl snd. rewrite X, Y. simpl. split.
  - apply cell_mono. apply floor_mono. assumption.
  - assert (N : forall z, member (cell c z) [(0, Z.of_nat (length c))] = true).
    { intros z. assert (R := cell_range c z). unfold member, in_run. simpl. rewrite orb_false_r.
      apply andb_true_iff. rewrite !Z.leb_le. lia. }
    repeat constructor; simpl; rewrite ?X, ?Y; apply N.
Qed.

Fixpoint restrict (d : list cells) (l : list (Z * cells)) : option (list cells) :=
  match l with
  | [] => Some d
  | (v, c) :: rest =>
      match at_index d v with
      | Some e => match replace d v (meet e c) with Some changed => restrict changed rest | None => None end
      | None => None
      end
  end.

Lemma within_restrict : forall x l d d', Statement.within d x -> Forall (Statement.part_holds x) l ->
  restrict d l = Some d' -> Statement.within d' x.
Proof.
  induction l as [|[v c] l IH]; simpl; intros d d' D F R; [injection R as <-; assumption|].
  inversion F; subst. destruct (at_index d v) as [e|] eqn:E; [|discriminate].
  destruct (replace d v (meet e c)) as [n|] eqn:N; [|discriminate]. apply (IH n); auto.
  intros w b A. rewrite (at_replace _ _ _ _ _ w N) in A. destruct (Z.eqb_spec w v) as [->|]; [|eauto].
  injection A as <-. apply member_meet; [apply (D _ _ E)|assumption].
Qed.

Definition owner_cuts (y : layout) : option (list (list Z)) :=
  options (map (fun o => at_index (cuts y) (snd o)) (owners y)).

Definition all_cells (c : list Z) : cells := [(0, missing_cell c)].

Lemma within_all : forall s y x l, owner_cuts y = Some l -> Statement.within (map all_cells l) (cells_of s y x).
Proof.
  intros s y x l H v c A. unfold cells_of. apply options_map in H. revert v A.
  induction H as [|[p f] d o l E H IH]; intros v A; [discriminate|]. simpl in *.
  destruct (v =? 0); [|apply IH; assumption].
  rewrite E. injection A as <-. unfold all_cells, member, in_run. simpl. rewrite orb_false_r. apply andb_true_iff.
  rewrite !Z.leb_le. unfold missing_cell. destruct (x p f) as [q|]; simpl; [|unfold missing_cell; lia].
  assert (R := cell_range d (floor (Values.unit s) q)). lia.
Qed.
