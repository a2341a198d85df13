"""Answers of `check` for CI tools, and `.sens` files as pytest tests."""
