(* A claim, a layout and a proof from a list of integers. *)

From Coq Require Import ZArith QArith List Bool.
From Treesens Require Import Bound Checker Layout Scale.
From Treesens Require Values Claim.
Import ListNotations.
Open Scope Z_scope.

Definition reader (A : Type) := list Z -> option (A * list Z).

Definition give {A : Type} (a : A) : reader A := fun l => Some (a, l).
Definition bind {A B : Type} (r : reader A) (f : A -> reader B) : reader B :=
  fun l => match r l with Some (a, rest) => f a rest | None => None end.
Notation "'get' x <- r ; b" := (bind r (fun x => b)) (at level 200, x name, r at level 100, b at level 200).

Definition integer : reader Z := fun l => match l with z :: rest => Some (z, rest) | [] => None end.
Definition flag : reader bool := fun l =>
  match l with
  | z :: rest => if z =? 0 then Some (false, rest) else if z =? 1 then Some (true, rest) else None
  | [] => None
  end.

(* As many as the first integer says. The list itself is the fuel: nothing is read from less than one integer. *)
Fixpoint repeat {A : Type} (fuel : list Z) (r : reader A) (n : Z) (found : list A) (l : list Z) : option (list A * list Z) :=
  if n =? 0 then Some (rev_append found [], l)
  else
    match fuel with
    | [] => None
    | _ :: less => match r l with Some (a, rest) => repeat less r (n - 1) (a :: found) rest | None => None end
    end.

Definition many {A : Type} (r : reader A) : reader (list A) :=
  fun l => match l with n :: rest => repeat rest r n [] rest | [] => None end.

Definition pair_of : reader (Z * Z) := get a <- integer; get b <- integer; give (a, b).

(* A test: 0 threshold, or 1 and codes. *)
Definition test : reader Values.test :=
  get kind <- integer;
  if kind =? 0 then get c <- integer; give (Values.Below c)
  else get l <- many integer; give (Values.Codes l).

(* A tree: 0 and the numbers of a leaf, or 1 feature test missing_left and the two children. *)
Fixpoint tree_within (fuel : list Z) (l : list Z) : option (Values.tree * list Z) :=
  match fuel, l with
  | _ :: less, kind :: rest =>
      if kind =? 0 then (get v <- many integer; give (Values.Leaf v)) rest
      else (get f <- integer; get t <- test; get m <- flag;
            get a <- tree_within less; get b <- tree_within less; give (Values.Node f t m a b)) rest
  | _, _ => None
  end.

Definition tree : reader Values.tree := fun l => tree_within l l.

Definition value_set : reader Values.value_set :=
  get r <- many pair_of; get w <- flag; get s <- many integer; get m <- flag;
  give {| Values.runs := r; Values.whole_only := w; Values.singles := s; Values.missing_too := m |}.

Definition place_set : reader Values.place_set :=
  get p <- integer; get f <- integer; get s <- value_set;
  give {| Values.at_point := p; Values.at_feature := f; Values.allowed := s |}.

Definition cost : reader Values.cost :=
  get p <- integer; get f <- integer; get c <- integer; get s <- many pair_of; get m <- integer;
  give {| Values.cost_point := p; Values.cost_feature := f; Values.first := c; Values.steps := s;
          Values.when_missing := m |}.

Definition scored : reader (list Z * Values.tree) := get o <- many integer; get t <- tree; give (o, t).

Definition order : reader (Z * Z * Z) := get p <- integer; get q <- integer; get f <- integer; give (p, q, f).

Definition positive_integer : reader positive := fun l =>
  match l with z :: rest => if 0 <? z then Some (Z.to_pos z, rest) else None | [] => None end.

