(* The program, and what its theorem assumes. *)

From Coq Require Import Extraction ExtrOcamlBasic ExtrOcamlZBigInt.
From Treesens Require Import Checker Scale Read.

Print Assumptions Checker.check_is_sound.
Print Assumptions Scale.accepted_claim.
Print Assumptions Read.proved_statement.

Extraction "checker.ml" proved told.
