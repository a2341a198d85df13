"""`E in [lo, hi]`, `E in {v1, v2}`"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.binder import meaning
from treesens.grammar.constructs.membership import InInterval, InSet
from treesens.grammar.tree import ast

INPUT_CONSTRAINTS = ("not a.x in [0.1, 1]", "a.age not in {17, 27}")


def trees(parts: Any) -> st.SearchStrategy[Any]:
    values = parts.several(parts.labels).map(ast.ValueSet)
    return st.builds(InInterval, parts.expressions, parts.intervals) | st.builds(InSet, parts.expressions, values)


def holds(world: Any, node: InInterval | InSet) -> bool:
    if isinstance(node, InSet):
        return any(meaning.holds(world, ast.Comparison(node.operand, "=", label)) for label in node.values.values)
    value = meaning.evaluate(world, node.operand)
    return value is not meaning.MISSING and meaning.inside(value, node.interval)


def built(node: InInterval | InSet, parts: Any) -> Any:
    if isinstance(node, InSet):
        return parts.quantity(node.operand).is_in([parts.label(v) for v in node.values.values])
    inclusive = parts.ENDS[node.interval.low_open, node.interval.high_open]
    low, high = parts.label(node.interval.low), parts.label(node.interval.high)
    return parts.quantity(node.operand).between(low, high, inclusive=inclusive)
