"""`missing(P.f)`: the cell of missing values. An error for a feature whose domain has none."""

from __future__ import annotations

from treesens.binder import inputs
from treesens.binder.scope import Pending, Scope
from treesens.compiler.base.diagnostics import Span
from treesens.grammar.constructs.missing import NEVER_MISSING, IsMissing
from treesens.grammar.tree import ast


def bind(scope: Scope, node: IsMissing, positive: bool) -> Pending:
    point, feature = place_that_may_be_missing(scope, node.feature, node.feature.span)
    return inputs.is_missing(scope, point, feature, positive)


def place_that_may_be_missing(scope: Scope, node: ast.FeatureOf, span: Span) -> tuple[int, int]:
    """Point and feature; E210 if the feature always has a value."""
    point, feature = scope.point(node.point), scope.feature(node.feature)
    spec = scope.spec(feature)
    if not spec.missing:
        kind = "category {..}" if spec.unordered or spec.coded else "real"
        remedy = f"declare it: `feature {spec.name}: {kind} or missing`"
        raise scope.fail(NEVER_MISSING, f"`{spec.name}` is never missing in its domain", span, remedy)
    return point, feature
