"""Rewrites unsupported constraints to forms that a backend supports: one file per form, with formulas in its docstring."""
