"""Answers of `check` for CI tools, and `.sens` files as tests of pytest."""
