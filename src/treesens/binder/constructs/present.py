"""`present(P.f)`: all cells except the cell of missing values. Outside of decisions, the feature must allow missing values."""

from __future__ import annotations

from treesens.binder.constructs.missing import is_missing
from treesens.binder.scope import Pending, Scope
from treesens.grammar.constructs.present import IsPresent


def bind(scope: Scope, node: IsPresent, positive: bool) -> Pending:
    return is_missing(scope, node.feature, not positive)
