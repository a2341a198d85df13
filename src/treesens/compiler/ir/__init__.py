"""Floor 2: the constraint IR."""
