(* Trees, sets and costs over values, as trees, sets and steps over cells. *)

From Coq Require Import ZArith QArith List Bool Lia.
From Treesens Require Import Lists Cells Steps.
From Treesens Require Export Cuts.
From Treesens Require Statement Values.
Import ListNotations.
Open Scope Z_scope.

(* Trees: the cells that go left. Where a test changes its mind there has to be a cut. *)
Definition if_missing (l : list Z) (b : bool) : cells := if b then [(missing_cell l, missing_cell l)] else [].

Definition code_cells (u : positive) (l : list Z) (code : Z) : cells :=
  piece (cell l (code * Zpos u)) (cell l ((code + 1) * Zpos u) - 1).

Definition test_cells (u : positive) (l : list Z) (asks : Values.test) : cells :=
  match asks with
  | Values.Below threshold => piece 0 (cell l threshold - 1)
  | Values.Codes codes => flat_map (code_cells u l) codes
  end.

Definition has_cuts (u : positive) (l : list Z) (asks : Values.test) : bool :=
  match asks with
  | Values.Below threshold => is_cut l threshold
  | Values.Codes codes => forallb (fun c => is_cut l (c * Zpos u) && is_cut l ((c + 1) * Zpos u)) codes
  end.

Fixpoint translate_tree (u : positive) (all : list (list Z)) (t : Values.tree) : option (Statement.tree Z (list Z)) :=
  match t with
  | Values.Leaf v => Some (Statement.Leaf v)
  | Values.Node f asks m a b =>
      match at_index all f, translate_tree u all a, translate_tree u all b with
      | Some l, Some a', Some b' =>
          if has_cuts u l asks then Some (Statement.Node f (test_cells u l asks ++ if_missing l m) a' b') else None
      | _, _, _ => None
      end
  end.

Lemma member_piece : forall k a b, member k (piece a b) = (a <=? k) && (k <=? b).
Proof.
  intros k a b. unfold piece. destruct (Z.leb_spec a b).
  - unfold member, in_run. simpl. apply orb_false_r.
  - simpl. symmetry. destruct (Z.leb_spec a k); simpl; auto. apply Z.leb_gt. lia.
Qed.

