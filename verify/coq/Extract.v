(* The program, and what its theorem assumes. *)

From Coq Require Import Extraction ExtrOcamlBasic ExtrOcamlZBigInt.
From Treesens Require Import Whole Read.

Print Assumptions Whole.accepted_means_none.
Print Assumptions Read.accepted_integers.

Extraction "checker.ml" check_integers.
