"""Measures over inputs, and how much of one a question is about (docs/measures.md)."""
