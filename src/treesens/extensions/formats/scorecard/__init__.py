"""Reads scorecards, which are tables of points per bin."""
