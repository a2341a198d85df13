"""Sums over values as rows of costs, which statements can say: what single cells say of a relation between values.

Values satisfy a sum of terms <= limit only if the sum of the least values in their cells does. The distance of two points is
at least 0. So the row has every input of the relation, and perhaps more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np

from treesens.compiler.base.arrays import frozen
from treesens.compiler.base.units import Unit
from treesens.compiler.query.bounds import LogRational
from treesens.compiler.query.query import AllOf, AtLeast, CellCost, Constraint, Difference, LinearForm, Query, Space
from treesens.compiler.query.values import DistanceTerm, LinearTerm, Term, ValueSum
from treesens.values.distance_costs import cell_reaches, least_of_cells

_BITS = 44
"""Of the greatest cost of a row."""


def with_cell_rows(query: Query) -> Query:
    """The question with a row of costs beside every relation between values that has one."""
    found = tuple(_with_rows(query.space, query.constraints))
    return query if len(found) == len(query.constraints) else replace(query, constraints=found)


def _with_rows(space: Space, constraints: tuple[Constraint, ...]) -> Iterator[Constraint]:
    for constraint in constraints:
        if isinstance(constraint, AllOf):
            yield from _with_rows(space, constraint.parts)
            continue
        yield constraint
        if isinstance(constraint, ValueSum):
            yield from _row_of(space, constraint)
        elif isinstance(constraint, Difference):
            for relation in _sums_of(constraint):
                yield from _row_of(space, relation)


def _sums_of(relation: Difference) -> Iterator[ValueSum]:
    one = LinearTerm(relation.left, relation.feature, relation.left_factor)
    other = LinearTerm(relation.right, relation.other, -relation.right_factor)
    if relation.high is not None:
        yield ValueSum((one, other), relation.high, relation.high_strict)
    if relation.low is not None:
        turned = (replace(one, factor=-one.factor), replace(other, factor=-other.factor))
        yield ValueSum(turned, -relation.low, relation.low_strict)


def _row_of(space: Space, relation: ValueSum) -> Iterator[AtLeast]:
    """The row of a sum, if single cells say anything about it."""
    unary: list[Term] = []
    for term in relation.terms:
        if not isinstance(term, DistanceTerm) or term.other is None:
            unary.append(term)
        elif term.factor < 0:
            return
    least = [least_of_cells(t, cell_reaches(space, t.feature), space.legal[t.feature]) for t in unary]
    known = [[v for v in values if v is not None] for values in least]
    if not unary or not all(known):
        return
    most = max(abs(v) for values in known for v in values)
    unit = Unit(_BITS - max(1, most.__ceil__().bit_length()))
    costs = []
    for term, values, present in zip(unary, least, known, strict=True):
        # Rounded up: no input is lost. A cell without a value of the term is left out by the relation, not by its row.
        whole = [unit.ceil(-(min(present) if v is None else v)) for v in values]
        costs.append(CellCost(term.point, term.feature, frozen(np.array(whole, np.int64)), unit.shift))
    wanted = -relation.limit
    count = (
        unit.floor(wanted) + 1 if relation.strict and unit.floor(wanted) == unit.count(wanted) else unit.ceil(wanted)
    )
    bound = LogRational(Fraction(count) * unit.size)
    yield AtLeast(LinearForm(costs=tuple(costs)), bound, name=f"{relation.name}.cells")
