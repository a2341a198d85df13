"""Rewrites unsupported constraints into forms that a backend supports; one file per target form, formulas in the docstring."""
