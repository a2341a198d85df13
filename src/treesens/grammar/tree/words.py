"""The words of the language by role.

All words, including those of constructs, are terminals of the grammar (`keywords` in `grammar/parsing/terminals.py`); words
without a role here are operators.
"""

from __future__ import annotations

from typing import Final

DECLARATIONS: Final = (
    *("include", "let", "param", "define"),
    *("model", "data", "feature", "onehot", "domain", "measure", "decision", "query", "for"),
)
"""Words that start a declaration at the beginning of a line."""

VERBS: Final = ("find", "sensitive", "count", "explain", "maximize", "minimize", "share", "expect", "top")
TYPES: Final = ("real", "integer", "category")
CONSTANTS: Final = ("inf", "none", "some", "features", "pairs", "protected", "diverse", "smallest")
CONNECTIVES: Final = (
    *("each", "from", "as", "to", "label", "rows", "row", "of", "nearest", "such", "that", "stored", "missing"),
    *("gap", "margin", "factor", "near", "using", "at", "without", "when", "else"),
)
WITH_ROLE: Final = frozenset((*DECLARATIONS, *VERBS, *TYPES, *CONSTANTS, *CONNECTIVES))

QUANTITIES: Final = {
    "prob": "prob(P) or prob(P, CLASS)",
    "margin": "margin(P) or margin(P, CLASS)",
    "value": "value(P)",
    "class": "class(P)",
    "likelihood": "likelihood(P, DATA)",
    "typicality": "typicality(P, DATA) or typicality(P, DATA, isolation)",
    "distance": "distance(P, Q or row N of DATA or nearest row of DATA, l0 or l1 or l2 or linf)",
    "changes": "changes(P, Q)",
    "abs": "abs(P.f - Q.f)",
}
"""Every function that denotes a quantity, with its call forms; functions in constraints are in `grammar/constructs/`."""

NORMS: Final = ("l0", "l1", "l2", "linf")
NEARNESS: Final = ("likelihood", "cavities", "both", "distance")
TYPICAL_WAYS: Final = ("chow-liu", "isolation")
MEASURES: Final = ("uniform", "cells", "marginals", "chow-liu", "rows")
"""Kinds of measures; the last three are learnt from a table."""

ENDS_OPEN: Final = frozenset(
    (
        "such",
        "that",
        "of",
        "row",
        "nearest",
        "factor",
        "margin",
        "from",
        "to",
        "near",
        "using",
        "at",
        "without",
        "when",
        "else",
        "maximize",
        "minimize",
    )
)
"""A line that ends with one of these words, or with an operator, continues on the next line."""
