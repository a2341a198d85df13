"""Measures over inputs, and the affected shares of a measure (docs/measures.md)."""
