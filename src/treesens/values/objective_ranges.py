"""The a-priori range of an objective, feature by feature: no reported bound is outside this range, regardless of its proof.

A sum of features is bounded by domains, value sets, and relations between features. A sum over boxes is bounded by the ends of
the boxes, possibly after a multiple of an unconditional relation has been added (weak duality of linear programs: Chvatal,
Linear Programming, 1983, chapter 5): with `a.x <= b.x`, `b.x - a.x` is at least 0, although cells do not imply this.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil, floor

import numpy as np

from treesens.compiler.base.arrays import BoolArray
from treesens.compiler.query.query import AllOf, CellCost, Constraint, Objective, Query, Space
from treesens.compiler.query.values import (
    DistanceTerm,
    LinearTerm,
    Place,
    Term,
    ValueRange,
    ValueSum,
    extremes,
    join_ranges,
    reach_of_cell,
)
from treesens.values.relations import canonical_terms, equal_groups, firm_relations, merged_mask
from treesens.values.stated_changes import implied_changes

Range = tuple[Fraction | None, Fraction | None]
"""The least and the greatest value, each None if unbounded."""


def objective_range(query: Query) -> Range:
    """The range of an objective before unit and offset, for distances, changes and costs of cells; scores are unbounded."""
    goal = query.objective
    if goal is None or goal.nearest is not None:
        return (None, None) if goal is None else (Fraction(0), None)
    if goal.form.scores:
        return None, None
    if goal.values:
        if len(goal.distances) < len(goal.values):
            return range_of_features(query, goal.values)
        return _narrowed(_of_values(query.space, goal), stated_ranges(query, goal))
    if goal.probability is not None:
        ends = [term.ends for term in goal.probability.terms]
        return sum((low for low, _ in ends), Fraction(0)), sum((high for _, high in ends), Fraction(0))
    form = goal.form
    if not form.costs or form.changes or form.pairs or form.levels or form.forests:
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
    """Bounds stated by constraints on the objective's own sum: `changes(a, b) >= 3` also bounds `distance(a, b, l0)`.

    Cells do not imply such a bound: two values in one cell may differ, as the constraint requires, or be equal, as the
    objective counts them.
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
    """Lower bounds on a number of changes, because the points differ: `distance(a, b) > 0`, `a.x != b.x`."""
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
    """The bound on a sum from `ratio * sum <= limit`; rounded inwards if the sum is an integer."""
    limit = relation.limit / ratio
    if ratio > 0:
        inside = ceil(limit) - 1 if relation.strict else floor(limit)
        return None, Fraction(inside) if whole else limit
    inside = floor(limit) + 1 if relation.strict else ceil(limit)
    return Fraction(inside) if whole else limit, None


def stated_relations(constraints: Iterable[Constraint]) -> Iterator[ValueSum]:
    """Yields the unconditional relations."""
    for constraint in constraints:
        if isinstance(constraint, AllOf):
            yield from stated_relations(constraint.parts)
        elif isinstance(constraint, ValueSum):
            yield constraint


def factors_of(terms: Iterable[Term]) -> dict[object, Fraction]:
    """The factor of each quantity in a sum. Distances are symmetric, and distances of unordered values have no width."""
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
    """The range of a term over all legal values: a single range for the present values, and missing."""
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


_Factors = Mapping[Place, Fraction]


def range_of_features(query: Query, terms: Sequence[Term]) -> tuple[Fraction, Fraction]:
    """A lower and an upper bound on a sum of features over all answers; the bounds need not be reached."""
    found = _Boxes(query)
    factors = found.factors(terms)
    return -found.greatest({place: -factor for place, factor in factors.items()}), found.greatest(factors)


def distances_from_best(query: Query, goal: Objective) -> tuple[tuple[DistanceTerm, ...], Fraction] | None:
    """The distances of features from their best values, and the best sum: other sums add (if maximised, subtract) distances.

    None if a feature can only be missing.
    """
    boxes, sign = _Boxes(query), -1 if goal.maximize else 1
    terms, best = list[DistanceTerm](), Fraction(0)
    for (point, feature), factor in boxes.factors(goal.values).items():
        reach = boxes.range_of((point, feature))
        if reach is None:
            return None
        row = reach.low if sign * factor > 0 else reach.high
        terms.append(DistanceTerm(point, feature, None, row, Fraction(1), factor=abs(factor)))
        best += factor * Fraction(row)
    return tuple(terms), best


def present_range(space: Space, feature: int, cells: BoolArray) -> ValueRange | None:
    """The values of a feature from the first to the last of the given cells, bool[n_cells]; None if all are missing."""
    grid = space.grid[feature]
    present = np.flatnonzero(cells[: grid.present_cells])
    if len(present) == 0:
        return None
    first, last = (reach_of_cell(space.domains[feature], grid, int(cell)) for cell in (present[0], present[-1]))
    return None if first is None or last is None else join_ranges(first, last)


class _Boxes:
    """The range of every place, and all unconditional relations as (factors, limit)."""

    def __init__(self, query: Query) -> None:
        self.query = query
        self.roots = equal_groups(query.constraints, len(query.points), len(query.space.names))
        self.ranges: dict[Place, ValueRange | None] = {}
        linear = [r for r in firm_relations(query.constraints) if all(isinstance(t, LinearTerm) for t in r.terms)]
        self.relations = [(self.factors(relation.terms), relation.limit) for relation in linear]

    def factors(self, terms: Sequence[Term]) -> dict[Place, Fraction]:
        """The factors in a sum by place, where the first place represents each group of equal places."""
        merged = canonical_terms(terms, self.roots)
        return {term.places[0]: term.factor for term in merged if isinstance(term, LinearTerm) and term.factor}

    def greatest(self, factors: _Factors) -> Fraction:
        """An upper bound on the sum, found by subtracting multiples of relations as long as each lowers the bound."""
        best, constant = self._over(factors), Fraction(0)
        for relation, limit in self.relations:
            for place in [place for place in relation if factors.get(place, Fraction(0)) / relation[place] > 0]:
                share = factors.get(place, Fraction(0)) / relation[place]
                if share <= 0:
                    continue
                places = dict.fromkeys((*factors, *relation))
                rest = {p: factors.get(p, Fraction(0)) - share * relation.get(p, Fraction(0)) for p in places}
                bound = self._over(rest) + constant + share * limit
                if bound < best:
                    best, constant, factors = bound, constant + share * limit, rest
        return best

    def _over(self, factors: _Factors) -> Fraction:
        total = Fraction(0)
        for place, factor in factors.items():
            reach = self.range_of(place)
            if reach is not None:
                total += factor * Fraction(reach.high if factor > 0 else reach.low)
        return total

    def range_of(self, place: Place) -> ValueRange | None:
        """The range of present values at the first place of a group of equal places."""
        if place not in self.ranges:
            same = [one for one, root in self.roots.items() if root == place]
            cells = np.logical_and.reduce([merged_mask(self.query, *one) for one in same])
            self.ranges[place] = present_range(self.query.space, place[1], cells)
        return self.ranges[place]
