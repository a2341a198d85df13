"""Floor 5: one file per model format."""
