"""What the constructs of `grammar/constructs/` mean: a file of the same name for each, with its function `bind`."""
