"""Semantics of the constructs in `grammar/constructs/`: for each, a file of the same name with a function `bind`."""
