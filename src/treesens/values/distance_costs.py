"""Bounds by cells on a term of a `ValueSum`: the least value over a cell or a pair of cells, as an integer.

Costs never exceed the true value (for maximised terms, the true value never exceeds costs): refutations by costs are valid.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from treesens.compiler.base.arrays import BoolArray, Int64Array, IntegerArray, frozen
from treesens.compiler.base.dyadic import Unit
from treesens.compiler.query.domain import Domain, ValueDomain, whole_range
from treesens.compiler.query.query import CellCost, PairCost, Space
from treesens.compiler.query.values import DistanceTerm, Term, ValueRange, extremes, value_ranges

UNARY_SHIFT = 40
PAIR_SHIFTS = {1: 24, 2: 18}
"""Ends of cells are rounded outwards to multiples of 2**-shift widths; squared distances use twice the shift."""


def cell_reaches(space: Space, feature: int) -> list[ValueRange | None]:
    """The legal values of every cell of a feature."""
    return value_ranges(space.domains[feature], space.grid[feature])


def least_of_cells(term: Term, ranges: list[ValueRange | None], legal: BoolArray) -> list[Fraction | None]:
    """The least value of a unary term in every legal cell; None in other cells and, for a linear term, in the missing cell."""
    result: list[Fraction | None] = []
    for reach, is_legal in zip(ranges, legal, strict=True):
        found = extremes(term, [reach]) if is_legal else None
        result.append(None if found is None else found[0])
    return result


def cell_cost(space: Space, term: Term) -> CellCost:
    """The least value in every cell of a term with one place, rounded down to 2**-UNARY_SHIFT; 0 in illegal cells."""
    ranges = cell_reaches(space, term.feature)
    least = least_of_cells(term, ranges, space.legal[term.feature])
    whole = [0 if v is None else (v * (1 << UNARY_SHIFT)).__floor__() for v in least]
    wide = any(abs(v) >= 1 << 61 for v in whole)
    costs: IntegerArray = np.array(whole, object if wide else np.int64)
    return CellCost(term.point, term.feature, frozen(costs), UNARY_SHIFT)


def distances_of_cells(space: Space, term: DistanceTerm, upwards: bool) -> list[Fraction | None]:
    """The least (greatest, if `upwards`) value in every cell of a term with one place; None in cells without legal values."""
    result: list[Fraction | None] = []
    for reach, is_legal in zip(cell_reaches(space, term.feature), space.legal[term.feature], strict=True):
        found = extremes(term, [reach]) if is_legal else None
        result.append(None if found is None else found[1 if upwards else 0])
    return result


def distances_reached(space: Space, terms: Sequence[DistanceTerm], upwards: bool, most: int) -> list[Fraction] | None:
    """The best distances of all cells, or pairs of cells, ascending; None if more than `most` pairs have to be examined.

    The largest of several distances is one of these distances if values can be as good as the best values of their cells.
    """
    cells = [len(space.legal[term.feature]) ** len(term.places) for term in terms]
    if sum(cells) > most:
        return None
    found: set[Fraction] = set()
    for term in terms:
        legal = [
            reach for reach, ok in zip(cell_reaches(space, term.feature), space.legal[term.feature], strict=True) if ok
        ]
        for chosen in itertools.product(legal, repeat=len(term.places)):
            ends = extremes(term, list(chosen))
            if ends is not None:
                found.add(ends[1 if upwards else 0])
    return sorted(found)


def distances_of_values(space: Space, terms: Sequence[DistanceTerm], most: int) -> list[Fraction] | None:
    """All distances between two legal values of a feature, or between a legal value and the row, ascending.

    None if more than `most` distances must be computed, or a feature may be fractional.

    The largest of several distances is one of these distances, regardless of the relations.
    """
    found: set[Fraction] = set()
    left = most
    for term in terms:
        values = _listed(space.domains[term.feature], left)
        if values is None:
            return None
        # For two integers only their difference matters.
        ends = (
            values[:1]
            if term.other is not None and not isinstance(space.domains[term.feature], ValueDomain)
            else values
        )
        pairs = [(v,) for v in values] if term.other is None else list(itertools.product(ends, values))
        left -= len(pairs)
        if left < 0:
            return None
        reached = (term.value(pair) for pair in pairs)
        found.update(value for value in reached if value is not None)
    return sorted(found)


def _listed(domain: Domain, most: int) -> list[float] | None:
    """The legal values, NaN for missing; None if values may be fractional, or if there are more than `most` values."""
    if isinstance(domain, ValueDomain):
        values = domain.values.tolist()
    elif domain.whole:
        first, last = whole_range(domain.low, domain.high)
        if last - first >= most:
            return None
        values = [float(v) for v in range(first, last + 1)]
    else:
        return None
    values += [math.nan] if domain.missing else []
    return values if len(values) <= most else None


def pair_cost(space: Space, term: DistanceTerm) -> PairCost:
    """The least value, in every pair of cells, of a distance between two points with a factor of 1 or -1."""
    assert term.other is not None
    feature, shift = term.feature, PAIR_SHIFTS[term.power]
    near = term.factor > 0
    ranges = cell_reaches(space, feature)
    one = 1 << shift
    if term.unordered:
        costs = np.full((len(ranges), len(ranges)), one, np.int64)
        single = [near or r is None or r.single for r in ranges]
        costs[np.arange(len(ranges)), np.arange(len(ranges))] = np.where(single, 0, one)
    else:
        costs = _between(ranges, term.width, shift, near)
    missing = space.grid[feature].missing_cell
    if missing >= 0:
        costs[missing, :] = costs[:, missing] = one
        costs[missing, missing] = 0
    powered = costs**term.power
    signed = powered if near else -powered
    return PairCost((term.point, feature), (term.other, feature), frozen(signed, np.int64), shift * term.power)


def _between(ranges: list[ValueRange | None], width: Fraction, shift: int, near: bool) -> Int64Array:
    """The least (or greatest) distances of all pairs of cells; cells without values copy a neighbour's distances."""
    low, high = np.zeros(len(ranges), np.int64), np.zeros(len(ranges), np.int64)
    present = [i for i, r in enumerate(ranges) if r is not None]
    for i in present:
        reach = ranges[i]
        assert reach is not None
        low[i] = Unit(shift).floor(Fraction(reach.low) / width)
        high[i] = Unit(shift).ceil(Fraction(reach.high) / width)
    if near:
        return np.asarray(np.maximum(0, np.maximum(low[None, :] - high[:, None], low[:, None] - high[None, :])))
    return np.asarray(np.maximum(high[None, :] - low[:, None], high[:, None] - low[None, :]))
