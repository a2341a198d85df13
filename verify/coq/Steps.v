(* Step functions of cells: 0, then each value from its cell on. Messages and costs are such functions. *)

From Coq Require Import ZArith List Bool Lia.
From Treesens Require Import Lists Cells.
Import ListNotations.
Open Scope Z_scope.

Definition step := list (Z * Z).

(* The value at a cell; `d` is the one before the first step. *)
Fixpoint after (d : Z) (f : step) (k : Z) : Z :=
  match f with
  | [] => d
  | (start, v) :: rest => if k <? start then d else after v rest k
  end.

Definition value_at (f : step) (k : Z) : Z := after 0 f k.

Fixpoint plus_after (d : Z) (f : step) (e : Z) (g : step) : step :=
  match f with
  | [] => map (fun p => (fst p, d + snd p)) g
  | (s, v) :: f' =>
      (fix within (e : Z) (g : step) : step :=
         match g with
         | [] => map (fun p => (fst p, snd p + e)) f
         | (t, u) :: g' =>
             match s ?= t with
             | Lt => (s, v + e) :: plus_after v f' e g
             | Eq => (s, v + u) :: plus_after v f' u g'
             | Gt => (t, d + u) :: within u g'
             end
         end) e g
  end.

Definition plus (f g : step) : step := plus_after 0 f 0 g.

Lemma after_shift : forall c f d k, after (d + c) (map (fun p => (fst p, snd p + c)) f) k = after d f k + c.
Proof. induction f as [|[s v] f IH]; simpl; intros; [lia|]. destruct (k <? s); [lia|apply IH]. Qed.

Lemma after_plus : forall f d e g k, after (d + e) (plus_after d f e g) k = after d f k + after e g k.
Proof.
  induction f as [|[s v] f IH]; intros d e g k.
  - simpl. replace (map (fun p => (fst p, d + snd p)) g) with (map (fun p : Z * Z => (fst p, snd p + d)) g)
      by (apply map_ext; intros; f_equal; lia).
    rewrite Z.add_comm, after_shift. lia.
  - revert e. induction g as [|[t u] g IHg]; intros e.
    + change (plus_after d ((s, v) :: f) e []) with (map (fun p : Z * Z => (fst p, snd p + e)) ((s, v) :: f)).
      rewrite after_shift. reflexivity.
    + simpl plus_after. destruct (Z.compare_spec s t) as [E|L|G].
      * subst t. simpl. destruct (k <? s); [reflexivity|apply IH].
      * simpl after at 1. rewrite IH. simpl. destruct (Z.ltb_spec k s); [|reflexivity].
        destruct (Z.ltb_spec k t); lia.
      * simpl after at 1. simpl plus_after in IHg. rewrite IHg. simpl.
        destruct (Z.ltb_spec k t); [|reflexivity]. destruct (Z.ltb_spec k s); lia.
Qed.

Lemma value_plus : forall f g k, value_at (plus f g) k = value_at f k + value_at g k.
Proof. intros. unfold value_at, plus. apply (after_plus f 0 0). Qed.

Definition times (c : Z) (f : step) : step := map (fun p => (fst p, c * snd p)) f.

Lemma value_times : forall c f k, value_at (times c f) k = c * value_at f k.
Proof.
  intros c f k. unfold value_at. replace 0 with (c * 0) at 1 by lia. generalize 0 as d.
  induction f as [|[s v] f IH]; simpl; intros d; [reflexivity|]. destruct (k <? s); [reflexivity|apply IH].
Qed.

(* The greatest value over a run, and over a set that is not empty. *)
Fixpoint best_in (d : Z) (f : step) (low high : Z) : Z :=
  match f with
  | [] => d
  | (s, v) :: rest =>
      if high <? s then d
      else if s <=? low then best_in v rest low high
      else Z.max d (best_in v rest low high)
  end.

Fixpoint best (f : step) (s : cells) : Z :=
  match s with
  | [] => 0
  | [r] => best_in 0 f (fst r) (snd r)
  | r :: rest => Z.max (best_in 0 f (fst r) (snd r)) (best f rest)
  end.

Lemma after_best : forall f d low high k, low <= k <= high -> after d f k <= best_in d f low high.
Proof.
  induction f as [|[s v] f IH]; simpl; intros d low high k H; [lia|].
  specialize (IH v low high k H).
  destruct (Z.ltb_spec k s); destruct (Z.ltb_spec high s); destruct (Z.leb_spec s low); lia.
Qed.

Lemma value_best : forall f s k, member k s = true -> value_at f k <= best f s.
Proof.
  intros f s k. induction s as [|r s IH]; [discriminate|]. intros H. simpl in H. apply orb_true_iff in H.
  assert (E : in_run k r = true -> value_at f k <= best_in 0 f (fst r) (snd r)).
  { unfold in_run. rewrite andb_true_iff, !Z.leb_le. apply after_best. }
  destruct s as [|q s].
  - destruct H as [H|H]; [exact (E H)|discriminate].
  - change (best f (r :: q :: s)) with (Z.max (best_in 0 f (fst r) (snd r)) (best f (q :: s))).
    destruct H as [H|H]; [specialize (E H)|specialize (IH H)]; lia.
Qed.
