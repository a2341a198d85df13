"""Tasks around one answer: rows of tables, second opinions, conjuncts that clash."""
