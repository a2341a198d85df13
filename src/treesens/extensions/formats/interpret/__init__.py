"""Explainable boosting machines of InterpretML."""
