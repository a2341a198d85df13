"""The least value of several terms about one value, over each of its cells.

The least values of the terms one by one may be less: what is near one row is far from another. A sum of absolute differences
and linear terms is least at an end of the cell or at a row.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import isnan

from treesens.certificates.distance_bounds import CellValues
from treesens.compiler.base.arrays import BoolArray
from treesens.compiler.query.values import DistanceTerm, LinearTerm, Place, Term, ValueRange, extremes
from treesens.values.distance_costs import least_of_cells


def least_together(
    place: Place, terms: list[Term], ranges: list[ValueRange | None], legal: BoolArray
) -> Iterator[CellValues]:
    """Of some terms of one place and no other: together, or one by one if a term has steps or is a square."""
    if len(terms) == 1 or any(isinstance(t, DistanceTerm) and (t.unordered or t.power > 1) for t in terms):
        yield from ((place, least_of_cells(term, ranges, legal)) for term in terms)
        return
    yield place, [_least(terms, reach) if ok else None for reach, ok in zip(ranges, legal, strict=True)]


def _least(terms: list[Term], reach: ValueRange | None) -> Fraction | None:
    if reach is None:
        found = [extremes(term, [None]) for term in terms]
        return None if None in found else sum((ends[0] for ends in found if ends is not None), Fraction(0))
    low, high = Fraction(reach.low), Fraction(reach.high)
    rows = [Fraction(t.row) for t in terms if isinstance(t, DistanceTerm) and not isnan(t.row)]
    inside = [x for x in rows if low < x < high]
    return min(sum((_value(term, x) for term in terms), Fraction(0)) for x in (low, high, *inside))


def _value(term: Term, x: Fraction) -> Fraction:
    if isinstance(term, LinearTerm):
        return term.factor * x
    distance = Fraction(1) if isnan(term.row) else abs(x - Fraction(term.row)) / term.width
    return term.factor * distance
