(* The bound of a leaf: for weights of the rows and messages, what the rows have left is at most this anywhere in a box.

   Messages are kept from leaf to leaf, and with them what was computed for the same weights and cells. *)

From Coq Require Import ZArith List Bool Lia.
From Treesens Require Import Lists Cells Steps Statement Ways Factor Factors.
Import ListNotations.
Open Scope Z_scope.

(* A factor with a message per variable of its scope; `kept` are weights, cells, and what `at_most` said of them. *)
Record held := { of_factor : factor; messages : list step; kept : option (list (list Z) * box * option Z) }.

(* A variable: weighted costs of its cells, the sum of all messages about it, and the best cell of some cells. *)
Record rest := { own : step; total : step; kept_best : option (cells * Z) }.

Record state := { helds : list held; rests : list rest; at_weights : list Z }.

Definition net (r : rest) : step := plus (own r) (times (-1) (total r)).

(* A message of a leaf: the factor, the variable, and its steps. *)
Record change := { whose : Z; about : Z; steps : step }.

Fixpoint proper (after size : Z) (f : step) : bool :=
  match f with [] => true | (s, _) :: l => (after <? s) && (s <? size) && proper s size l end.

Definition apply_change (s : statement) (exponent : Z) (st : state) (c : change) : option state :=
  match at_index (helds st) (whose c), at_index (rests st) (about c), at_index (sizes s) (about c) with
  | Some h, Some r, Some size =>
      match index_of (about c) (scope (of_factor h)) with
      | None => None
      | Some j =>
          match nth_error (messages h) j with
          | Some old =>
              if proper (-1) size (steps c) then
                let new : step := map (fun p => (fst p, Z.shiftl (snd p) exponent)) (steps c) in
                let h' := {| of_factor := of_factor h; messages := set_nth j new (messages h); kept := None |} in
                let r' := {| own := own r; total := plus (total r) (plus new (times (-1) old)); kept_best := None |} in
                match replace (helds st) (whose c) h', replace (rests st) (about c) r' with
                | Some hs, Some rs => Some {| helds := hs; rests := rs; at_weights := at_weights st |}
                | _, _ => None
                end
              else None
          | None => None
          end
      end
  | _, _, _ => None
  end.

Fixpoint apply_changes (s : statement) (exponent : Z) (st : state) (l : list change) : option state :=
  match l with
  | [] => Some st
  | c :: others =>
      match apply_change s exponent st c with Some n => apply_changes s exponent n others | None => None end
  end.

(* The weighted costs of every variable. *)
Definition add_cost (k : Z) (u : option (list step)) (c : cost) : option (list step) :=
  match u with
  | Some l => match at_index l (cost_variable c) with
              | Some f => replace l (cost_variable c) (plus f (times k (price c)))
              | None => None
              end
  | None => None
  end.

Definition add_costs (u : option (list step)) (q : Z * row) : option (list step) :=
  if fst q =? 0 then u else fold_left (add_cost (fst q)) (costs (snd q)) u.

Definition owns (s : statement) (w : weighted) : option (list step) :=
  fold_left add_costs w (Some (map (fun _ => []) (domain s))).

Definition set_weights (s : statement) (st : state) (weights : list Z) : option state :=
  if same_numbers weights (at_weights st) then Some st
  else
    match owns s (combine weights (rows s)) with
    | Some u =>
        if Nat.eqb (length u) (length (rests st)) then
          Some {| helds := helds st; at_weights := weights;
                  rests := map (fun q => {| own := fst q; total := total (snd q); kept_best := None |})
                               (combine u (rests st)) |}
        else None
    | None => None
    end.

Definition refresh_held (w : weighted) (d : list cells) (h : held) : option (held * option Z) :=
  let f := of_factor h in
  match options (map (at_index d) (scope f)) with
  | None => None
  | Some b =>
      let k := shares w f in
      let new := let r := at_most f k (messages h) b in
                 Some ({| of_factor := f; messages := messages h; kept := Some (k, b, r) |}, r) in
      match kept h with
      | Some (k0, b0, r) => if same_tables k k0 && same_sets b b0 then Some (h, r) else new
      | None => new
      end
  end.

Definition add (a b : option Z) : option Z := match a, b with Some x, Some y => Some (x + y) | _, _ => None end.

Fixpoint refresh_helds (w : weighted) (d : list cells) (l : list held) : option (list held * option Z) :=
  match l with
  | [] => Some ([], Some 0)
  | h :: others =>
      match refresh_held w d h, refresh_helds w d others with
      | Some (h', r), Some (others', q) => Some (h' :: others', add r q)
      | _, _ => None
      end
  end.

Definition refresh_rest (c : cells) (r : rest) : rest * Z :=
  let new := let b := best (net r) c in
             ({| own := own r; total := total r; kept_best := Some (c, b) |}, b) in
  match kept_best r with Some (c0, b) => if same_cells c c0 then (r, b) else new | None => new end.

Fixpoint refresh_rests (d : list cells) (l : list rest) : option (list rest * Z) :=
  match d, l with
  | [], [] => Some ([], 0)
  | c :: others, r :: l' =>
      match refresh_rests others l' with
      | Some (rs, b) => let (r', q) := refresh_rest c r in Some (r' :: rs, q + b)
      | None => None
      end
  | _, _ => None
  end.

(* The state after a leaf, and the bound; none for the bound if some factor has no way that meets the box. *)
Definition bound (s : statement) (d : list cells) (st : state) (weights : list Z) (exponent : Z) (l : list change)
  : option (state * option Z) :=
  if forallb (Z.leb 0) weights && Nat.eqb (length weights) (length (rows s)) && (0 <=? exponent)
     && (exponent <=? 10000) then
    match apply_changes s exponent st l with
    | Some changed =>
        match set_weights s changed weights with
        | Some now =>
            let w := combine weights (rows s) in
            match refresh_helds w d (helds now), refresh_rests d (rests now) with
            | Some (hs, a), Some (rs, b) =>
                Some ({| helds := hs; rests := rs; at_weights := at_weights now |},
                      add a (Some (sum (fun q => fst q * constant (snd q)) w + b)))
            | _, _ => None
            end
        | None => None
        end
    | None => None
    end
  else None.
