"""The typicality of points for a table, in constraints and objectives; learnt once for all questions about the same inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from math import lcm
from typing import Literal, Protocol, TypeAlias, get_args

import numpy as np

from treesens.binder.data_terms import put_on_side
from treesens.binder.inputs import NEGATED
from treesens.binder.scope import Pending, Scope
from treesens.binder.terms import TypicalityAtom
from treesens.builtin import service
from treesens.compiler.base.arrays import BoolArray, FloatArray, Int32Array, Int64Array
from treesens.compiler.base.dyadic import Unit
from treesens.compiler.model.grid import Grid
from treesens.compiler.model.kinds import Feature
from treesens.compiler.query import query as q
from treesens.compiler.query.bounds import LogRational
from treesens.compiler.query.forest import FOREST_ROW, SHIFT, Forest, ForestTerm
from treesens.data.rows import cells_of_rows
from treesens.errors import UsageError
from treesens.grammar.constructs.typical import TOO_FEW_ROWS
from treesens.grammar.tree import ast
from treesens.grammar.tree.words import TYPICAL_WAYS

Method = Literal["chow-liu", "isolation"]
METHODS: tuple[Method, ...] = get_args(Method)
_LEAST = 2
_PendingObjective: TypeAlias = Callable[[q.Space], q.Objective]


@dataclass(frozen=True, eq=False)
class TypicalScore:
    """A typicality model: a forest, and the scores of held-out rows, ascending, in units of 2**-SHIFT."""

    forest: Forest
    held_out: Int64Array

    def least(self, outside: Fraction) -> Fraction | None:
        """The score below which a fresh input falls with probability at most `outside`; None for too few rows."""
        place = (outside * (len(self.held_out) + 1)).__floor__()
        return None if place < 1 else Unit(SHIFT).value(self.held_out[place - 1])


def rows_needed(outside: Fraction) -> int:
    """The minimum number of table rows for a region that contains a fresh input with probability at least 1 - `outside`."""
    held_out = -((-1 / outside).__floor__()) - 1
    return 2 * max(1, held_out)


class TypicalScores(Protocol):
    """The interface of the service "measures" (`builtin.SERVICES`)."""

    def learn_typical(
        self, cells: Int32Array, grid: Grid, features: tuple[Feature, ...], method: Method
    ) -> TypicalScore:
        """Learns typicality from `cells`, int32[rows, features]: at least two rows of legal cells."""


def method_of(way: str | None) -> Method:
    """The method named by a word of the language; by default the first method."""
    return "isolation" if way == TYPICAL_WAYS[1] else "chow-liu"


def typical_score(scope: Scope, data: ast.Name, method: Method) -> TypicalScore:
    """A table's typicality model, learnt once for all questions about the same inputs."""
    key = ("typical", data.text, method)
    if key not in scope.inputs.cache:
        cells = legal_rows(scope, data)
        try:
            learner: TypicalScores = service("measures")
            scope.inputs.cache[key] = learner.learn_typical(cells, scope.inputs.base, scope.inputs.features, method)
        except UsageError as error:
            raise scope.fail("E219", error.message, data.span, error.remedy or "") from None
    return scope.inputs.cache[key]  # type: ignore[return-value]


def legal_rows(scope: Scope, data: ast.Name) -> Int32Array:
    """The cells of the rows that are valid inputs: values are legal, or missing where allowed, and `onehot` holds."""
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
    """Marks rows in which exactly one of the members is 1 and all others are 0, bool[rows]."""
    return np.asarray(((values == 0) | (values == 1)).all(axis=1) & ((values == 1).sum(axis=1) == 1), bool)


def compare_typicalities(
    scope: Scope, terms: Mapping[TypicalityAtom, Fraction], operator: ast.Operator, number: Fraction, positive: bool
) -> Pending:
    """Compares a sum of typicalities with a number."""
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
    """A sum of typicalities as an objective."""
    found, whole = _with_scores(scope, terms)

    def build(space: q.Space) -> q.Objective:
        form = q.LinearForm(forests=_terms(space, found, 1))
        return q.Objective(form, upwards, "typicality", Fraction(1, whole), offset)

    return build


def _with_scores(
    scope: Scope, terms: Mapping[TypicalityAtom, Fraction]
) -> tuple[list[tuple[int, TypicalScore, int]], int]:
    """The point, score and integer coefficient of every term, and the factor by which all coefficients were multiplied."""
    whole = lcm(*(c.denominator for c in terms.values()))
    found = []
    for atom, coefficient in terms.items():
        if len(legal_rows(scope, atom.node.data)) < _LEAST:
            message = f"`{atom.table}` has fewer than {_LEAST} rows in the domain"
            raise scope.fail(TOO_FEW_ROWS, message, atom.node.span, "pass more rows")
        score = typical_score(scope, atom.node.data, method_of(atom.way))
        found.append((atom.point, score, int(coefficient * whole)))
    return found, whole


def _terms(space: q.Space, found: list[tuple[int, TypicalScore, int]], sign: int) -> tuple[ForestTerm, ...]:
    return tuple(ForestTerm(p, score.forest, score.forest.on(space.grid), c * sign) for p, score, c in found)
