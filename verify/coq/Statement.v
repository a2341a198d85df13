(* What a certificate of `none` claims, over cells: trees, rows, clauses and orders, and when a point satisfies them.

   A point (in the sense of Coq) gives every variable a cell. A copy is a point of the statement: the model that it sees, and
   the variable that stands for each feature; copies that agree on a feature share its variable. *)

From Coq Require Import ZArith List Bool Lia.
From Treesens Require Import Lists Cells Steps.
Import ListNotations.
Open Scope Z_scope.

(* A tree whose tests are about indices of type I, and whose leaves hold an L. *)
Inductive tree (I L : Type) : Type :=
| Leaf : L -> tree I L
| Node : I -> cells -> tree I L -> tree I L -> tree I L.
Arguments Leaf {I L} _.
Arguments Node {I L} _ _ _ _.

(* The leaf that the cells `y` reach: to the left if the cell is in the set of the node, to the right if not. *)
Fixpoint reach {I L : Type} (t : tree I L) (y : I -> Z) : L :=
  match t with
  | Leaf v => v
  | Node i side a b => if member (y i) side then reach a y else reach b y
  end.

(* A tree feeds some outputs; its leaves hold a number for each of them. *)
Record scored := { outputs : list Z; grown : tree Z (list Z) }.
Definition model := list scored.
Record copy := { sees : Z; variable_of : list Z }.

Record term := { coefficient : Z; term_copy : Z; term_output : Z }.
Record cost := { cost_variable : Z; price : step }.
Record row := { constant : Z; terms : list term; costs : list cost }.

Record statement := {
  models : list model;
  copies : list copy;
  sizes : list Z;
  domain : list cells;
  rows : list row;
  clauses : list (list (Z * cells));
  orders : list (Z * Z)
}.

Definition point := Z -> Z.

(* The cell of a feature at a copy. *)
Definition cell_of (c : copy) (x : point) (f : Z) : Z :=
  match at_index (variable_of c) f with Some v => x v | None => 0 end.

Definition model_of (s : statement) (c : copy) : model :=
  match at_index (models s) (sees c) with Some m => m | None => [] end.

(* What a leaf adds to an output. *)
Definition adds (o : Z) (fed leaf : list Z) : Z :=
  sum (fun q => if fst q =? o then snd q else 0) (combine fed leaf).

(* The sum of the leaves that a copy reaches in the trees of an output. *)
Definition score_of (s : statement) (x : point) (o : Z) (c : copy) : Z :=
  sum (fun t => adds o (outputs t) (reach (grown t) (cell_of c x))) (model_of s c).

Definition score (s : statement) (x : point) (p o : Z) : Z :=
  match at_index (copies s) p with Some c => score_of s x o c | None => 0 end.

(* What is left of a row: it holds if this is at least 0. *)
Definition left_over (s : statement) (x : point) (r : row) : Z :=
  constant r + sum (fun t => coefficient t * score s x (term_copy t) (term_output t)) (terms r)
  + sum (fun c => value_at (price c) (x (cost_variable c))) (costs r).

Definition within (d : list cells) (x : point) : Prop :=
  forall v c, at_index d v = Some c -> member (x v) c = true.

Definition part_holds (x : point) (q : Z * cells) : Prop := member (x (fst q)) (snd q) = true.
Definition order_holds (x : point) (o : Z * Z) : Prop := x (fst o) <= x (snd o).

Record satisfies (s : statement) (x : point) : Prop := {
  in_domain : within (domain s) x;
  rows_hold : Forall (fun r => 0 <= left_over s x r) (rows s);
  clauses_hold : Forall (Exists (part_holds x)) (clauses s);
  orders_hold : Forall (order_holds x) (orders s)
}.
