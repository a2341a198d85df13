"""Scorecards: points per bin, as a table."""
