"""Sums over values: exact linear relations between features and distances, and their least values over cells.

A `ValueSum` is an upper bound on a sum of terms. Each term has a least value over ranges of legal values, which is reached at
ends of the ranges; the sum of these least values is the relaxation over cells (`lower/sums.py`). The values themselves are
chosen, and checked exactly, when the answer is built (`values/concretise.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import isnan
from typing import Literal, TypeAlias

import numpy as np

from treesens.compiler.base.arrays import FloatArray
from treesens.compiler.base.floats import NumberType, ceil_to, next_up
from treesens.compiler.model.grid import FeatureGrid
from treesens.compiler.query.domain import Domain, RealDomain, ValueDomain, cell_range

Place: TypeAlias = tuple[int, int]
"""A point and a feature."""


@dataclass(frozen=True)
class LinearTerm:
    """factor * stored value of a feature at a point. A missing value satisfies no relation."""

    point: int
    feature: int
    factor: Fraction

    @property
    def places(self) -> tuple[Place, ...]:
        return ((self.point, self.feature),)

    def value(self, values: Sequence[float]) -> Fraction | None:
        return None if isnan(values[0]) else self.factor * Fraction(values[0])


@dataclass(frozen=True)
class DistanceTerm:
    """factor * (distance / width) ** power in one feature, from a point to another point or, if `other` is None, to a value.

    A missing value is at distance 1 width from every other value, and at distance 0 from another missing value. If `unordered`,
    the distance between unequal values is 1 width."""

    point: int
    feature: int
    other: int | None
    row: float
    width: Fraction
    power: int = 1
    unordered: bool = False
    factor: Fraction = Fraction(1)

    @property
    def places(self) -> tuple[Place, ...]:
        here = (self.point, self.feature)
        return (here,) if self.other is None else (here, (self.other, self.feature))

    def value(self, values: Sequence[float]) -> Fraction | None:
        one, other = values[0], values[1] if len(values) > 1 else self.row
        return self.factor * self.distance(one, other) ** self.power

    def distance(self, one: float, other: float) -> Fraction:
        """The distance of two values in widths, before the power is applied."""
        if isnan(one) or isnan(other):
            return Fraction(0 if isnan(one) and isnan(other) else 1)
        if one == other:
            return Fraction(0)
        return Fraction(1) if self.unordered else abs(Fraction(one) - Fraction(other)) / self.width


Term: TypeAlias = LinearTerm | DistanceTerm


def changed_features(
    left: int, right: int, features: Sequence[int], factor: Fraction = Fraction(1)
) -> tuple[DistanceTerm, ...]:
    """factor * the number of features in which two points have different values; missing equals missing."""
    return tuple(DistanceTerm(left, f, right, 0.0, Fraction(1), unordered=True, factor=factor) for f in features)


@dataclass(frozen=True)
class ValueSum:
    """sum of terms <= limit (< if strict), on stored values."""

    terms: tuple[Term, ...]
    limit: Fraction
    strict: bool = False
    name: str = "relation"

    @property
    def places(self) -> tuple[Place, ...]:
        return tuple(dict.fromkeys(p for term in self.terms for p in term.places))

    def allows(self, total: Fraction) -> bool:
        return total < self.limit if self.strict else total <= self.limit

    def holds(self, value_at: Callable[[Place], float]) -> bool:
        """True if concrete values satisfy the relation in exact arithmetic."""
        total = sum_of(self.terms, value_at)
        return total is not None and self.allows(total)


def sum_of(terms: Sequence[Term], value_at: Callable[[Place], float]) -> Fraction | None:
    """The sum of terms on concrete values; None if the value of a linear term is missing."""
    total = Fraction(0)
    for term in terms:
        value = term.value([value_at(place) for place in term.places])
        if value is None:
            return None
        total += value
    return total


# --- ranges of legal values ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ValueRange:
    """The legal values of a feature from `low` to `high` (both legal): floats of the type, integers, or `values` ascending."""

    low: float
    high: float
    number_type: NumberType
    whole: bool = False
    values: FloatArray | None = None

    @property
    def single(self) -> bool:
        return self.low == self.high

    def narrowed(
        self, low: Fraction | None, high: Fraction | None, low_open: bool = False, high_open: bool = False
    ) -> ValueRange | None:
        """The legal values between two bounds, or None. Ends are moved inwards to legal values, exactly."""
        first, last = self.low, self.high
        if low is not None and (low > first or (low_open and low == first)):
            found = self._next(low, low_open)
            if found is None:
                return None
            first = found
        if high is not None and (high < last or (high_open and high == last)):
            found = self._previous(high, high_open)
            if found is None:
                return None
            last = found
        if first > last:
            return None
        return self if (first, last) == (self.low, self.high) else replace(self, low=first, high=last)

    def _next(self, bound: Fraction, is_open: bool) -> float | None:
        """The first legal value at or above a bound (above, if `is_open`); None without such a value."""
        if self.values is not None:
            side: Literal["left", "right"] = "right" if is_open else "left"
            start = int(np.searchsorted(self.values, ceil_to(bound, NumberType.FLOAT64), side=side))
            if is_open and start > 0 and Fraction(float(self.values[start - 1])) > bound:
                start -= 1  # the bound is not a float, and the next float is a value
            return float(self.values[start]) if start < len(self.values) else None
        if bound > self.high:
            return None
        if self.whole:
            return ceil_to(Fraction(bound.__floor__() + 1 if is_open else -((-bound).__floor__())), self.number_type)
        found = ceil_to(bound, self.number_type)
        return next_up(found, self.number_type) if is_open and Fraction(found) == bound else found

    def _previous(self, bound: Fraction, is_open: bool) -> float | None:
        """The last legal value at or below a bound (below, if `is_open`); None without such a value."""
        mirrored = None if self.values is None else -self.values[::-1]
        turned = ValueRange(-self.high, -self.low, self.number_type, self.whole, mirrored)
        found = turned._next(-bound, is_open)
        return None if found is None else -found

    def nearest(self, target: Fraction) -> float:
        """The legal value nearest to a number."""
        above, below = self.narrowed(target, None), self.narrowed(None, target)
        ends = [*([above.low] if above else []), *([below.high] if below else [])]
        return min(ends, key=lambda v: abs(Fraction(v) - target))

    def middle(self) -> Fraction:
        return (Fraction(self.low) + Fraction(self.high)) / 2


def reach_of_cell(domain: Domain, grid: FeatureGrid, cell: int) -> ValueRange | None:
    """The legal values of a cell; None for the missing cell and for cells without legal values."""
    if cell == grid.missing_cell:
        return None
    if isinstance(domain, ValueDomain):
        inside = domain.values[grid.cell_of(domain.values) == cell]
        return ValueRange(float(inside[0]), float(inside[-1]), grid.number_type, values=inside) if len(inside) else None
    low, high = cell_range(domain, grid, cell)
    if low > high:
        return None
    return ValueRange(low, high, grid.number_type, whole=domain.whole)


def value_ranges(domain: Domain, grid: FeatureGrid) -> list[ValueRange | None]:
    """`reach_of_cell` for every cell."""
    if isinstance(domain, RealDomain):
        return [reach_of_cell(domain, grid, cell) for cell in range(grid.n_cells)]
    cells = grid.cell_of(domain.values)
    order = np.argsort(cells, kind="stable")
    ends = np.searchsorted(cells[order], np.arange(grid.n_cells + 1))
    result: list[ValueRange | None] = []
    for cell in range(grid.n_cells):
        inside = domain.values[order[ends[cell] : ends[cell + 1]]]
        missing = cell == grid.missing_cell or len(inside) == 0
        result.append(
            None if missing else ValueRange(float(inside[0]), float(inside[-1]), grid.number_type, values=inside)
        )
    return result


def reach_of_row(term: DistanceTerm) -> ValueRange | None:
    """The row's value as a range; None if the value is missing."""
    return None if isnan(term.row) else ValueRange(term.row, term.row, NumberType.FLOAT64)


