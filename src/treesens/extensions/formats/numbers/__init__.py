"""Models in which a number reaches the score by a coefficient: tables of the number's values over a domain."""
