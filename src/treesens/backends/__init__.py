"""One file per solver, behind one interface."""
