"""Floor 5: one file per solver, behind one interface."""
