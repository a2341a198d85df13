"""Display of answers and records: words, tables, pages and pictures."""
