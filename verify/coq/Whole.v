(* The whole statement in cells; what the checker accepts has no inputs. *)

From Coq Require Import ZArith QArith List Bool Lia.
From Treesens Require Import Lists Cells Steps Layout Checker.
From Treesens Require Statement Values.
Import ListNotations.
Open Scope Z_scope.

Definition translate_cost (y : layout) (c : Values.cost) : option Statement.cost :=
  match place y (Values.cost_point c) (Values.cost_feature c) with
  | Some (v, l) => match translate_steps l c with
                   | Some f => Some {| Statement.cost_variable := v; Statement.price := f |}
                   | None => None
                   end
  | None => None
  end.

Definition translate_term (t : Values.term) : Statement.term := {|
  Statement.coefficient := Values.coefficient t;
  Statement.term_copy := Values.term_point t;
  Statement.term_output := Values.term_output t
|}.

Definition translate_row (y : layout) (r : Values.row) : option Statement.row :=
  match options (map (translate_cost y) (Values.costs r)) with
  | Some c => Some {| Statement.constant := Values.constant r; Statement.costs := c;
                      Statement.terms := map translate_term (Values.terms r) |}
  | None => None
  end.

Definition translate_scored (u : positive) (y : layout) (t : list Z * Values.tree) : option Statement.scored :=
  match translate_tree u (cuts y) (snd t) with
  | Some grown => Some {| Statement.outputs := fst t; Statement.grown := grown |}
  | None => None
  end.

Definition translate_copy (y : layout) (q : Z * Z) : option Statement.copy :=
  match at_index (variables y) (fst q) with
  | Some l => Some {| Statement.sees := snd q; Statement.variable_of := l |}
  | None => None
  end.

Definition translate (s : Values.statement) (y : layout) : option Statement.statement :=
  if fits_layout s y then
    match options (map (fun m => options (map (translate_scored (Values.unit s) y) m)) (Values.models s)),
          options (map (translate_copy y) (number 0 (Values.points s))),
          owner_cuts y,
          options (map (resolve (Values.unit s) y) (Values.domain s)),
          options (map (translate_row y) (Values.rows s)),
          options (map (fun c => options (map (resolve (Values.unit s) y) c)) (Values.clauses s)),
          options (map (translate_order y) (Values.orders s)) with
    | Some models, Some copies, Some owned, Some sets, Some rows, Some clauses, Some orders =>
        match restrict (map all_cells owned) (sets ++ flat_map not_missing orders) with
        | Some d => Some {| Statement.models := models; Statement.copies := copies; Statement.domain := d;
                            Statement.rows := rows;
                            Statement.sizes := map (fun l => Z.of_nat (length l) + 2) owned;
                            Statement.clauses := clauses; Statement.orders := map fst orders |}
        | None => None
        end
    | _, _, _, _, _, _, _ => None
    end
  else None.

Lemma at_translated : forall (A B : Type) (R : A -> B -> Prop) l m, Forall2 R l m -> forall i,
  match at_index l i, at_index m i with Some a, Some b => R a b | None, None => True | _, _ => False end.
Proof. induction 1; simpl; intros i; [exact I|]. destruct (i =? 0); [assumption|apply IHForall2]. Qed.

Lemma at_number : forall (A : Type) (l : list A) i from,
  at_index (number from l) i = match at_index l i with Some a => Some (from + i, a) | None => None end.
Proof.
  induction l as [|a l IH]; simpl; intros i from; [reflexivity|]. destruct (Z.eqb_spec i 0) as [->|N].
  - rewrite Z.add_0_r. reflexivity.
  - rewrite IH. destruct (at_index l (i - 1)); [|reflexivity]. do 2 f_equal. lia.
Qed.

Lemma score_translated : forall s y x t p o, translate s y = Some t -> Values.satisfies s x ->
  Statement.score t (cells_of s y x) p o = Values.score s x p o.
