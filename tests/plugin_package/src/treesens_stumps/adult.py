"""`adult(P.f)`: the feature is at least 18. A predicate of the language, and its meaning."""

from __future__ import annotations

import math
from typing import ClassVar

from treesens.binder import inputs
from treesens.binder.scope import Pending, Scope
from treesens.grammar.constructs.construct import FeaturePredicate, feature_predicate
from treesens.grammar.tree.node import node


@node
class IsAdult(FeaturePredicate):
    """`adult(P.f)`"""

    word: ClassVar[str] = "adult"
    meaning: ClassVar[str] = "is at least 18"


CONSTRUCT = feature_predicate(IsAdult)


def bind(scope: Scope, predicate: IsAdult, positive: bool) -> Pending:
    """The constraint, or its complement."""
    point, feature = scope.point(predicate.feature.point), scope.feature(predicate.feature.feature)
    return inputs.region(scope, point, feature, [(18.0, math.inf)], positive=positive)