Definition fraction : reader Q := get a <- integer; get b <- positive_integer; give (a # b).

Definition model : reader Claim.model :=
  get t <- many scored; get u <- positive_integer; get b <- many fraction;
  give {| Claim.grown := t; Claim.leaf_unit := u; Claim.base := b |}.

Definition term : reader Claim.term :=
  get c <- fraction; get p <- integer; get o <- integer;
  give {| Claim.coefficient := c; Claim.term_point := p; Claim.term_output := o |}.

Definition row : reader Claim.row :=
  get t <- many term; get c <- many cost; get u <- positive_integer; get b <- fraction; get s <- flag;
  give {| Claim.terms := t; Claim.costs := c; Claim.cost_unit := u; Claim.at_least := b; Claim.strict := s |}.

Definition statement : reader Claim.statement :=
  get u <- positive_integer; get m <- many model; get p <- many integer;
  get some <- flag; get v <- many integer;
  get d <- many place_set; get r <- many row; get c <- many (many place_set); get o <- many order;
  give {| Claim.unit := u; Claim.models := m; Claim.points := p; Claim.varied := if some then Some v else None;
          Claim.domain := d; Claim.rows := r; Claim.clauses := c; Claim.orders := o |}.

Definition layout_of : reader layout :=
  get c <- many (many integer); get v <- many (many integer); get o <- many pair_of;
  give {| cuts := c; variables := v; owners := o |}.

Definition message_change : reader change :=
  get i <- integer; get v <- integer; get s <- many pair_of; give {| whose := i; about := v; steps := s |}.

Definition node_of : reader node :=
  get kind <- integer;
  if kind =? 0 then give Closed
  else if kind =? 1 then get v <- integer; get k <- integer; give (Cut v k)
  else get w <- many integer; get e <- integer; get c <- many message_change; give (Refuted w e c).

Definition proof_of : reader proof :=
  get j <- flag; get a <- many integer; get n <- many node_of; give {| joint := j; apart := a; nodes := n |}.

Definition certificate : reader (Claim.statement * list positive * layout * proof) :=
  get s <- statement; get u <- many positive_integer; get y <- layout_of; get p <- proof_of; give (s, u, y, p).

(* The statement that the integers state and prove: the program prints it. *)
Definition proved (l : list Z) : option Claim.statement :=
  match certificate l with Some (s, u, y, p, []) => if check_claim s u y p then Some s else None | _ => None end.

(* What the program says of a list of integers, and what follows. *)
Theorem proved_statement : forall l s, proved l = Some s ->
  (exists u y p, certificate l = Some (s, u, y, p, [])) /\ forall x, ~ Claim.satisfies s x.
Proof.
  intros l s H. unfold proved in H. destruct (certificate l) as [[[[[s' u] y] p] [|]]|]; try discriminate.
  destruct (check_claim s' u y p) eqn:accepted; try discriminate. injection H as same. subst s'.
  split; [exists u, y, p; reflexivity|]. exact (accepted_claim s u y p accepted).
Qed.

(* The statement as pairs, lists and numbers, for the program to print: names of fields do not outlive extraction. Of the trees it has
   only how many they are, and their leaves. *)
Fixpoint leaves_of (t : Values.tree) : Z :=
  match t with Values.Leaf _ => 1 | Values.Node _ _ _ a b => leaves_of a + leaves_of b end.

Definition told_fraction (q : Q) := (Qnum q, Qden q).

Definition told_model (m : Claim.model) :=
  (length (Claim.grown m), Sums.sum (fun t => leaves_of (snd t)) (Claim.grown m), Claim.leaf_unit m, map told_fraction (Claim.base m)).

Definition told_place (a : Values.place_set) :=
  let s := Values.allowed a in
  (Values.at_point a, Values.at_feature a,
   (Values.runs s, Values.whole_only s, Values.singles s, Values.missing_too s)).

Definition told_term (t : Claim.term) := (told_fraction (Claim.coefficient t), Claim.term_point t, Claim.term_output t).

Definition told_cost (c : Values.cost) :=
  (Values.cost_point c, Values.cost_feature c, (Values.first c, Values.steps c, Values.when_missing c)).

Definition told_row (r : Claim.row) :=
  (map told_term (Claim.terms r), (Claim.cost_unit r, map told_cost (Claim.costs r)), told_fraction (Claim.at_least r), Claim.strict r).

Definition told (s : Claim.statement) :=
  (Claim.unit s, (map told_model (Claim.models s), Claim.points s, Claim.varied s),
   (map told_place (Claim.domain s), map told_row (Claim.rows s), map (map told_place) (Claim.clauses s), Claim.orders s)).
