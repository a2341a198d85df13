"""What a sum of features can be at all: by domains, by the sets that values lie in, and by relations between features.

A sum over boxes ends at their ends. A multiple of a relation that holds anyway may be added to it (weak duality of linear
programs: Chvatal, Linear Programming, 1983, chapter 5): `b.x - a.x` is at least 0 beside `a.x <= b.x`, which no cell says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from treesens.compiler.base.arrays import BoolArray
from treesens.compiler.query.query import Objective, Query, Space
from treesens.compiler.query.values import DistanceTerm, LinearTerm, Place, Term, ValueRange, join_ranges, reach_of_cell
from treesens.values.relations import canonical_terms, equal_groups, firm_relations, merged_mask

_Factors = Mapping[Place, Fraction]


def range_of_features(query: Query, terms: Sequence[Term]) -> tuple[Fraction, Fraction]:
    """No answer makes less or more of a sum of features than these two; the ends need not be reached."""
    found = _Boxes(query)
    factors = found.factors(terms)
    return -found.greatest({place: -factor for place, factor in factors.items()}), found.greatest(factors)


def distances_from_best(query: Query, goal: Objective) -> tuple[tuple[DistanceTerm, ...], Fraction] | None:
    """A sum of features as its value where all are best, and how far each is from there: best + (or, maximised, -) distances.

    None if all values of one are missing.
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
    """The values of a feature from the first to the last of some cells, bool[n_cells]; None if all of these are missing."""
    grid = space.grid[feature]
    present = np.flatnonzero(cells[: grid.present_cells])
    if len(present) == 0:
        return None
    first, last = (reach_of_cell(space.domains[feature], grid, int(cell)) for cell in (present[0], present[-1]))
    return None if first is None or last is None else join_ranges(first, last)


class _Boxes:
    """The range of every place, and the relations that hold anyway as (factors, limit)."""

    def __init__(self, query: Query) -> None:
        self.query = query
        self.roots = equal_groups(query.constraints, len(query.points), len(query.space.names))
        self.ranges: dict[Place, ValueRange | None] = {}
        linear = [r for r in firm_relations(query.constraints) if all(isinstance(t, LinearTerm) for t in r.terms)]
        self.relations = [(self.factors(relation.terms), relation.limit) for relation in linear]

    def factors(self, terms: Sequence[Term]) -> dict[Place, Fraction]:
        """The factor of the first of each group of equal places."""
        merged = canonical_terms(terms, self.roots)
        return {term.places[0]: term.factor for term in merged if isinstance(term, LinearTerm) and term.factor}

    def greatest(self, factors: _Factors) -> Fraction:
        """An upper bound of the sum: multiples of relations are taken off it as long as that lowers the bound."""
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
        """The present values of the first of a group of equal places."""
        if place not in self.ranges:
            same = [one for one, root in self.roots.items() if root == place]
            cells = np.logical_and.reduce([merged_mask(self.query, *one) for one in same])
            self.ranges[place] = present_range(self.query.space, place[1], cells)
        return self.ranges[place]
