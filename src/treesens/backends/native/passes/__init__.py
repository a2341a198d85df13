"""Passes that ask the native engine for help; their proofs are named in the result."""
