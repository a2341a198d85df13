(* Reads integers between white space from each file, says of each whether the checker accepts them, and prints the statement that it
   has proved. Reading and printing alone are outside of what is proved. *)

(* One number has one text: an optional minus, digits, no zero before others. Zarith would read 0x10, +1 and 1_000, too. *)
let integer text =
  let length = String.length text in
  let start = if length > 0 && text.[0] = '-' then 1 else 0 in
  let rec digits i = i = length || (text.[i] >= '0' && text.[i] <= '9' && digits (i + 1)) in
  if length = start || not (digits start) || (text.[start] = '0' && length > 1) then
    failwith ("`" ^ String.escaped text ^ "` is no whole number in plain digits");
  Z.of_string text

let integers path =
  let channel = open_in_bin path in
  let text = really_input_string channel (in_channel_length channel) in
  close_in channel;
  let is_space c = c = ' ' || c = '\n' in
  let rec back i found =
    if i < 0 then found
    else if is_space text.[i] then back (i - 1) found
    else
      let rec first j = if j > 0 && not (is_space text.[j - 1]) then first (j - 1) else j in
      let j = first i in
      back (j - 1) (integer (String.sub text j (i - j + 1)) :: found)
  in
  back (String.length text - 1) []

(* The statement in words, from what `told` returns: features, points, models and outputs by number, numbers as fractions. *)
let text = Z.to_string
let over number unit = Q.to_string (Q.make number unit)
let joined between words list = String.concat between (List.map words list)

let set_in unit (((runs, whole), singles), missing) =
  let run (low, high) = "[" ^ over low unit ^ ", " ^ over high unit ^ "]" ^ if whole then " whole" else "" in
  let parts = List.map run runs @ List.map (fun v -> over v unit) singles @ if missing then [ "missing" ] else [] in
  if parts = [] then "nothing" else String.concat ", " parts

let place_in unit ((point, feature), set) = "feature " ^ text feature ^ " at point " ^ text point ^ " in " ^ set_in unit set

let cost_in unit cost_unit ((point, feature), ((first, steps), missing)) =
  let step (start, cost) = over cost cost_unit ^ " from " ^ over start unit in
  let prices = (over first cost_unit :: List.map step steps) @ [ over missing cost_unit ^ " if missing" ] in
  "cost of feature " ^ text feature ^ " at point " ^ text point ^ " (" ^ String.concat ", " prices ^ ")"

let row_in unit (((terms, (cost_unit, costs)), (above, below)), strict) =
  let term (((above, below), point), output) = over above below ^ " * score " ^ text output ^ " of point " ^ text point in
  let parts = List.map term terms @ List.map (cost_in unit cost_unit) costs in
  (if parts = [] then "0" else String.concat " + " parts) ^ (if strict then " > " else " >= ") ^ over above below

let model_in number (((trees, leaves), leaf_unit), base) =
  let rec count = function Checker.O -> 0 | Checker.S less -> 1 + count less in
  Printf.sprintf "model %d: %d trees, %s leaves in units of 1/%s, base %s" number (count trees) (text leaves) (text leaf_unit)
    (joined ", " (fun (above, below) -> over above below) base)

let order_in ((p, q), f) = "feature " ^ text f ^ " at point " ^ text p ^ " <= at point " ^ text q

let in_words ((unit, ((models, points), varied)), (((domain, rows), clauses), orders)) =
  let agree = function
    | None -> []
    | Some [] -> [ "the points agree on every feature" ]
    | Some list -> [ "the points agree on every feature but " ^ joined ", " text list ]
  in
  let clause_in clause = "one of: " ^ if clause = [] then "nothing" else joined "; " (place_in unit) clause in
  List.mapi model_in models
  @ List.mapi (fun i m -> "point " ^ string_of_int i ^ ": an input of model " ^ text m) points
  @ agree varied
  @ List.map (place_in unit) domain
  @ List.map (row_in unit) rows
  @ List.map clause_in clauses
  @ List.map order_in orders

let () =
  let say path =
    match Checker.proved (integers path) with
    | Some statement ->
        print_endline (path ^ ": accepted: no inputs have all of this:");
        List.iter (fun line -> print_endline ("  " ^ line)) (in_words (Checker.told statement));
        true
    | None ->
        print_endline (path ^ ": rejected");
        false
    | exception (Sys_error reason | Invalid_argument reason | Failure reason) ->
        print_endline (path ^ ": rejected: " ^ reason);
        false
  in
  let verdicts = List.map say (List.tl (Array.to_list Sys.argv)) in
  exit (if List.for_all Fun.id verdicts then 0 else 1)
