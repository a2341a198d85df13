"""Models with coefficients of numbers in the score; over a domain, each number becomes a table of its values."""
