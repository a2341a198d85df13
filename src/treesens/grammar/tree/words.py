"""The words of the language by their role; the terminals of `sens.lark` are the same words (a test compares them)."""

from __future__ import annotations

from typing import Final

DECLARATIONS: Final = ("model", "data", "feature", "onehot", "domain", "measure", "decision", "query", "for")
"""A line that starts with one of these starts a declaration."""

VERBS: Final = ("find", "sensitive", "count", "explain", "maximize", "minimize", "share", "expect", "top")
TYPES: Final = ("real", "integer", "category")
LOGIC: Final = ("and", "or", "not", "implies", "in", "except", "avoid", "typical", "by")
CONSTANTS: Final = ("inf", "none", "some", "features", "pairs", "protected", "diverse", "smallest")
CONNECTIVES: Final = (
    *("each", "from", "as", "to", "label", "rows", "row", "of", "nearest", "such", "that", "stored", "missing"),
    *("gap", "margin", "factor", "near", "using", "at", "without", "when", "else"),
)
KEYWORDS: Final = frozenset((*DECLARATIONS, *VERBS, *TYPES, *LOGIC, *CONSTANTS, *CONNECTIVES))

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
"""Every quantity that is a function, with the ways to call it; constraints have theirs in `grammar/constructs/`."""

NORMS: Final = ("l0", "l1", "l2", "linf")
NEARNESS: Final = ("likelihood", "cavities", "both", "distance")
TYPICAL_WAYS: Final = ("chow-liu", "isolation")
MEASURES: Final = ("uniform", "cells", "marginals", "chow-liu", "rows")
"""Kinds of measures; the last three are those of a table."""

ENDS_OPEN: Final = frozenset(
    (
        *LOGIC,
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
"""A line that ends with one of these goes on in the next."""
