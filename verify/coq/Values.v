(* Values, trees, sets and costs; and statements whose rows are whole numbers, on the way from claims (Claim.v) to cells.

   A value is a rational number, or missing. Thresholds and ends of sets are whole numbers of units 1/u. *)

From Coq Require Import ZArith QArith Qround List Bool.
From Treesens Require Import Lists.
Import ListNotations.
Open Scope Z_scope.

Definition value := option Q.

(* Per point and feature. *)
Definition inputs := Z -> Z -> value.

(* A value goes left if it is below the threshold, or if its whole part is one of some codes of categories; a missing one if the
   node says so. Leaves hold a number per output of the tree. *)
Inductive test := Below (threshold : Z) | Codes (codes : list Z).

Inductive tree :=
| Leaf (leaf : list Z)
| Node (feature : Z) (asks : test) (missing_left : bool) (left_child right_child : tree).

Definition has_code (q : Q) (code : Z) : bool := Qle_bool (code # 1) q && negb (Qle_bool ((code + 1) # 1) q).

Definition goes_left (u : positive) (asks : test) (missing_left : bool) (x : value) : bool :=
  match x with
  | None => missing_left
  | Some q =>
      match asks with Below threshold => negb (Qle_bool (threshold # u) q) | Codes l => existsb (has_code q) l end
  end.

Fixpoint leaf_of (u : positive) (t : tree) (y : Z -> value) : list Z :=
  match t with
  | Leaf v => v
  | Node f asks m a b => if goes_left u asks m (y f) then leaf_of u a y else leaf_of u b y
  end.

(* Closed runs, of whole numbers only or not; single values; missing or not. *)
Record value_set := { runs : list (Z * Z); whole_only : bool; singles : list Z; missing_too : bool }.

Definition in_set (u : positive) (s : value_set) (x : value) : Prop :=
  match x with
  | None => missing_too s = true
  | Some q =>
      (exists v, In v (singles s) /\ (q == v # u)%Q) \/
      (exists r, In r (runs s) /\ (fst r # u <= q)%Q /\ (q <= snd r # u)%Q
                 /\ (whole_only s = true -> exists n, (q == inject_Z n)%Q))
  end.

(* The first cost, then each cost from its start on. *)
Record cost := { cost_point : Z; cost_feature : Z; first : Z; steps : list (Z * Z); when_missing : Z }.

Fixpoint cost_from (u : positive) (d : Z) (l : list (Z * Z)) (q : Q) : Z :=
  match l with
  | [] => d
  | (start, c) :: rest => if Qle_bool (start # u) q then cost_from u c rest q else d
  end.

Definition cost_of (u : positive) (c : cost) (x : value) : Z :=
  match x with None => when_missing c | Some q => cost_from u (first c) (steps c) q end.

Record place_set := { at_point : Z; at_feature : Z; allowed : value_set }.

(* What a leaf adds to an output. *)
Definition adds (o : Z) (fed leaf : list Z) : Z :=
  sum (fun q => if fst q =? o then snd q else 0) (combine fed leaf).

Definition same_value (x y : value) : Prop :=
  match x, y with None, None => True | Some a, Some b => (a == b)%Q | _, _ => False end.

(* An order (p, q, f): the value of f at p is at most the one at q; none of them is missing. *)
Definition order_holds (x : inputs) (o : Z * Z * Z) : Prop :=
  match o with (p, q, f) => match x p f, x q f with Some a, Some b => (a <= b)%Q | _, _ => False end end.

(* From here on nobody has to read: the same as in Claim.v, with rows in whole numbers. *)
Record term := { coefficient : Z; term_point : Z; term_output : Z }.
Record row := { constant : Z; terms : list term; costs : list cost }.

Record statement := {
  unit : positive;
  models : list (list (list Z * tree));
  points : list Z;
  varied : option (list Z);
  domain : list place_set;
  rows : list row;
  clauses : list (list place_set);
  orders : list (Z * Z * Z)
}.

Definition score (s : statement) (x : inputs) (p o : Z) : Z :=
  match at_index (points s) p with
  | Some m => match at_index (models s) m with
              | Some trees => sum (fun t => adds o (fst t) (leaf_of (unit s) (snd t) (x p))) trees
              | None => 0
              end
  | None => 0
  end.

Definition left_over (s : statement) (x : inputs) (r : row) : Z :=
  constant r + sum (fun t => coefficient t * score s x (term_point t) (term_output t)) (terms r)
  + sum (fun c => cost_of (unit s) c (x (cost_point c) (cost_feature c))) (costs r).

Definition shared (s : statement) (f : Z) : bool :=
  match varied s with Some l => negb (existsb (Z.eqb f) l) | None => false end.

Definition place_holds (s : statement) (x : inputs) (a : place_set) : Prop :=
  in_set (unit s) (allowed a) (x (at_point a) (at_feature a)).

Record satisfies (s : statement) (x : inputs) : Prop := {
  points_agree : forall f, shared s f = true -> forall p q, same_value (x p f) (x q f);
  in_domain : Forall (place_holds s x) (domain s);
  rows_hold : Forall (fun r => 0 <= left_over s x r) (rows s);
  clauses_hold : Forall (Exists (place_holds s x)) (clauses s);
  orders_hold : Forall (order_holds x) (orders s)
}.
