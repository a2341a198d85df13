"""`P, Q typical of D [at L %] [by WAY]`: a score learnt from half of the rows is as high as a share of the others'."""

from __future__ import annotations

from fractions import Fraction
from functools import reduce

import numpy as np

from treesens.binder.inputs import all_of, any_of
from treesens.binder.scope import Pending, Scope
from treesens.compiler.base.arrays import BoolArray, Int32Array
from treesens.compiler.query import query as q
from treesens.compiler.query.bounds import LogRational
from treesens.compiler.query.forest import FOREST_ROW, ForestTerm
from treesens.data.rows import cells_of_rows
from treesens.data.typical import Method, TypicalScore, learn_typical, rows_needed
from treesens.errors import UsageError
from treesens.grammar.constructs.typical import LEVEL_OUT_OF_RANGE, TOO_FEW_ROWS, Typical
from treesens.grammar.tree import ast


def bind(scope: Scope, node: Typical, positive: bool) -> Pending:
    points = scope.every(scope.point, node.points)
    least = _threshold(scope, node)
    score = typical_score(scope, node.data, _method(node))
    sign = 1 if positive else -1

    def row(point: int) -> Pending:
        def build(space: q.Space) -> q.AtLeast:
            term = ForestTerm(point, score.forest, score.forest.on(space.grid), sign)
            return q.AtLeast(q.LinearForm(forests=(term,)), LogRational(least * sign), not positive, FOREST_ROW)

        return build

    return (all_of if positive else any_of)(row(point) for point in points)


def _method(node: Typical) -> Method:
    return "isolation" if node.way == "isolation" else "chow-liu"


def _threshold(scope: Scope, node: Typical) -> Fraction:
    span = node.level.span if node.level is not None else node.span
    if not 0 < node.percent < 100:
        shown = f"`{span.text}`" if node.level is not None else "the level"
        raise scope.fail(LEVEL_OUT_OF_RANGE, f"{shown} is no share of inputs", span, "write a number between 0 and 100")
    outside = 1 - node.percent / 100
    rows = legal_rows(scope, node.data)
    score = typical_score(scope, node.data, _method(node)) if len(rows) > 1 else None
    least = score.least(outside) if score is not None else None
    if least is None:
        message = f"`{node.data.text}` has {len(rows)} rows in the domain, and at this level {rows_needed(outside)} are needed"
        raise scope.fail(TOO_FEW_ROWS, message, span, "give more rows, or a lower level")
    return least


def typical_score(scope: Scope, data: ast.Name, method: Method) -> TypicalScore:
    """What is typical of a table, learnt once for all questions about the same inputs."""
    key = ("typical", data.text, method)
    if key not in scope.inputs.cache:
        cells = legal_rows(scope, data)
        try:
            scope.inputs.cache[key] = learn_typical(cells, scope.inputs.base, scope.inputs.features, method)
        except UsageError as error:
            raise scope.fail("E219", error.message, data.span, error.remedy or "") from None
    return scope.inputs.cache[key]  # type: ignore[return-value]


def legal_rows(scope: Scope, data: ast.Name) -> Int32Array:
    """The cells of the rows that are inputs: values legal, none missing where it may not be, `onehot` as declared."""
    key = ("legal rows", data.text)
    if key not in scope.inputs.cache:
        matrix = scope.matrix(data)
        inside = reduce(np.logical_and, (scope.spec(f).allows(matrix[:, f]) for f in range(matrix.shape[1])))
        for node in scope.found.onehots:
            members = [scope.index[name.text] for name in node.features if name.text in scope.index]
            if len(members) == len(node.features):
                inside &= one_hot_rows(matrix[:, members])
        scope.inputs.cache[key] = cells_of_rows(scope.inputs.base, matrix[inside])
    return scope.inputs.cache[key]  # type: ignore[return-value]


def one_hot_rows(values: np.ndarray) -> BoolArray:
    """Whether exactly one of the members is 1 and all others are 0, bool[rows]."""
    return np.asarray(((values == 0) | (values == 1)).all(axis=1) & ((values == 1).sum(axis=1) == 1), bool)
