"""Compositions of scikit-learn: pipelines, wrappers, linear models, models of models, and single outputs."""
