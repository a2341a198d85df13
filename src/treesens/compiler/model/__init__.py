"""Floor 1: tree ensembles over integer cells."""
