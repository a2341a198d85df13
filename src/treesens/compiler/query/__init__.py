"""Floor 1: typed questions, all names resolved."""
