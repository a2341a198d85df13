"""How typical points are of a table, learnt once for all questions about the same inputs; sums of it as rows and objectives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import reduce
from math import lcm
from typing import TypeAlias

import numpy as np

from treesens.binder.data_terms import put_on_side
from treesens.binder.inputs import NEGATED
from treesens.binder.scope import Pending, Scope
from treesens.binder.terms import TypicalityAtom
from treesens.compiler.base.arrays import BoolArray, FloatArray, Int32Array
from treesens.compiler.query import query as q
from treesens.compiler.query.bounds import LogRational
from treesens.compiler.query.forest import FOREST_ROW, ForestTerm
from treesens.data.rows import cells_of_rows
from treesens.data.typical import Method, TypicalScore, learn_typical
from treesens.errors import UsageError
from treesens.grammar.constructs.typical import TOO_FEW_ROWS
from treesens.grammar.tree import ast
from treesens.grammar.tree.words import TYPICAL_WAYS

_LEAST = 2
_PendingObjective: TypeAlias = Callable[[q.Space], q.Objective]


def method_of(way: str | None) -> Method:
    """The method of a word of the language; the first one if none is named."""
    return "isolation" if way == TYPICAL_WAYS[1] else "chow-liu"


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


def one_hot_rows(values: FloatArray) -> BoolArray:
    """Whether exactly one of the members is 1 and all others are 0, bool[rows]."""
    return np.asarray(((values == 0) | (values == 1)).all(axis=1) & ((values == 1).sum(axis=1) == 1), bool)


def compare_typicalities(
    scope: Scope, terms: Mapping[TypicalityAtom, Fraction], operator: ast.Operator, number: Fraction, positive: bool
) -> Pending:
    """A sum of scores against a number."""
    found, whole = _with_scores(scope, terms)

    def side(direction: int, strict: bool) -> Pending:
        def build(space: q.Space) -> q.AtLeast:
            form = q.LinearForm(forests=_terms(space, found, direction))
            return q.AtLeast(form, LogRational(number * whole * direction), strict, FOREST_ROW)

        return build

    return put_on_side(operator if positive else NEGATED[operator], side)


def typicality_objective(
    scope: Scope, terms: Mapping[TypicalityAtom, Fraction], offset: Fraction, upwards: bool
) -> _PendingObjective:
    """A sum of scores, to be as large or as small as can be."""
    found, whole = _with_scores(scope, terms)

    def build(space: q.Space) -> q.Objective:
        form = q.LinearForm(forests=_terms(space, found, 1))
        return q.Objective(form, upwards, "typicality", Fraction(1, whole), offset)

    return build


def _with_scores(
    scope: Scope, terms: Mapping[TypicalityAtom, Fraction]
) -> tuple[list[tuple[int, TypicalScore, int]], int]:
    """Point, score and whole coefficient of every term, and what coefficients were multiplied with."""
    whole = lcm(*(c.denominator for c in terms.values()))
    found = []
    for atom, coefficient in terms.items():
        if len(legal_rows(scope, atom.node.data)) < _LEAST:
            message = f"`{atom.table}` has fewer than {_LEAST} rows in the domain"
            raise scope.fail(TOO_FEW_ROWS, message, atom.node.span, "give more rows")
        score = typical_score(scope, atom.node.data, method_of(atom.way))
        found.append((atom.point, score, int(coefficient * whole)))
    return found, whole


def _terms(space: q.Space, found: list[tuple[int, TypicalScore, int]], sign: int) -> tuple[ForestTerm, ...]:
    return tuple(ForestTerm(p, score.forest, score.forest.on(space.grid), c * sign) for p, score, c in found)
