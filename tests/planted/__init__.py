"""Errors planted into copies of the sources, one patch each, and the finder of each."""
