"""Repairs: less sensitive versions of a model, in the file format of its library, with proofs of their promises."""
