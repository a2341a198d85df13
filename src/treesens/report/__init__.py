"""Answers and records drawn: words, tables, pages and pictures."""
