"""Passes that use the native engine; their results list the proofs on which they depend."""
