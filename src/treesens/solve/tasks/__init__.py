"""Tasks related to one answer: rows of tables, second opinions, conjuncts that clash."""
