"""Passes that use the native engine; results list the proofs they depend on."""
