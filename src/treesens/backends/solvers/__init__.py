"""One file per solver, found by its name; each file defines its backend as `BACKEND`."""