def join_ranges(one: ValueRange | None, other: ValueRange | None) -> ValueRange | None:
    """A range without holes that contains both ranges: a superset of the values in several cells."""
    if one is None or other is None:
        return None
    return ValueRange(min(one.low, other.low), max(one.high, other.high), one.number_type)


# --- least values over ranges -------------------------------------------------------------------------------------------------


def extremes(term: Term, ranges: Sequence[ValueRange | None]) -> tuple[Fraction, Fraction] | None:
    """The least and the greatest value of a term over ranges of its places (None if missing); None if the term has no value.

    Exact, except that value sets with holes are treated as intervals in distances to other sets, and to values in holes.
    """
    if isinstance(term, LinearTerm):
        if ranges[0] is None:
            return None
        return _ordered(term.factor, Fraction(ranges[0].low), Fraction(ranges[0].high))
    near, far = _apart(term, ranges)
    return _ordered(term.factor, near**term.power, far**term.power)


def _ordered(factor: Fraction, low: Fraction, high: Fraction) -> tuple[Fraction, Fraction]:
    return (factor * low, factor * high) if factor >= 0 else (factor * high, factor * low)


def _apart(term: DistanceTerm, ranges: Sequence[ValueRange | None]) -> tuple[Fraction, Fraction]:
    """The least and the greatest distance in widths, before the power is applied."""
    zero, one = Fraction(0), Fraction(1)
    left = ranges[0]
    right = ranges[1] if term.other is not None else reach_of_row(term)
    if left is None or right is None:
        same = left is None and right is None
        return (zero, zero) if same else (one, one)
    if term.unordered:
        meet = left.low <= right.high and right.low <= left.high
        return (zero if meet else one), (zero if left.single and right.single and left.low == right.low else one)
    low1, high1, low2, high2 = (Fraction(v) for v in (left.low, left.high, right.low, right.high))
    if term.other is None and left.values is not None and low1 < low2 < high1:
        near = abs(Fraction(left.nearest(low2)) - low2)
    else:
        near = max(zero, low2 - high1, low1 - high2)
    return near / term.width, max(high2 - low1, high1 - low2) / term.width


def least_sum(relation: ValueSum, ranges: Callable[[Place], ValueRange | None]) -> Fraction | None:
    """A lower bound on a sum, over values in the ranges; None if the value of a linear term is missing."""
    total = Fraction(0)
    for term in relation.terms:
        found = extremes(term, [ranges(place) for place in term.places])
        if found is None:
            return None
        total += found[0]
    return total
