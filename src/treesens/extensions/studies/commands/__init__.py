"""Studies as commands."""
