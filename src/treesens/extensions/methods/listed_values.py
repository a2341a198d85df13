"""Decides values inside cells by trying all combinations of values together, in integers, if there are few combinations.

If the cells of a combination contain few integers (or listed values), a table of all combinations of values is faster than any
solver. The table is exact, because values and factors are first converted to common denominators.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, isnan, lcm, prod
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.base.arrays import FloatArray
from treesens.compiler.base.dyadic import INT64_SAFE, exact_product, largest_magnitude
from treesens.compiler.query.values import DistanceTerm, LinearTerm, Place, Term, ValueRange, ValueSum
from treesens.values.propagation import Ranges

MOST = 200_000
"""Maximum number of combinations of values of all related places."""
_MOST_LONG = 20_000
"""Maximum number of combinations if some number exceeds 64 bits."""


def values_listed(ranges: Ranges, relations: Sequence[ValueSum]) -> dict[Place, float] | Literal[False] | None:
    """Values that satisfy the relations; False if no such values exist, None if there are too many combinations to try."""
    lists = _lists(ranges, relations)
    if lists is None:
        return None
    table = _Table(ranges, lists)
    alive = np.ones(tuple(len(v) for v in lists.values()), bool)
    for relation in relations:
        holds = table.holds(relation)
        if holds is None:
            return None
        alive &= holds
        if not alive.any():
            return False
    index = np.unravel_index(int(np.argmax(alive)), alive.shape)
    chosen = {place: float(values[i]) for (place, values), i in zip(lists.items(), index, strict=True)}
    return {p: chosen.get(p, float("nan") if reach is None else reach.low) for p, reach in ranges.items()}


def _lists(ranges: Ranges, relations: Sequence[ValueSum]) -> dict[Place, FloatArray] | None:
    """The values of every related place with several values; None if they cannot be listed, or have too many combinations."""
    found: dict[Place, FloatArray] = {}
    for place in dict.fromkeys(p for relation in relations for p in relation.places):
        reach = ranges[place]
        if reach is None or reach.single:
            continue
        values = _listed(reach)
        if values is None:
            return None
        found[place] = values
        if prod(len(v) for v in found.values()) > MOST:
            return None
    return found


def _listed(reach: ValueRange) -> FloatArray | None:
    if reach.values is not None:
        return reach.values[(reach.values >= reach.low) & (reach.values <= reach.high)]
    first, last = ceil(reach.low), floor(reach.high)
    # Above 2**24 some integers are not float32 numbers.
    if not reach.whole or last - first > MOST or max(abs(first), abs(last)) > 1 << 24:
        return None
    return np.arange(first, last + 1, dtype=np.float64)


@dataclass
class _Table:
    """All combinations of the listed values, with one axis per place."""

    ranges: Ranges
    lists: Mapping[Place, FloatArray]

    def __post_init__(self) -> None:
        self.axis = {place: number for number, place in enumerate(self.lists)}

    def holds(self, relation: ValueSum) -> NDArray[np.bool_] | bool | None:
        """True where a relation holds; it broadcasts to the whole table. None if the numbers are too long for the table."""
        parts = [self._part(term) for term in relation.terms]
        if any(part is None for part in parts):
            return False  # a linear term has a missing value
        present = [part for part in parts if part is not None]
        scale = lcm(relation.limit.denominator, *(unit.denominator for _, unit in present))
        factors = [int(unit * scale) for _, unit in present]
        limit = int(relation.limit * scale)
        sizes = [abs(f) * largest_magnitude(t) for (t, _), f in zip(present, factors, strict=True)]
        total: Any = np.zeros((), np.int64)
        if sum(sizes) + abs(limit) >= INT64_SAFE:
            if prod(len(v) for v in self.lists.values()) > _MOST_LONG:
                return None
            total = np.zeros((), object)
            present = [(t.astype(object), unit) for t, unit in present]
        for (values, _), factor in zip(present, factors, strict=True):
            total = total + exact_product(values, factor)
        return np.asarray(total < limit if relation.strict else total <= limit, bool)

    def _part(self, term: Term) -> tuple[NDArray[Any], Fraction] | None:
        """A term as integers over the table, and the unit of the integers; None if the term has no value."""
        if isinstance(term, LinearTerm):
            found = self._whole([self._values(term.places[0])])
            return None if found is None else (found[0][0], term.factor / found[1])
        ends = [self._values(place) for place in term.places]
        if term.other is None:
            ends.append(None if isnan(term.row) else np.array(term.row))
        if ends[0] is None or ends[1] is None:
            return np.array(int((ends[0] is None) != (ends[1] is None))), term.factor
        return self._distance(term, ends)

    def _distance(self, term: DistanceTerm, ends: list[FloatArray | None]) -> tuple[NDArray[Any], Fraction]:
        found = self._whole(ends)
        assert found is not None
        (left, right), scale = found
        if term.unordered:
            return (left != right).astype(np.int64), term.factor
        away = np.abs(left - right)
        if away.dtype != object and term.power != 1 and float(away.max(initial=0)) >= 2.0**31:
            away = away.astype(object)
        return away**term.power, term.factor / (term.width * scale) ** term.power

    def _values(self, place: Place) -> FloatArray | None:
        """The values of a place along the axis of the place; None if its value is missing."""
        reach = self.ranges[place]
        if reach is None:
            return None
        if place not in self.axis:
            return np.array(reach.low)
        shape = [1] * len(self.axis)
        shape[self.axis[place]] = -1
        return self.lists[place].reshape(shape)

    @staticmethod
    def _whole(arrays: list[FloatArray | None]) -> tuple[list[NDArray[Any]], int] | None:
        """The arrays of floats as integers in a common unit, and the number of units in 1; None if an array is None."""
        if any(a is None for a in arrays):
            return None
        given = [a for a in arrays if a is not None]
        if all((a == np.round(a)).all() and np.abs(a).max(initial=0) < 2.0**53 for a in given):
            return [a.astype(np.int64) for a in given], 1
        scale = lcm(*(Fraction(float(x)).denominator for a in given for x in a.ravel()))
        long = [np.array([int(Fraction(float(x)) * scale) for x in a.ravel()], object).reshape(a.shape) for a in given]
        if all(abs(x) < 1 << 62 for a in long for x in a.ravel()):
            return [a.astype(np.int64) for a in long], scale
        return long, scale
