"""scikit-learn: trees, forests and boosters, live or pickled in a trusted file."""
