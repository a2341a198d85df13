"""Computes lower bounds of distances and of other terms, per cell of a value.

The distance of two points in a feature is bounded by a sum of two numbers, one for the cell of each point.

A distance |x - y| is at least x - y and at least y - x; per pair of cells, the greater bound is tight. A square is above its
tangents; only a few of these are used. A distance is at most the greatest distance from the cell of either point.

Terms about one value are bounded together: this bound is tighter than the sum of separate bounds, because a number near one row
is far from another row. If a cell has few values, each value is tried. Between two rows, a sum of distances, squares of
distances and linear terms is a parabola, whose minimum is at an end or at the vertex.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from fractions import Fraction
from math import isnan, isqrt
from typing import TypeAlias

from treesens.compiler.base.arrays import BoolArray
from treesens.compiler.query.query import Space
from treesens.compiler.query.values import DistanceTerm, LinearTerm, Place, Term, ValueRange, extremes
from treesens.values.distance_costs import cell_reaches

CellValues: TypeAlias = tuple[Place, list[Fraction | None]]
"""A place, and one number per cell; None for cells without legal values."""
Bounds: TypeAlias = list[list[CellValues]]
"""Alternative ways to bound one term."""
Numbers: TypeAlias = list[Fraction | None]

_SHIFT = 16
"""Maximum number of tangent slopes."""

MOST_VALUES = 256
"""Maximum number of values of one cell that are tried one by one."""


def bounds_of_distance(space: Space, term: DistanceTerm, limit: Fraction, terms: int) -> Bounds:
    """Lower bounds on `term`, by tangents that suit the limit on the sum of all terms (`terms` is their number)."""
    assert term.other is not None
    if term.factor > 0 and term.unordered:
        return [[]]  # a distance is not negative
    feature, legal = term.feature, space.legal[term.feature].tolist()
    ranges = cell_reaches(space, feature)
    missing = space.grid[feature].missing_cell if space.grid[feature].missing else -1
    cells = [i for i, ok in enumerate(legal) if ok and (i == missing or ranges[i] is not None)]
    one, other = (term.point, feature), (term.other, feature)

    def listed(value: Callable[[int], Fraction]) -> Numbers:
        return [abs(term.factor) * value(i) if i in inside else None for i in range(len(legal))]

    inside = set(cells)
    if term.factor < 0:
        far = _farthest(term, ranges, cells)
        return [[(place, listed(lambda i: -far[i]))] for place in (one, other)]
    sides = [_tangent(ranges, cells, slope, rise, term) for slope, rise in slopes_of(term, limit, terms)]
    if missing in inside:
        sides += [_by_absence(cells, missing, sign) for sign in (1, -1)]
    return [[(one, listed(mine.__getitem__)), (other, listed(yours.__getitem__))] for mine, yours in sides]


def _farthest(term: DistanceTerm, ranges: list[ValueRange | None], cells: list[int]) -> dict[int, Fraction]:
    """For each cell, the greatest distance from one of its values; a missing value is one width away from every other value."""
    present = [r for i in cells if (r := ranges[i]) is not None]
    others = Fraction(int(len(present) > 0 and len(present) < len(cells)))
    found = {}
    for i in cells:
        mine = ranges[i]
        if mine is None or term.unordered:
            found[i] = Fraction(int(len(present) > 0))
            continue
        low, high = (Fraction(min(r.low for r in present)), Fraction(max(r.high for r in present)))
        away = max(high - Fraction(mine.low), Fraction(mine.high) - low) / term.width
        found[i] = max(others, away) ** term.power
    return found


def slopes_of(term: DistanceTerm, limit: Fraction, terms: int) -> list[tuple[Fraction, Fraction]]:
    """The lines below a term, each as its slope and its depth below 0 at the value 0."""
    if term.power == 1:
        return [(Fraction(1), Fraction(0)), (Fraction(-1), Fraction(0))]
    steps = {_root(limit / term.factor), _root(limit / term.factor / terms)} - {Fraction(0)} or {Fraction(1, 2)}
    return [(sign * 2 * step, step * step) for step in sorted(steps) for sign in (1, -1)]


def _root(value: Fraction) -> Fraction:
    """An approximate square root."""
    return Fraction(isqrt(max(0, (value * (1 << 2 * _SHIFT)).__floor__())), 1 << _SHIFT)


def _by_absence(cells: list[int], missing: int, sign: int) -> tuple[dict[int, Fraction], dict[int, Fraction]]:
    """A bound by missingness: 1 if the first value is missing, minus 1 if the second is missing; or the reverse."""
    one = {i: Fraction(sign * (i == missing)) for i in cells}
    return one, {i: -x for i, x in one.items()}


def _tangent(
    ranges: list[ValueRange | None], cells: list[int], slope: Fraction, rise: Fraction, term: DistanceTerm
) -> tuple[dict[int, Fraction], dict[int, Fraction]]:
    """The bound slope * (one - other) / width - rise, with each value at the end of its cell where the bound is least.

    The number for a missing value is as large as its distances allow: 1 to every other value, and 0 to a missing value.
    """
    one, other = dict[int, Fraction](), dict[int, Fraction]()
    for i in cells:
        reach = ranges[i]
        if reach is not None:
            low, high = sorted(slope * Fraction(end) / term.width for end in (reach.low, reach.high))
            one[i], other[i] = low - rise, -high
    absent = [i for i in cells if ranges[i] is None]
    for i in absent:
        mine = 1 - max(other.values(), default=Fraction(0))
        other[i] = min(1 - max(one.values(), default=Fraction(0)), -mine)
        one[i] = mine
    return one, other


def least_together(
    place: Place, terms: Sequence[Term], ranges: Sequence[ValueRange | None], legal: BoolArray
) -> CellValues:
    """Per legal cell, a lower bound on the sum of a place's terms; None for illegal cells and for missing linear values."""
    return place, [_least(terms, reach) if ok else None for reach, ok in zip(ranges, legal, strict=True)]


