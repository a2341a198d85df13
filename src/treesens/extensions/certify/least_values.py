"""The least value of several terms about one value, over each of its cells.

The least values of the terms one by one may be less: what is near one row is far from another. Of a few values all are
looked at. Between two rows a sum of distances, their squares and linear terms is a parabola: least at an end, or its vertex.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction
from math import isnan

from treesens.compiler.base.arrays import BoolArray
from treesens.compiler.query.values import DistanceTerm, LinearTerm, Place, Term, ValueRange, extremes
from treesens.extensions.certify.distance_bounds import CellValues

MOST_VALUES = 256
"""Of one cell that are looked at one by one."""


def least_together(
    place: Place, terms: Sequence[Term], ranges: Sequence[ValueRange | None], legal: BoolArray
) -> CellValues:
    """Of some terms of one place and no other: of every legal cell a number that their sum is at least; None elsewhere, and for
    missing values if a linear term needs one.
    """
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
    """All legal values, if these are few."""
    if reach.single:
        return [reach.low]
    if reach.values is not None:
        return reach.values.tolist() if len(reach.values) <= MOST_VALUES else None
    if not reach.whole or reach.high - reach.low >= MOST_VALUES:
        return None
    return [float(x) for x in range(int(reach.low), int(reach.high) + 1)]


def _least_between(terms: Sequence[Term], low: Fraction, high: Fraction) -> Fraction:
    """Between two numbers without a row inside: at an end, or at the vertex of a parabola that opens upwards."""
    middle = (low + high) / 2
    first, half, last = (_value(terms, x) for x in (low, middle, high))
    least, bend = min(first, last), first - 2 * half + last
    if bend <= 0:
        return least
    vertex = middle - (last - first) * (high - low) / (4 * bend)
    return min(least, _value(terms, vertex)) if low < vertex < high else least


def _value(terms: Sequence[Term], x: Fraction) -> Fraction:
    """The sum at a number, which need not be a float."""
    return sum((_value_of(term, x) for term in terms), Fraction(0))


def _value_of(term: Term, x: Fraction) -> Fraction:
    if isinstance(term, LinearTerm):
        return term.factor * x
    if isnan(term.row):
        return term.factor
    away = abs(x - Fraction(term.row))
    return term.factor * (Fraction(int(away > 0)) if term.unordered else (away / term.width) ** term.power)
