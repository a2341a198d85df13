"""Lowers sums over values to rows over cells; also lowers costs of pairs of cells, and ladders.

Cells satisfy (sum of terms) <= limit only if the sum of the terms' least values is <= limit. If U is the greatest of a term's
least values, the row over cells is: sum of (U - least(cell)) >= sum of U - limit. Its coefficients are capped at the bound and
rounded up, so that the row never excludes a solution; wrongly admitted points are rejected when values are chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import lcm

import numpy as np

from treesens.compiler.base.arrays import BoolArray, Int32Array, Int64Array, IntegerArray, frozen
from treesens.compiler.base.budget import steadily
from treesens.compiler.base.dyadic import Unit
from treesens.compiler.ir import FALSE, TRUE
from treesens.compiler.lower.builder import Builder
from treesens.compiler.lower.differences import counts_changes, lower_difference, row_of_changes
from treesens.compiler.query import query as q
from treesens.compiler.query.bounds import LogRational
from treesens.compiler.query.values import DistanceTerm, LinearTerm, Place, Term, ValueSum
from treesens.values.distance_costs import cell_reaches, least_of_cells, pair_cost
from treesens.values.relations import canonical_terms, equal_groups, merged_mask

_BITS = 30
"""If the exact coefficients of a row are too long, the row is scaled so that its bound has this number of bits."""

_EXACT = 1 << 40
_LONGEST = 1 << 56

Part = tuple[Int32Array, IntegerArray, int]
"""Variables, their coefficients, and the shift of the coefficients' unit."""


def roots_of(builder: Builder) -> dict[Place, Place]:
    """Maps every place to the first of the places that the question makes equal; computed once."""
    if builder.roots is None:
        query = builder.query
        builder.roots = equal_groups(query.constraints, len(query.points), len(query.space.names))
    return builder.roots


def row_of_sum(builder: Builder, relation: ValueSum, when: int) -> q.AtLeast | None:
    """Adds a relation's consequences for single cells; returns the remaining row, if any, which the caller adds."""
    terms = canonical_terms(relation.terms, roots_of(builder))
    guard = [when ^ 1] if when != TRUE else []
    if not terms:
        if not relation.allows(Fraction(0)):
            builder.clause(guard or [FALSE])
        return None
    for term in terms:
        missing = builder.query.space.grid[term.feature].missing_cell
        if isinstance(term, LinearTerm) and missing >= 0:
            builder.clause([*guard, builder.at_most(term.point, term.feature, missing - 1)])
    if len(terms) == 2 and all(isinstance(term, LinearTerm) for term in terms):
        lower_difference(builder, _difference(relation, terms), when)
        return None
    if counts_changes(terms):
        return row_of_changes(relation, terms)
    return _row(builder, relation, terms, guard)


def _difference(relation: ValueSum, terms: tuple[Term, ...]) -> q.Difference:
    one, other = terms
    assert isinstance(one, LinearTerm)
    assert isinstance(other, LinearTerm)
    return q.Difference(
        one.point,
        one.feature,
        other.point,
        other.feature,
        None,
        relation.limit,
        False,
        relation.strict,
        one.factor,
        -other.factor,
    )


def _row(builder: Builder, relation: ValueSum, terms: tuple[Term, ...], guard: list[int]) -> q.AtLeast | None:
    space = builder.query.space
    unary: list[tuple[Term, list[Fraction | None]]] = []
    pairs: list[tuple[Fraction, q.PairCost]] = []
    slack = -relation.limit  # becomes the sum of the terms' greatest least values, minus the limit
    lowest = Fraction(0)
    for term in terms:
        if isinstance(term, DistanceTerm) and term.other is not None:
            sign = 1 if term.factor > 0 else -1
            cost = pair_cost(space, DistanceTerm(**{**vars(term), "factor": Fraction(sign)}))
            pairs.append((abs(term.factor), cost))
            allowed = cost.costs[np.ix_(_mask(builder, cost.left), _mask(builder, cost.right))]
            unit = abs(term.factor) * Unit(cost.shift).size
            slack += unit * int(allowed.max(initial=0))
            lowest += unit * int(allowed.min()) if allowed.size else 0
            continue
        mask = _mask(builder, term.places[0])
        least = least_of_cells(term, cell_reaches(space, term.feature), mask)
        known = [v for v in least if v is not None]
        if not known:
            builder.clause(guard or [FALSE])
            return None
        unary.append((term, least))
        slack += max(known)
        lowest += min(known)
    if not relation.allows(lowest):
        builder.clause(guard or [FALSE])
        return None
    if slack < 0 or (slack == 0 and not relation.strict):
        return None
    if len(terms) == 1 and unary:
        term, least = unary[0]
        mask = np.array([v is not None and relation.allows(v) for v in least])
        inside = builder.inside(term.point, term.feature, mask)
        builder.clause([*guard, inside])
        return None
    scale = _scale(slack, unary, pairs)
    most = 2 * slack if relation.strict else slack
    costs = []
    for term, least in unary:
        top = max(v for v in least if v is not None)
        gains = [Fraction(0) if v is None else top - v for v in least]
        if slack > 0:
            gains = [min(g, most) for g in gains]
        whole = np.array([-((-g * scale).__floor__()) for g in gains], object)
        costs.append(q.CellCost(term.point, term.feature, frozen(_narrow(whole)), 0))
    shown = []
    constant = Fraction(0)
    for factor, cost in pairs:
        unit = factor * scale * Unit(cost.shift).size
        assert unit.denominator == 1
        allowed = cost.costs[np.ix_(_mask(builder, cost.left), _mask(builder, cost.right))]
        constant += int(allowed.max(initial=0)) * unit
        if int(np.abs(cost.costs).max(initial=0)) * int(unit) >= _LONGEST:
            return None  # too long for a row; points that it would exclude are refuted when values are chosen
        shown.append(q.PairCost(cost.left, cost.right, frozen(-cost.costs * int(unit), np.int64), 0))
    # A pair with cost f gains U - f: the form contains -f, and the bound U.
    wanted = slack * scale
    least_whole = wanted.__floor__() + 1 if relation.strict else -((-wanted).__floor__())
    form = q.LinearForm(costs=tuple(costs), pairs=tuple(shown))
    return q.AtLeast(form, LogRational(Fraction(least_whole) - constant), False, relation.name)


