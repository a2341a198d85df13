"""What an objective can be at all, feature by feature: no reported bound lies outside of it, whoever proved it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from math import ceil, floor

from treesens.compiler.query.query import AllOf, CellCost, Constraint, Objective, Query, Space
from treesens.compiler.query.values import (
    DistanceTerm,
    Term,
    ValueRange,
    ValueSum,
    extremes,
)
from treesens.values.feature_ranges import present_range, range_of_features
from treesens.values.stated_changes import implied_changes

Range = tuple[Fraction | None, Fraction | None]
"""Least and greatest value; None if nothing is said."""


def objective_range(query: Query) -> Range:
    """The range of an objective before unit and offset: distances, changes and costs of cells; scores have none here."""
    goal = query.objective
    if goal is None or goal.nearest is not None:
        return (None, None) if goal is None else (Fraction(0), None)
    if goal.values:
        if len(goal.distances) < len(goal.values):
            return range_of_features(query, goal.values)
        return _narrowed(_of_values(query.space, goal), stated_ranges(query, goal))
    if goal.probability is not None:
        ends = [term.ends for term in goal.probability.terms]
        return sum((low for low, _ in ends), Fraction(0)), sum((high for _, high in ends), Fraction(0))
    form = goal.form
    if not form.costs or form.scores or form.changes or form.pairs or form.levels or form.forests:
        return None, None
    parts = [_of_cost(query.space, cost) for cost in form.costs]
    return sum((low for low, _ in parts), Fraction(0)), sum((high for _, high in parts), Fraction(0))


def _of_values(space: Space, goal: Objective) -> tuple[Fraction, Fraction]:
    parts = [_of_term(space, term) for term in goal.distances]
    if goal.largest:
        return max((low for low, _ in parts), default=Fraction(0)), max(
            (high for _, high in parts), default=Fraction(0)
        )
    return sum((low for low, _ in parts), Fraction(0)), sum((high for _, high in parts), Fraction(0))


def stated_ranges(query: Query, goal: Objective) -> Iterator[Range]:
    """What the constraints say of this very sum: `changes(a, b) >= 3` is about `distance(a, b, l0)`, too.

    Cells alone cannot tell the two: of two values in one cell the constraint counts that they may differ, the objective
    that they need not.
    """
    if goal.largest:
        return
    own_factors = factors_of(goal.values)
    for relation in stated_relations(query.constraints):
        stated_factors = factors_of(relation.terms)
        ratios = (
            {stated_factors[key] / own_factors[key] for key in stated_factors}
            if stated_factors.keys() == own_factors.keys()
            else set()
        )
        if len(ratios) == 1 and (ratio := ratios.pop()):
            yield _half(relation, ratio, whole=goal.counts and all(f.denominator == 1 for f in own_factors.values()))
    yield from ((least, None) for least in _implied_changes(query, goal))


def _implied_changes(query: Query, goal: Objective) -> Iterator[Fraction]:
    """What a count of changes is at least, since the points differ: `distance(a, b) > 0`, `a.x != b.x`."""
    counted: dict[int, Fraction] = {}
    for term in goal.values:
        if not isinstance(term, DistanceTerm) or not term.unordered or {term.point, term.other} != {0, 1}:
            return
        counted[term.feature] = counted.get(term.feature, Fraction(0)) + term.factor
    if min(counted.values(), default=Fraction(0)) < 0:
        return
    together, used = Fraction(0), set[int]()
    for features, least in sorted(implied_changes(query.constraints), key=lambda known: len(known[0])):
        factors = sorted(counted.get(feature, Fraction(0)) for feature in features)
        own = sum(factors[:least], Fraction(0))
        yield own
        if not features & used:
            together, used = together + own, used | features
    yield together


def _half(relation: ValueSum, ratio: Fraction, *, whole: bool) -> Range:
    """What `ratio * sum <= limit` leaves for the sum; the next whole number inside if the sum is whole."""
    limit = relation.limit / ratio
    if ratio > 0:
        inside = ceil(limit) - 1 if relation.strict else floor(limit)
        return None, Fraction(inside) if whole else limit
    inside = floor(limit) + 1 if relation.strict else ceil(limit)
    return Fraction(inside) if whole else limit, None


def stated_relations(constraints: Iterable[Constraint]) -> Iterator[ValueSum]:
    """The relations that hold whatever else does."""
    for constraint in constraints:
        if isinstance(constraint, AllOf):
            yield from stated_relations(constraint.parts)
        elif isinstance(constraint, ValueSum):
            yield constraint


def factors_of(terms: Iterable[Term]) -> dict[object, Fraction]:
    """The factor of each quantity in a sum. A distance has no direction, and one of unordered values no width."""
    found: dict[object, Fraction] = {}
    for term in terms:
        if isinstance(term, DistanceTerm):
            ends: object = frozenset((term.point, term.other)) if term.other is not None else (term.point, term.row)
            width = None if term.unordered else term.width
            key: object = (ends, term.feature, width, term.power, term.unordered)
        else:
            key = replace(term, factor=Fraction(1))
        found[key] = found.get(key, Fraction(0)) + term.factor
    return {key: factor for key, factor in found.items() if factor}


def _narrowed(first: tuple[Fraction, Fraction], others: Iterable[Range]) -> Range:
    low, high = first
    for least, most in others:
        low, high = low if least is None else max(low, least), high if most is None else min(high, most)
    return low, high


def _of_term(space: Space, term: DistanceTerm) -> tuple[Fraction, Fraction]:
    """A term over everything legal: the present values as one range, and missing."""
    present = present_range(space, term.feature, space.legal[term.feature])
    options = [present] if present is not None else []
    choices: list[ValueRange | None] = [*options]
    missing = space.grid[term.feature].missing_cell
    if missing >= 0 and space.legal[term.feature][missing]:
        choices.append(None)
    ways = itertools.product(choices, repeat=len(term.places))
    found = [ends for way in ways if (ends := extremes(term, way)) is not None]
    return min(low for low, _ in found), max(high for _, high in found)


def _of_cost(space: Space, cost: CellCost) -> tuple[Fraction, Fraction]:
    costs = cost.costs[space.legal[cost.feature]]
    unit = 1 << cost.shift
    return Fraction(int(costs.min()), unit), Fraction(int(costs.max()), unit)
