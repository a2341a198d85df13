"""What is asked besides one answer: rows of tables, several answers, shares, second opinions, conjuncts that clash."""
