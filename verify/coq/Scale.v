(* From fractions to whole numbers: every row in a unit of its own, which nobody has to trust; and the theorem about claims. *)

From Coq Require Import ZArith QArith Qround List Bool Lia.
From Treesens Require Import Sums Lists Layout Checker Whole.
From Treesens Require Values Claim.
Import ListNotations.
Open Scope Z_scope.

(* The whole number above/below, if it is one. *)
Definition exactly (above below : Z) : option Z :=
  let k := above / below in if k * below =? above then Some k else None.

Definition scale_term (s : Claim.statement) (u : positive) (t : Claim.term) : option Values.term :=
  let c := Claim.coefficient t in
  match Claim.seen s (Claim.term_point t) with
  | Some m =>
      match exactly (Qnum c * Zpos u) (Zpos (Qden c) * Zpos (Claim.leaf_unit m)) with
      | Some k => Some {| Values.coefficient := k; Values.term_point := Claim.term_point t;
                          Values.term_output := Claim.term_output t |}
      | None => None
      end
  | None => None
  end.

Definition scale_cost (k : Z) (c : Values.cost) : Values.cost := {|
  Values.cost_point := Values.cost_point c;
  Values.cost_feature := Values.cost_feature c;
  Values.first := k * Values.first c;
  Values.steps := map (fun p => (fst p, k * snd p)) (Values.steps c);
  Values.when_missing := k * Values.when_missing c
|}.

Definition base_part (s : Claim.statement) (t : Claim.term) : Q :=
  match Claim.seen s (Claim.term_point t) with
  | Some m => Claim.coefficient t * Claim.base_of m (Claim.term_output t)
  | None => 0
  end%Q.

(* What is left of a row if no tree and no cost adds anything, in units 1/u. *)
Definition known_part (s : Claim.statement) (u : positive) (r : Claim.row) : Q :=
  (inject_Z (Zpos u) * (Claim.total (base_part s) (Claim.terms r) - Claim.at_least r))%Q.

Definition scale_row (s : Claim.statement) (q : positive * Claim.row) : option Values.row :=
  let (u, r) := q in
  match options (map (scale_term s u) (Claim.terms r)), exactly (Zpos u) (Zpos (Claim.cost_unit r)) with
  | Some t, Some k =>
      Some {| Values.terms := t; Values.costs := map (scale_cost k) (Claim.costs r);
              Values.constant := if Claim.strict r then Qceiling (known_part s u r) - 1 else Qfloor (known_part s u r) |}
  | _, _ => None
  end.

Definition scale (s : Claim.statement) (units : list positive) : option Values.statement :=
  if Nat.eqb (length units) (length (Claim.rows s)) then
    match options (map (scale_row s) (combine units (Claim.rows s))) with
    | Some rows => Some {| Values.unit := Claim.unit s; Values.models := map Claim.grown (Claim.models s);
                           Values.points := Claim.points s; Values.varied := Claim.varied s;
                           Values.domain := Claim.domain s; Values.rows := rows;
                           Values.clauses := Claim.clauses s; Values.orders := Claim.orders s |}
    | None => None
    end
  else None.

Lemma exactly_spec : forall a b k, exactly a b = Some k -> k * b = a.
Proof.
  unfold exactly. intros a b k H. destruct (Z.eqb_spec (a / b * b) a); [|discriminate]. injection H as <-. assumption.
Qed.

Lemma at_map : forall (A B : Type) (f : A -> B) l i,
  at_index (map f l) i = match at_index l i with Some a => Some (f a) | None => None end.
Proof. induction l; simpl; intros i; [reflexivity|]. destruct (i =? 0); auto. Qed.

Definition leaves_of (s : Claim.statement) (x : Values.inputs) (p o : Z) : Z :=
  match Claim.seen s p with Some m => Claim.leaves s x p o m | None => 0 end.

Lemma score_scaled : forall s units v x p o, scale s units = Some v -> Values.score v x p o = leaves_of s x p o.
Proof.
  intros s units v x p o H. unfold scale in H. destruct (Nat.eqb _ _); [|discriminate].
  destruct (options _) as [rows|]; [|discriminate]. injection H as <-.
  unfold Values.score, leaves_of, Claim.seen, Claim.leaves. simpl.
  destruct (at_index (Claim.points s) p) as [m|]; [|reflexivity]. rewrite at_map.
  destruct (at_index (Claim.models s) m); reflexivity.
Qed.

