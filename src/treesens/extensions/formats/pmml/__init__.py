"""Reads PMML: trees, ensembles of trees, scorecards, and regressions over categories and numbers."""
