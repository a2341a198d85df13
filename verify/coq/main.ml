(* Reads integers between white space from each file, and says of each whether the checker accepts them. Nothing else is done
   outside of what is proved. *)

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

let () =
  let say path =
    let accepted, words =
      match Checker.check_integers (integers path) with
      | accepted -> (accepted, if accepted then "accepted" else "rejected")
      | exception (Sys_error reason | Invalid_argument reason | Failure reason) -> (false, "rejected: " ^ reason)
    in
    print_endline (path ^ ": " ^ words);
    accepted
  in
  let verdicts = List.map say (List.tl (Array.to_list Sys.argv)) in
  exit (if List.for_all Fun.id verdicts then 0 else 1)
