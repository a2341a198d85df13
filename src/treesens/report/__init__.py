"""Floor 6: answers as tables and pages."""
