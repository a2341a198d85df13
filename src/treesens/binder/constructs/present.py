"""`present(P.f)`: every cell but that of missing values. An error for a feature that always has a value."""

from __future__ import annotations

from treesens.binder import inputs
from treesens.binder.constructs.missing import place_that_may_be_missing
from treesens.binder.scope import Pending, Scope
from treesens.grammar.constructs.present import IsPresent


def bind(scope: Scope, node: IsPresent, positive: bool) -> Pending:
    point, feature = place_that_may_be_missing(scope, node.feature, node.feature.span)
    return inputs.is_missing(scope, point, feature, not positive)
