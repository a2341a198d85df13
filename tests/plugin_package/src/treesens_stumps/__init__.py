"""A format of decision stumps, a pass and a backend for treesens."""
