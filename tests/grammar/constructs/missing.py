"""`missing(P.f)`"""

from __future__ import annotations

import math
from typing import Any

from hypothesis import strategies as st

from treesens.grammar.constructs.missing import IsMissing

INPUT_CONSTRAINTS = ("missing(a.gap)", "not missing(a.gap)", "a.gap = 0.5 or missing(a.gap)")


def trees(parts: Any) -> st.SearchStrategy[Any]:
    return st.builds(IsMissing, parts.features_of)


def holds(world: Any, node: IsMissing) -> bool:
    return math.isnan(world.stored(node.feature.point.text, node.feature.feature.text))


def built(node: IsMissing, parts: Any) -> Any:
    return parts.quantity(node.feature).is_missing()
