"""Typed questions, all names resolved."""
