"""Converts syntax trees to typed questions: resolves names, units and domains against models and tables."""