Proof.
  intros s y x t p o T S. unfold translate in T. destruct (fits_layout s y) eqn:F; [|discriminate].
  destruct (options (map _ (Values.models s))) as [models|] eqn:Em; [|discriminate].
  destruct (options (map (translate_copy y) _)) as [copies|] eqn:Ec; [|discriminate].
  destruct (owner_cuts y) as [owned|]; [|discriminate].
  destruct (options (map _ (Values.domain s))) as [sets|]; [|discriminate].
  destruct (options (map _ (Values.rows s))) as [rows|]; [|discriminate].
  destruct (options (map _ (Values.clauses s))) as [clauses|]; [|discriminate].
  destruct (options (map _ (Values.orders s))) as [orders|]; [|discriminate].
  destruct (restrict _ _) as [d|]; [|discriminate]. injection T as <-.
  unfold Statement.score, Values.score, Statement.score_of, Statement.model_of. simpl.
  apply options_map in Em. apply options_map in Ec.
  assert (C := at_translated _ _ _ _ _ Ec p). rewrite at_number in C. simpl in C.
  destruct (at_index (Values.points s) p) as [m|]; destruct (at_index copies p) as [c|]; try contradiction; auto.
  unfold translate_copy in C. simpl in C. destruct (at_index (variables y) p) as [l|] eqn:L; [|discriminate].
  injection C as <-. simpl. unfold Statement.model in *. assert (M := at_translated _ _ _ _ _ Em m).
  destruct (at_index (Values.models s) m) as [trees|]; destruct (at_index models m) as [trees'|];
    try contradiction; auto.
  apply options_map in M. induction M as [|a b trees trees' E M IH]; simpl; [reflexivity|]. rewrite IH. f_equal.
  unfold translate_scored in E.
  destruct (translate_tree (Values.unit s) (cuts y) (snd a)) as [u|] eqn:U; [|discriminate].
  injection E as <-. simpl. unfold Statement.adds, Values.adds. simpl.
  replace (Statement.reach u _) with (Values.leaf_of (Values.unit s) (snd a) (x p)); [reflexivity|]. symmetry.
  apply (reach_translated (Values.unit s) (cuts y)); auto.
  - unfold fits_layout in F. apply andb_true_iff in F as [A _]. exact A.
  - intros f e C. destruct (place_there s y p l f e F L C) as [v [Ev P]].
    unfold Statement.cell_of. simpl. rewrite Ev. apply (place_cell s y x p f v e F S P).
Qed.

Lemma Forall_options : forall (A B : Type) (f : A -> option B) (P : A -> Prop) (Q : B -> Prop) l m,
  (forall a b, f a = Some b -> P a -> Q b) -> options (map f l) = Some m -> Forall P l -> Forall Q m.
Proof.
  intros A B f P Q l m H E F. apply options_map in E. induction E; inversion F; subst; constructor; eauto.
Qed.

Lemma Exists_options : forall (A B : Type) (f : A -> option B) (P : A -> Prop) (Q : B -> Prop) l m,
  (forall a b, f a = Some b -> P a -> Q b) -> options (map f l) = Some m -> Exists P l -> Exists Q m.
Proof.
  intros A B f P Q l m H E F. apply options_map in E. induction E; inversion F; subst; [left; eauto|right; eauto].
Qed.

Theorem translate_sound : forall s y t x,
  translate s y = Some t -> Values.satisfies s x -> Statement.satisfies t (cells_of s y x).
Proof.
  intros s y t x T S. assert (G := fun p o => score_translated s y x t p o T S).
  unfold translate in T. destruct (fits_layout s y) eqn:F; [|discriminate].
  destruct (options (map _ (Values.models s))) as [models|]; [|discriminate].
  destruct (options (map (translate_copy y) _)) as [copies|]; [|discriminate].
  destruct (owner_cuts y) as [owned|] eqn:O; [|discriminate].
  destruct (options (map _ (Values.domain s))) as [sets|] eqn:D; [|discriminate].
  destruct (options (map _ (Values.rows s))) as [rows|] eqn:R; [|discriminate].
  destruct (options (map _ (Values.clauses s))) as [clauses|] eqn:C; [|discriminate].
  destruct (options (map _ (Values.orders s))) as [orders|] eqn:E; [|discriminate].
  destruct (restrict _ _) as [d|] eqn:N; [|discriminate]. injection T as T. subst t.
  assert (Z := Forall_options _ _ _ _ _ _ _
    (fun o r T H => order_translated s y x o r F S H T) E (Values.orders_hold s x S)).
  constructor; simpl.
  - apply (within_restrict _ _ _ _ (within_all s y x owned O)) in N; auto. apply Forall_app. split.
    + apply (Forall_options _ _ _ (Values.place_holds s x) _ _ _
        (fun a q => resolve_holds s y x a q F S) D (Values.in_domain s x S)).
    + apply Forall_forall. intros q I. apply in_flat_map in I as [r [I J]]. rewrite Forall_forall in Z.
      destruct (Z r I) as [_ K]. rewrite Forall_forall in K. auto.
  - refine (Forall_options _ _ _ (fun r => 0 <= Values.left_over s x r) _ _ _ _ R (Values.rows_hold s x S)).
    intros r r' T H.
    unfold translate_row in T. destruct (options (map _ (Values.costs r))) as [cs|] eqn:K; [|discriminate].
    injection T as <-. unfold Statement.left_over, Values.left_over in *. simpl in *. rewrite sum_map. simpl.
    rewrite (sum_ext _ _ (fun t =>
      Values.coefficient t * Values.score s x (Values.term_point t) (Values.term_output t))).
    + replace (sum _ cs) with (sum (fun c =>
        Values.cost_of (Values.unit s) c (x (Values.cost_point c) (Values.cost_feature c))) (Values.costs r));
        [assumption|]. apply options_map in K. clear H. induction K as [|c c' l l' T K IH]; simpl; [reflexivity|].
      rewrite IH. f_equal. unfold translate_cost in T. destruct (place y _ _) as [[v e]|] eqn:P; [|discriminate].
      destruct (translate_steps e c) as [f|] eqn:Q; [|discriminate]. injection T as <-. simpl.
      destruct (place_cell s y x _ _ _ _ F S P) as [-> A]. symmetry. apply value_translated; assumption.
    + intros t _. rewrite G. reflexivity.
  - apply (Forall_options _ _ _ _ _ _ _ (fun a b T H => Exists_options _ _ _ (Values.place_holds s x) _ _ _
      (fun c q => resolve_holds s y x c q F S) T H) C (Values.clauses_hold s x S)).
  - apply Forall_forall. intros o I. apply in_map_iff in I as [r [<- I]]. rewrite Forall_forall in Z. apply Z.
    assumption.
Qed.

Definition check_values (s : Values.statement) (y : layout) (p : proof) : bool :=
  match translate s y with Some t => check t p | None => false end.

Theorem accepted_means_none : forall s y p, check_values s y p = true -> forall x, ~ Values.satisfies s x.
Proof.
  intros s y p C x S. unfold check_values in C. destruct (translate s y) as [t|] eqn:T; [|discriminate].
  exact (check_is_sound t p C _ (translate_sound s y t x T S)).
Qed.
