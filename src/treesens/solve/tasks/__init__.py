"""Tasks around one answer: rows of tables, several answers, shares, second opinions, conjuncts that clash."""
