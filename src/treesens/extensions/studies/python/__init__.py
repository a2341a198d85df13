"""Studies as Python calls, and their results."""
