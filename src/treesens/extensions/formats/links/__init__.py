"""Links of calibrated models and of models of models, and the terms of these links in sums of probabilities."""
