"""`P, Q avoid cavities(DATA, width = w)`; its meaning is tested with its data (tests/data)."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from treesens.grammar.constructs.avoid import Avoid, AvoidListed

INPUT_CONSTRAINTS = ()


def trees(parts: Any) -> st.SearchStrategy[Any]:
    of = parts.several(parts.names, 1, 2), parts.names, parts.wholes
    listed = st.builds(AvoidListed, parts.several(parts.names, 1, 2), parts.texts)
    return st.builds(Avoid, *of, st.none() | parts.wholes) | st.builds(Avoid, *of, st.none(), st.booleans()) | listed


def built(node: Avoid | AvoidListed, parts: Any) -> Any:
    from treesens import query as q

    points = map(parts.point, node.points)
    if isinstance(node, AvoidListed):
        return q.avoid_listed(*points, file=node.path.value)
    limit = "all" if node.every else parts.whole(node.limit)
    return q.avoid_cavities(*points, data=node.data.text, width=node.width.value, limit=limit)
