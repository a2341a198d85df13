"""Displays answers and records: words, tables, pages and pictures."""
