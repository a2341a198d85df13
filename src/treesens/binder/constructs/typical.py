"""`P, Q typical of D [at L %] [by WAY]`: a score learnt from half of the rows reaches a quantile of the other half's scores."""

from __future__ import annotations

from fractions import Fraction

from treesens.binder.inputs import all_of, any_of
from treesens.binder.scope import Pending, Scope
from treesens.binder.typicality import legal_rows, method_of, rows_needed, typical_score
from treesens.compiler.query import query as q
from treesens.compiler.query.bounds import LogRational
from treesens.compiler.query.forest import FOREST_ROW, ForestTerm
from treesens.grammar.constructs.typical import LEVEL_OUT_OF_RANGE, TOO_FEW_ROWS, Typical


def bind(scope: Scope, node: Typical, positive: bool) -> Pending:
    points = scope.every(scope.point, node.points)
    least = _threshold(scope, node)
    score = typical_score(scope, node.data, method_of(node.way))
    sign = 1 if positive else -1

    def row(point: int) -> Pending:
        def build(space: q.Space) -> q.AtLeast:
            term = ForestTerm(point, score.forest, score.forest.on(space.grid), sign)
            return q.AtLeast(q.LinearForm(forests=(term,)), LogRational(least * sign), not positive, FOREST_ROW)

        return build

    return (all_of if positive else any_of)(row(point) for point in points)


def _threshold(scope: Scope, node: Typical) -> Fraction:
    span = node.level.span if node.level is not None else node.span
    if not 0 < node.percent < 100:
        shown = f"`{span.text}`" if node.level is not None else "the level"
        raise scope.fail(
            LEVEL_OUT_OF_RANGE, f"{shown} is not a share of inputs", span, "write a number between 0 and 100"
        )
    outside = 1 - node.percent / 100
    rows = legal_rows(scope, node.data)
    score = typical_score(scope, node.data, method_of(node.way)) if len(rows) > 1 else None
    least = score.least(outside) if score is not None else None
    if least is None:
        message = f"`{node.data.text}` has {len(rows)} rows in the domain, and at this level {rows_needed(outside)} are needed"
        raise scope.fail(TOO_FEW_ROWS, message, span, "use more rows, or a lower level")
    return least
