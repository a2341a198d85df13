"""Links of calibrated models and of models of models, and the functions in their sums of probabilities."""
