"""Links that only calibrated models and models of models need, and the functions in their sums of probabilities."""
