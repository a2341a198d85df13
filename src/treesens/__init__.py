"""treesens: a compiler for questions about decision-tree ensembles."""

__version__ = "0.1.0"
