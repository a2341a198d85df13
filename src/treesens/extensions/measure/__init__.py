"""Measures over inputs, and affected shares of them (docs/measures.md)."""
