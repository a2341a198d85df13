"""`present(P.f)`"""

from __future__ import annotations

import math
from typing import Any

from hypothesis import strategies as st

from treesens.grammar.constructs.present import IsPresent

INPUT_CONSTRAINTS = ("present(a.gap)", "not present(a.gap)", "a.gap = 0.5 or present(a.gap)")


def trees(parts: Any) -> st.SearchStrategy[Any]:
    return st.builds(IsPresent, parts.features_of)


def holds(world: Any, node: IsPresent) -> bool:
    return not math.isnan(world.stored(node.feature.point.text, node.feature.feature.text))


def built(node: IsPresent, parts: Any) -> Any:
    return parts.quantity(node.feature).is_present()
