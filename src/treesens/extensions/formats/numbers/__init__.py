"""Models in which a number enters the score with a coefficient; over a domain, the number becomes a table of its values."""
