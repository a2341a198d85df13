"""`present(P.f)`: every cell but that of missing values. As `missing`, it is asked of what may be missing, and in decisions."""

from __future__ import annotations

from treesens.binder.constructs.missing import is_missing
from treesens.binder.scope import Pending, Scope
from treesens.grammar.constructs.present import IsPresent


def bind(scope: Scope, node: IsPresent, positive: bool) -> Pending:
    return is_missing(scope, node.feature, not positive)
