"""`P, Q avoid cavities(DATA, width = w)`; its meaning is tested with its data (tests/data)."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from treesens import query as q
from treesens.grammar.constructs.avoid import Avoid

INPUT_CONSTRAINTS = ()


def trees(parts: Any) -> st.SearchStrategy[Any]:
    return st.builds(Avoid, parts.several(parts.names, 1, 2), parts.names, parts.wholes, st.none() | parts.wholes)


def built(node: Avoid, parts: Any) -> Any:
    points = map(parts.point, node.points)
    return q.avoid_cavities(*points, data=node.data.text, width=node.width.value, limit=parts.whole(node.limit))
