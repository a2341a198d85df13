"""`decision(P) = OUTCOME`; its meaning is tested with its declarations (tests/binder/test_decisions.py)."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from treesens.grammar.constructs.decided import Decided, DecidedAlike

INPUT_CONSTRAINTS = ()


def trees(parts: Any) -> st.SearchStrategy[Any]:
    one = st.builds(Decided, parts.names, st.none() | parts.names, parts.several(parts.names, 1, 3))
    return one | st.builds(DecidedAlike, parts.names, st.none() | parts.names, parts.names, st.none() | parts.names)


def built(node: Decided | DecidedAlike, parts: Any) -> Any:
    if isinstance(node, Decided):
        about = parts.point(node.point).decision(parts.label(node.decision))
        names = [name.text for name in node.outcomes]
        return about == names[0] if len(names) == 1 else about.is_in(names)
    left, right = parts.point(node.left), parts.point(node.right)
    return left.decision(parts.label(node.left_decision)) == right.decision(parts.label(node.right_decision))
