"""Numbers that reach a score by a coefficient: tables of their values, steps of an interval, and their questions."""
