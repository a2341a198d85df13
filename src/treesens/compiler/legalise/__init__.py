"""What a backend cannot take, rewritten into what it can; one file per target form, formulas in the docstring."""
