(* What a certificate of `none` claims: margins, costs and bounds as fractions. With the trees, sets and costs of Values.v
   this is the statement to read. *)

From Coq Require Import ZArith QArith List Bool.
From Treesens Require Import Sums Lists.
From Treesens Require Values.
Import ListNotations.
Open Scope Z_scope.

(* Leaves are whole numbers of 1/leaf_unit; `base` has a fraction per output. *)
Record model := { grown : list (list Z * Values.tree); leaf_unit : positive; base : list Q }.

Record term := { coefficient : Q; term_point : Z; term_output : Z }.

(* Costs are whole numbers of 1/cost_unit. The row adds up to at least (more than, if strict) a bound. *)
Record row := { terms : list term; costs : list Values.cost; cost_unit : positive; at_least : Q; strict : bool }.

(* Thresholds and ends of sets are whole numbers of 1/unit. A point is the number of its model. `varied`: the features in which
   the points may differ; none: in all. *)
Record statement := {
  unit : positive;
  models : list model;
  points : list Z;
  varied : option (list Z);
  domain : list Values.place_set;
  rows : list row;
  clauses : list (list Values.place_set);
  orders : list (Z * Z * Z)
}.

Definition leaves (s : statement) (x : Values.inputs) (p o : Z) (m : model) : Z :=
  sum (fun t => Values.adds o (fst t) (Values.leaf_of (unit s) (snd t) (x p))) (grown m).

Definition base_of (m : model) (o : Z) : Q := match at_index (base m) o with Some b => b | None => 0%Q end.

Definition seen (s : statement) (p : Z) : option model :=
  match at_index (points s) p with Some m => at_index (models s) m | None => None end.

Definition margin (s : statement) (x : Values.inputs) (p o : Z) : Q :=
  match seen s p with Some m => base_of m o + (leaves s x p o m # leaf_unit m) | None => 0 end%Q.

Fixpoint total {A : Type} (f : A -> Q) (l : list A) : Q := match l with [] => 0%Q | a :: rest => (f a + total f rest)%Q end.

Definition cost_at (s : statement) (x : Values.inputs) (c : Values.cost) : Z :=
  Values.cost_of (unit s) c (x (Values.cost_point c) (Values.cost_feature c)).

Definition adds_up (s : statement) (x : Values.inputs) (r : row) : Q :=
  (total (fun t => coefficient t * margin s x (term_point t) (term_output t)) (terms r)
   + (sum (cost_at s x) (costs r) # cost_unit r))%Q.

Definition row_holds (s : statement) (x : Values.inputs) (r : row) : Prop :=
  if strict r then (at_least r < adds_up s x r)%Q else (at_least r <= adds_up s x r)%Q.

Definition shared (s : statement) (f : Z) : bool :=
  match varied s with Some l => negb (existsb (Z.eqb f) l) | None => false end.

Definition place_holds (s : statement) (x : Values.inputs) (a : Values.place_set) : Prop :=
  Values.in_set (unit s) (Values.allowed a) (x (Values.at_point a) (Values.at_feature a)).

Record satisfies (s : statement) (x : Values.inputs) : Prop := {
  points_agree : forall f, shared s f = true -> forall p q, Values.same_value (x p f) (x q f);
  in_domain : Forall (place_holds s x) (domain s);
  rows_hold : Forall (row_holds s x) (rows s);
  clauses_hold : Forall (Exists (place_holds s x)) (clauses s);
  orders_hold : Forall (Values.order_holds x) (orders s)
}.
