"""scikit-learn: trees, forests, boosters and pipelines, live or pickled in a trusted file."""