Lemma Qle_bool_whole : forall u q c, Qle_bool (c # 1) q = (c * Zpos u <=? floor u q).
Proof.
  intros u q c. rewrite <- Qle_bool_floor. apply eq_true_iff_eq. rewrite !Qle_bool_iff.
  unfold Qle. simpl. nia.
Qed.

Lemma member_code : forall u l code q, ascending l = true -> is_cut l (code * Zpos u) = true ->
  is_cut l ((code + 1) * Zpos u) = true -> member (cell l (floor u q)) (code_cells u l code) = Values.has_code q code.
Proof.
  intros u l code q A B C. unfold code_cells, Values.has_code. rewrite member_piece, !(Qle_bool_whole u).
  apply is_cut_in in B. apply is_cut_in in C. assert (E := cell_at_cut l _ (floor u q) A B).
  assert (F := cell_at_cut l _ (floor u q) A C). rewrite <- Z.ltb_antisym, F. f_equal.
  - rewrite !Z.leb_antisym, E. reflexivity.
  - apply eq_true_iff_eq. rewrite Z.leb_le, Z.ltb_lt. lia.
Qed.

Lemma not_missing_cell : forall l k asks u, k = missing_cell l -> member k (test_cells u l asks) = false.
Proof.
  intros l k asks u ->. assert (P : forall a c, member (missing_cell l) (piece a (cell l c - 1)) = false).
  { intros a c. rewrite member_piece. assert (R := cell_range l c). apply andb_false_iff. right. apply Z.leb_gt.
    unfold missing_cell. lia. }
  destruct asks as [c|codes]; [apply P|]. simpl. induction codes as [|c codes IH]; [reflexivity|].
  simpl. rewrite member_app, IH. unfold code_cells. rewrite P. reflexivity.
Qed.

Lemma member_left : forall u l asks m x, ascending l = true -> has_cuts u l asks = true ->
  member (cell_of_value u l x) (test_cells u l asks ++ if_missing l m) = Values.goes_left u asks m x.
Proof.
  intros u l asks m x A C. rewrite member_app. destruct x as [q|]; cbn [cell_of_value Values.goes_left].
  - assert (R := cell_range l (floor u q)). replace (member _ (if_missing l m)) with false.
    + rewrite orb_false_r. destruct asks as [c|codes]; cbn [test_cells has_cuts] in *.
      * rewrite member_piece, Qle_bool_floor, <- Z.ltb_antisym, (cell_at_cut l c (floor u q) A (is_cut_in _ _ C)).
        rewrite (proj2 (Z.leb_le 0 _)), andb_true_l by lia. apply eq_true_iff_eq. rewrite Z.leb_le, Z.ltb_lt. lia.
      * induction codes as [|c codes IH]; [reflexivity|]. simpl in C. apply andb_true_iff in C as [C D].
        apply andb_true_iff in C as [C E]. simpl. rewrite member_app, IH by assumption.
        rewrite member_code by assumption. reflexivity.
    + symmetry. unfold if_missing, missing_cell. destruct m; auto. unfold member, in_run. simpl. rewrite orb_false_r.
      apply andb_false_iff. left. apply Z.leb_gt. lia.
  - rewrite not_missing_cell by reflexivity. unfold if_missing. destruct m; auto.
    unfold member, in_run. simpl. rewrite !Z.leb_refl. reflexivity.
Qed.

Lemma ascending_at : forall all f l, forallb ascending all = true -> at_index all f = Some l -> ascending l = true.
Proof.
  induction all as [|c all IH]; intros f l A L; [discriminate|]. simpl in *. apply andb_true_iff in A as [A B].
  destruct (f =? 0); [injection L as <-; assumption|eauto].
Qed.

Lemma reach_translated : forall u all t t' (y : Z -> Values.value) (k : Z -> Z), forallb ascending all = true ->
  translate_tree u all t = Some t' -> (forall f l, at_index all f = Some l -> k f = cell_of_value u l (y f)) ->
  Statement.reach t' k = Values.leaf_of u t y.
Proof.
  intros u all t t' y k A E K. revert t' E. induction t as [v|f asks m a IHa b IHb]; simpl; intros t' E.
  - injection E as <-. reflexivity.
  - destruct (at_index all f) as [l|] eqn:L; [|discriminate].
    destruct (translate_tree u all a) as [a'|]; [|discriminate].
    destruct (translate_tree u all b) as [b'|]; [|discriminate].
    destruct (has_cuts u l asks) eqn:C; [|discriminate]. injection E as <-. simpl.
    rewrite (K f l L), (member_left u l) by eauto using ascending_at.
    destruct (Values.goes_left u asks m (y f)); auto.
Qed.

(* Sets: the cells that may hold a value of the set. *)
Definition has_whole (u low high : Z) : bool := (- ((- low) / u)) * u <=? high.

Fixpoint whole_cells (u low high j : Z) (l : list Z) : cells :=
  match l with
  | [] => if has_whole u low high then [(j, j)] else []
  | c :: rest =>
      (if has_whole u low (Z.min high (c - 1)) then [(j, j)] else []) ++ whole_cells u (Z.max low c) high (j + 1) rest
  end.

Definition run_cells (u : positive) (l : list Z) (whole : bool) (r : Z * Z) : cells :=
  if fst r <=? snd r then
    if whole then whole_cells (Zpos u) (fst r) (snd r) 0 l else [(cell l (fst r), cell l (snd r))]
  else [].

Definition set_cells (u : positive) (l : list Z) (s : Values.value_set) : cells :=
  tidy (flat_map (run_cells u l (Values.whole_only s)) (Values.runs s)
        ++ map (fun v => (cell l v, cell l v)) (Values.singles s)
        ++ if_missing l (Values.missing_too s)).

Lemma member_single : forall k, member k [(k, k)] = true.
Proof. intros. unfold member, in_run. simpl. rewrite Z.leb_refl. reflexivity. Qed.

Lemma has_whole_if : forall u low high n, 0 < u -> low <= n * u <= high -> has_whole u low high = true.
Proof.
  intros u low high n U [L H]. unfold has_whole. apply Z.leb_le.
  assert (- n <= (- low) / u) by (apply Z.div_le_lower_bound; lia). nia.
Qed.

Lemma whole_cells_member : forall u n l low high j, 0 < u -> ascending l = true -> low <= n * u <= high ->
  member (j + cell l (n * u)) (whole_cells u low high j l) = true.
Proof.
  intros u n. induction l as [|c l IH]; intros low high j U A H; cbn [cell whole_cells].
  - rewrite (has_whole_if u low high n U H), Z.add_0_r. apply member_single.
  - apply ascending_tail in A as [A _]. rewrite member_app. apply orb_true_iff.
    destruct (Z.ltb_spec (n * u) c).
    + left. rewrite (has_whole_if u low (Z.min high (c - 1)) n U) by lia. rewrite Z.add_0_r. apply member_single.
    + right. rewrite Z.add_assoc. apply IH; auto. lia.
Qed.

Lemma member_set_cells : forall u l s x, ascending l = true -> Values.in_set u s x ->
  member (cell_of_value u l x) (set_cells u l s) = true.
Proof.
  intros u l s x A H. unfold set_cells. apply member_tidy. rewrite !member_app. apply orb_true_iff.
  destruct x as [q|]; simpl in *.
  - destruct H as [[v [I E]]|[r [I [L [U W]]]]].
    + right. apply orb_true_iff. left. rewrite (floor_eq u q v E). apply member_in.
      exists (cell l v, cell l v). split; [|simpl; lia]. apply in_map_iff. eauto.
    + left. apply floor_spec in L. apply (floor_mono u) in U. rewrite floor_at in U.
      assert (M : member (cell l (floor u q)) (run_cells u l (Values.whole_only s) r) = true).
      { unfold run_cells. replace (fst r <=? snd r) with true by (symmetry; apply Z.leb_le; lia).
        destruct (Values.whole_only s).
        - destruct (W eq_refl) as [n N]. assert (F : floor u q = n * Zpos u).
          { apply floor_eq. rewrite N. unfold Qeq. simpl. lia. }
          rewrite F in *. apply (whole_cells_member (Zpos u) n l _ _ 0); auto; lia.
        - assert (P := cell_mono l _ _ L). assert (Q := cell_mono l _ _ U).
          unfold member, in_run. simpl. rewrite orb_false_r. apply andb_true_iff. rewrite !Z.leb_le. lia. }
      apply member_in in M as [p [P Q]]. apply member_in. exists p. split; auto. apply in_flat_map. eauto.
  - right. apply orb_true_iff. right. unfold if_missing. rewrite H. apply member_single.
Qed.

(* Costs: steps over cells. *)
Definition translate_steps (l : list Z) (c : Values.cost) : option step :=
  if forallb (fun p => is_cut l (fst p)) (Values.steps c) then
    Some ((0, Values.first c) :: map (fun p => (cell l (fst p), snd p)) (Values.steps c)
          ++ [(missing_cell l, Values.when_missing c)])
  else None.

Lemma value_translated : forall u l c f x, ascending l = true -> translate_steps l c = Some f ->
  value_at f (cell_of_value u l x) = Values.cost_of u c x.
Proof.
  intros u l c f x A E. unfold translate_steps in E. destruct (forallb _ _) eqn:F; [|discriminate]. injection E as <-.
  unfold value_at. simpl after. assert (R : 0 <= cell_of_value u l x).
  { destruct x as [q|]; simpl; [apply cell_range|unfold missing_cell; lia]. }
  destruct (Z.ltb_spec (cell_of_value u l x) 0); [lia|]. clear R H.
  unfold Values.cost_of. generalize (Values.first c) as d. revert F.
  induction (Values.steps c) as [|[s v] p IH]; intros F d.
  - simpl. destruct x as [q|]; simpl.
    + assert (R := cell_range l (floor u q)). unfold missing_cell.
      destruct (Z.ltb_spec (cell l (floor u q)) (Z.of_nat (length l) + 1)); [reflexivity|lia].
    + rewrite Z.ltb_irrefl. reflexivity.
  - simpl in F. apply andb_true_iff in F as [C F]. apply is_cut_in in C. simpl. destruct x as [q|]; simpl in *.
    + rewrite Qle_bool_floor, <- (cell_at_cut l s (floor u q) A C), Z.ltb_antisym.
      destruct (s <=? floor u q); simpl; [apply (IH F)|reflexivity].
    + assert (R := cell_range l s). unfold missing_cell.
      destruct (Z.ltb_spec (Z.of_nat (length l) + 1) (cell l s)); [lia|].
      apply (IH F).
Qed.
