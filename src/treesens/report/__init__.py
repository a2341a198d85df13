"""Answers as tables and pages."""