Lemma cost_scaled : forall u k c x, Values.cost_of u (scale_cost k c) x = k * Values.cost_of u c x.
Proof.
  intros u k c [q|]; [|reflexivity]. unfold Values.cost_of, scale_cost. simpl. generalize (Values.first c) as d.
  induction (Values.steps c) as [|[a b] l IH]; simpl; intros d; [reflexivity|]. destruct (Qle_bool (a # u) q); auto.
Qed.

Lemma fraction_scaled : forall u n d l z k, k * (Zpos d * Zpos z) = n * Zpos u ->
  (inject_Z (Zpos u) * ((n # d) * (l # z)) == inject_Z k * inject_Z l)%Q.
Proof.
  intros u n d l z k E. unfold Qeq, Qmult, inject_Z. cbn [Qnum Qden]. rewrite !Pos2Z.inj_mul.
  transitivity (n * Zpos u * l); [ring|]. rewrite <- E. ring.
Qed.

Lemma term_scaled : forall s x u t w, scale_term s u t = Some w ->
  (inject_Z (Zpos u) * (Claim.coefficient t * Claim.margin s x (Claim.term_point t) (Claim.term_output t))
   == inject_Z (Zpos u) * base_part s t
      + inject_Z (Values.coefficient w * leaves_of s x (Values.term_point w) (Values.term_output w)))%Q.
Proof.
  intros s x u t w H. unfold scale_term in H. unfold Claim.margin, base_part, leaves_of.
  destruct (Claim.seen s (Claim.term_point t)) as [m|] eqn:M; [|discriminate].
  destruct (exactly _ _) as [k|] eqn:E; [|discriminate]. injection H as <-. simpl. rewrite M.
  apply exactly_spec in E. destruct (Claim.coefficient t) as [n d]. simpl in E.
  set (b := Claim.base_of m _). set (l := Claim.leaves _ _ _ _ _). set (z := Claim.leaf_unit m) in *.
  rewrite inject_Z_mult, Qmult_plus_distr_r, Qmult_plus_distr_r. apply Qplus_inj_l.
  apply fraction_scaled. assumption.
Qed.

Lemma terms_scaled : forall s x u l ws, options (map (scale_term s u) l) = Some ws ->
  (inject_Z (Zpos u)
   * Claim.total (fun t => Claim.coefficient t * Claim.margin s x (Claim.term_point t) (Claim.term_output t)) l
   == inject_Z (Zpos u) * Claim.total (base_part s) l
      + inject_Z (sum (fun w =>
          Values.coefficient w * leaves_of s x (Values.term_point w) (Values.term_output w))%Z ws))%Q.
Proof.
  intros s x u l ws H. apply options_map in H. induction H as [|t w l ws E H IH]; simpl.
  - unfold inject_Z. ring.
  - rewrite inject_Z_plus, !Qmult_plus_distr_r, IH, (term_scaled s x u t w E). ring.
Qed.

Lemma costs_scaled : forall s x u k d l, k * Zpos d = Zpos u ->
  (inject_Z (Zpos u) * (sum (Claim.cost_at s x) l # d)
   == inject_Z (sum (fun c => Claim.cost_at s x c) (map (scale_cost k) l)))%Q.
Proof.
  intros s x u k d l E. rewrite sum_map.
  replace (sum (fun c => Claim.cost_at s x (scale_cost k c)) l) with (k * sum (Claim.cost_at s x) l).
  - unfold Qeq, Qmult, inject_Z. cbn [Qnum Qden]. rewrite Pos2Z.inj_mul, <- E. ring.
  - rewrite <- sum_scale. apply sum_ext. intros c _. symmetry. apply cost_scaled.
Qed.

Lemma above_floor : forall c i, (0 <= c + inject_Z i)%Q -> 0 <= Qfloor c + i.
Proof.
  intros c i H. assert (L : (inject_Z (- i) <= c)%Q).
  { rewrite inject_Z_opp. apply Qle_minus_iff. rewrite Qopp_involutive. exact H. }
  apply Qfloor_resp_le in L. rewrite Qfloor_Z in L. lia.
Qed.

Lemma above_ceiling : forall c i, (0 < c + inject_Z i)%Q -> 0 <= Qceiling c - 1 + i.
Proof.
  intros c i H. assert (L : (inject_Z (- i) < inject_Z (Qceiling c))%Q).
  { apply Qlt_le_trans with c; [|apply Qle_ceiling].
    rewrite inject_Z_opp. apply Qlt_minus_iff. rewrite Qopp_involutive. exact H. }
  rewrite <- Zlt_Qlt in L. lia.
Qed.

Lemma row_scaled : forall s units v x u r w, scale s units = Some v -> scale_row s (u, r) = Some w ->
  Claim.row_holds s x r -> 0 <= Values.left_over v x w.
Proof.
  intros s units v x u r w V H R. unfold scale_row in H.
  destruct (options _) as [ts|] eqn:T; [|discriminate]. destruct (exactly _ _) as [k|] eqn:K; [|discriminate].
  injection H as <-. apply exactly_spec in K. apply (terms_scaled s x u) in T.
  assert (C := costs_scaled s x u k _ (Claim.costs r) K).
  unfold Values.left_over. simpl.
  rewrite (sum_ext _ _ (fun w => Values.coefficient w * leaves_of s x (Values.term_point w) (Values.term_output w)))
    by (intros a _; rewrite (score_scaled s units v) by assumption; reflexivity).
  assert (N : Values.unit v = Claim.unit s).
  { unfold scale in V. destruct (Nat.eqb _ _); [|discriminate]. destruct (options _); [|discriminate].
    injection V as <-. reflexivity. }
  rewrite N. set (a := sum _ ts) in *. fold (Claim.cost_at s x).
  change (sum (fun c => Values.cost_of (Claim.unit s) c (x (Values.cost_point c) (Values.cost_feature c)))
    (map (scale_cost k) (Claim.costs r))) with (sum (fun c => Claim.cost_at s x c) (map (scale_cost k) (Claim.costs r))).
  set (b := sum _ (map (scale_cost k) (Claim.costs r))) in *.
  assert (P : (0 < inject_Z (Zpos u))%Q) by reflexivity.
  assert (S : (inject_Z (Zpos u) * (Claim.adds_up s x r - Claim.at_least r) == known_part s u r + inject_Z (a + b))%Q).
  { unfold Claim.adds_up, known_part. rewrite inject_Z_plus.
    transitivity (inject_Z (Zpos u)
      * Claim.total (fun t =>
          Claim.coefficient t * Claim.margin s x (Claim.term_point t) (Claim.term_output t)) (Claim.terms r)
      + inject_Z (Zpos u) * (sum (Claim.cost_at s x) (Claim.costs r) # Claim.cost_unit r)
      - inject_Z (Zpos u) * Claim.at_least r)%Q; [ring|]. rewrite T, C. ring. }
  unfold Claim.row_holds in R. destruct (Claim.strict r).
  - assert (Q0 : (0 < known_part s u r + inject_Z (a + b))%Q).
    { rewrite <- S. apply Qmult_lt_0_compat; [assumption|]. apply Qlt_minus_iff in R. exact R. }
    apply above_ceiling in Q0. rewrite <- Z.add_assoc. exact Q0.
  - assert (Q0 : (0 <= known_part s u r + inject_Z (a + b))%Q).
    { rewrite <- S. apply Qmult_le_0_compat; [apply Qlt_le_weak; assumption|].
      apply Qle_minus_iff in R. exact R. }
    apply above_floor in Q0. rewrite <- Z.add_assoc. exact Q0.
Qed.

Lemma rows_scaled : forall s v x,
  (forall u r w, scale_row s (u, r) = Some w -> Claim.row_holds s x r -> 0 <= Values.left_over v x w) ->
  forall units l ws, length units = length l -> Forall (Claim.row_holds s x) l ->
  Forall2 (fun q w => scale_row s q = Some w) (combine units l) ws -> Forall (fun w => 0 <= Values.left_over v x w) ws.
Proof.
  intros s v x G. induction units as [|u units IH]; intros [|r l] ws N H R; try discriminate.
  - inversion R. constructor.
  - cbn [combine length] in N, R. inversion R; subst. inversion H; subst.
    constructor; [eapply G; eassumption|apply (IH l); [lia|assumption|assumption]].
Qed.

Theorem scale_sound : forall s units v x, scale s units = Some v -> Claim.satisfies s x -> Values.satisfies v x.
Proof.
  intros s units v x V S. assert (G := rows_scaled s v x (fun u r w => row_scaled s units v x u r w V) units).
  unfold scale in V. destruct (Nat.eqb_spec (length units) (length (Claim.rows s))) as [N|]; [|discriminate].
  destruct (options _) as [rows|] eqn:R; [|discriminate]. injection V as V. apply options_map in R.
  assert (H := G _ _ N (Claim.rows_hold s x S) R). subst v. constructor; simpl; try apply S. exact H.
Qed.

Definition check_claim (s : Claim.statement) (units : list positive) (y : layout) (p : proof) : bool :=
  match scale s units with Some v => check_values v y p | None => false end.

(* The theorem: what is accepted has no inputs. *)
Theorem accepted_claim : forall s units y p, check_claim s units y p = true -> forall x, ~ Claim.satisfies s x.
Proof.
  intros s units y p C x S. unfold check_claim in C. destruct (scale s units) as [v|] eqn:V; [|discriminate].
  exact (accepted_means_none v y p C x (scale_sound s units v x V S)).
Qed.
