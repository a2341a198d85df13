"""`treesens reduce`: the smallest question and model that still show a fault."""
