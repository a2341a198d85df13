"""Models of H2O-3, as MOJO files."""
