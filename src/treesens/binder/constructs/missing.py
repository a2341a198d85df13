"""`missing(P.f)`: the cell of missing values. Outside of decisions, testing a feature that is never missing is an error."""

from __future__ import annotations

from treesens.binder import inputs
from treesens.binder.scope import Pending, Scope
from treesens.grammar.constructs.missing import NEVER_MISSING, IsMissing
from treesens.grammar.tree import ast
from treesens.visible import declaration


def bind(scope: Scope, node: IsMissing, positive: bool) -> Pending:
    return is_missing(scope, node.feature, positive)


def is_missing(scope: Scope, node: ast.FeatureOf, positive: bool) -> Pending:
    """The value is missing. E210 if the feature always has a value, except in a decision, which may be written for other rows
    too."""
    point, feature = scope.point(node.point), scope.feature(node.feature)
    spec = scope.spec(feature)
    if spec.missing:
        return inputs.is_missing(scope, point, feature, positive)
    if scope.aliases:
        return inputs.any_of([]) if positive else inputs.all_of([])
    kind = "category {..}" if spec.unordered or spec.coded else "real"
    remedy = f"declare it: {declaration(spec.name, f'{kind} or missing')}"
    raise scope.fail(NEVER_MISSING, f"`{spec.name}` is never missing in its domain", node.span, remedy)
