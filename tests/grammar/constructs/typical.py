"""`P, Q typical of DATA [at L %] [by WAY]`; its meaning is tested with its data (tests/data/test_typical.py)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from treesens.grammar.constructs.typical import Typical
from treesens.grammar.tree import ast

INPUT_CONSTRAINTS = ()

_LEVELS = st.integers(1, 9999).map(lambda digits: ast.Number(Fraction(digits, 100)))


def trees(parts: Any) -> st.SearchStrategy[Any]:
    ways = st.sampled_from([None, "chow-liu", "isolation"])
    return st.builds(Typical, parts.several(parts.names, 1, 2), parts.names, st.none() | _LEVELS, ways)


def built(node: Typical, parts: Any) -> Any:
    from treesens import query as q

    points = map(parts.point, node.points)
    level = None if node.level is None else node.level.value
    return q.typical(*points, data=node.data.text, level=level, by=node.way)
