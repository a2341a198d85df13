"""Semantics of the constructs of `grammar/constructs/`: one file of the same name each, with its function `bind`."""
