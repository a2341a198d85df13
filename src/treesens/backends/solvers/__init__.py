"""One file per solver, found by its name; each ends with `BACKEND`, its backend."""