def _least(terms: Sequence[Term], reach: ValueRange | None) -> Fraction | None:
    listed = None if reach is None else _values_of(reach)
    if listed is not None:
        return min(_value(terms, Fraction(x)) for x in listed)
    if reach is None or any(isinstance(term, DistanceTerm) and term.unordered for term in terms):
        found = [extremes(term, [reach]) for term in terms]
        return None if None in found else sum((ends[0] for ends in found if ends is not None), Fraction(0))
    low, high = Fraction(reach.low), Fraction(reach.high)
    rows = (Fraction(t.row) for t in terms if isinstance(t, DistanceTerm) and not isnan(t.row))
    ends = sorted({low, high, *(x for x in rows if low < x < high)})
    return min(_least_between(terms, one, other) for one, other in itertools.pairwise(ends))


def _values_of(reach: ValueRange) -> list[float] | None:
    """All legal values, if there are at most MOST_VALUES; otherwise None."""
    if reach.single:
        return [reach.low]
    if reach.values is not None:
        return reach.values.tolist() if len(reach.values) <= MOST_VALUES else None
    if not reach.whole or reach.high - reach.low >= MOST_VALUES:
        return None
    return [float(x) for x in range(int(reach.low), int(reach.high) + 1)]


def _least_between(terms: Sequence[Term], low: Fraction, high: Fraction) -> Fraction:
    """The minimum between two numbers with no row between them: at an end, or at the vertex of a convex parabola."""
    middle = (low + high) / 2
    first, half, last = (_value(terms, x) for x in (low, middle, high))
    least, bend = min(first, last), first - 2 * half + last
    if bend <= 0:
        return least
    vertex = middle - (last - first) * (high - low) / (4 * bend)
    return min(least, _value(terms, vertex)) if low < vertex < high else least


def _value(terms: Sequence[Term], x: Fraction) -> Fraction:
    """The sum of the terms at a rational number, which need not be a float."""
    return sum((_value_of(term, x) for term in terms), Fraction(0))


def _value_of(term: Term, x: Fraction) -> Fraction:
    if isinstance(term, LinearTerm):
        return term.factor * x
    if isnan(term.row):
        return term.factor
    away = abs(x - Fraction(term.row))
    return term.factor * (Fraction(int(away > 0)) if term.unordered else (away / term.width) ** term.power)