def _scale(
    slack: Fraction, unary: list[tuple[Term, list[Fraction | None]]], pairs: list[tuple[Fraction, q.PairCost]]
) -> Fraction:
    """The factor that scales gains to integers: exact if the integers are short enough, and always exact for pairs."""
    if pairs:
        return lcm(*(factor.denominator for factor, _ in pairs)) / Unit(max(c.shift for _, c in pairs)).size
    if slack == 0:
        return Fraction(1)
    numbers = [v for _, least in unary for v in least if v is not None]
    common = lcm(slack.denominator, *(v.denominator for v in numbers))
    if common * (slack + 1) < _EXACT:
        return Fraction(common)
    return Fraction(1 << _BITS) / slack


def _narrow(values: IntegerArray) -> IntegerArray:
    return values if any(abs(int(v)) >= 1 << 61 for v in values) else values.astype(np.int64)


def _mask(builder: Builder, place: Place) -> BoolArray:
    return merged_mask(builder.query, *place)


# --- pairs --------------------------------------------------------------------------------------------------------------------


def lower_pair(builder: Builder, pair: q.PairCost, multiplier: int, sense: int, parts: list[Part]) -> Fraction:
    """Adds the cost of a pair of cells to `parts` as the sum over k and l of m(k, l) [x <= k and y <= l]; returns the constant.

    m is the mixed difference of the table, which is 0 wherever the table is a sum of single-cell costs. Each conjunction is a
    Boolean with only the implication that `sense` requires; a wrong Boolean never improves the form.
    """
    table = _filled(_filled(pair.costs, _mask(builder, pair.left)).T, _mask(builder, pair.right)).T * multiplier
    roots = roots_of(builder)
    if roots[pair.left] == roots[pair.right]:
        return _single(builder, pair.left, np.diagonal(table).copy(), pair.shift, parts)
    if (table == table[:1]).all():
        return _single(builder, pair.right, table[0], pair.shift, parts)
    if (table == table[:, :1]).all():
        return _single(builder, pair.left, table[:, 0], pair.shift, parts)
    total = _single(builder, pair.left, table[:, -1], pair.shift, parts)
    total += _single(builder, pair.right, table[-1, :], pair.shift, parts) - Unit(pair.shift).value(table[-1, -1])
    mixed = table[:-1, :-1] - table[1:, :-1] - table[:-1, 1:] + table[1:, 1:]
    rows, columns = np.nonzero(mixed)
    variables = []
    for k, m in steadily(zip(rows.tolist(), columns.tolist(), strict=True)):
        one = builder.at_most(pair.left[0], pair.left[1], k)
        other = builder.at_most(pair.right[0], pair.right[1], m)
        both = builder.reified()
        variables.append(both >> 1)
        if int(mixed[k, m]) * sense > 0:
            builder.clause([both ^ 1, one])
            builder.clause([both ^ 1, other])
        else:
            builder.clause([both, one ^ 1, other ^ 1])
    if variables:
        parts.append((np.array(variables, np.int32), mixed[rows, columns], pair.shift))
    return total


def _filled(table: Int64Array, mask: BoolArray) -> Int64Array:
    """Replaces rows of forbidden cells by copies of the previous (or first) allowed row, so that fewer rows differ."""
    index = np.where(mask, np.arange(len(mask)), -1)
    index = np.maximum.accumulate(index)
    first = int(np.argmax(mask)) if mask.any() else 0
    return np.asarray(table[np.where(index < 0, first, index)])


def _single(builder: Builder, place: Place, values: Int64Array, shift: int, parts: list[Part]) -> Fraction:
    block = builder.order(place[1], place[0])
    if len(block.variables):
        parts.append((block.variables, values[:-1] - values[1:], shift))
    return Unit(shift).value(values[-1])


# --- ladders ------------------------------------------------------------------------------------------------------------------


def lower_levels(
    builder: Builder, levels: Sequence[q.Level], multiplier: int, parts: list[Part]
) -> list[tuple[q.Constraint, int]]:
    """Adds a literal per step of a ladder, with its cost, to `parts`; returns the constraints tied to the literals."""
    tied: list[tuple[q.Constraint, int]] = []
    before = TRUE
    for level in levels:
        literal = builder.reified()
        builder.clause([literal ^ 1, before])
        if level.below is not None:
            tied.append((level.below, literal ^ 1))
        if level.above is not None:
            tied.append((level.above, literal))
        parts.append((np.array([literal >> 1], np.int32), np.array([level.cost * multiplier], np.int64), level.shift))
        before = literal
    return tied
