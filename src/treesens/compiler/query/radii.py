"""The radii at which cells come within reach of a row: every cell's least distance, in exact order.

Distances are compared as floats where these are exact, or far enough apart; only the others cost exact arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from weakref import WeakKeyDictionary

import numpy as np

from treesens.compiler.base.arrays import BoolArray, FloatArray, Int32Array, Int64Array, begins_run
from treesens.compiler.query.costs import cell_reaches
from treesens.compiler.query.query import Space
from treesens.compiler.query.values import DistanceTerm, Place, ValueRange, extremes

_APART = 2.0**-49
"""Floats that differ by more than this part have exact values that differ: three roundings lie behind each."""


@dataclass(frozen=True, eq=False)
class _Reach:
    """The legal values of the cells of a feature: each, and both ends as arrays (NaN without values) with whether all of
    them between the ends are legal."""

    each: list[ValueRange | None]
    low: FloatArray
    high: FloatArray
    dense: BoolArray


_REACHES: WeakKeyDictionary[Space, dict[int, _Reach]] = WeakKeyDictionary()


def _reach(space: Space, feature: int) -> _Reach:
    known = _REACHES.setdefault(space, {})
    if feature not in known:
        each = cell_reaches(space, feature)
        low = np.array([np.nan if r is None else r.low for r in each])
        high = np.array([np.nan if r is None else r.high for r in each])
        dense = np.array([r is not None and r.values is None and not r.whole for r in each], bool)
        known[feature] = _Reach(each, low, high, dense)
    return known[feature]


@dataclass(frozen=True, eq=False)
class Radii:
    """Cells by their least distance from a row.

    `level` int32[n_cells] per place: its number among the different distances, ascending; -1 in cells without legal values.
    """

    terms: tuple[DistanceTerm, ...]
    level: dict[Place, Int32Array]
    shown: tuple[tuple[int, int], ...]
    """Per level: a term and a cell that have this distance."""
    space: Space

    def distance(self, level: int) -> Fraction:
        """The exact distance of a level."""
        term, cell = self.shown[level]
        found = _exact(self.space, self.terms[term], cell)
        assert found is not None
        return found


def radii_of(space: Space, terms: Sequence[DistanceTerm]) -> Radii:
    """The radii for terms of one place each, at most one per place, that are to be small."""
    near = [_distances(space, term) for term in terms]
    term = np.repeat(np.arange(len(terms)), [len(d) for d, _ in near])
    cell = np.concatenate([np.arange(len(d)) for d, _ in near])
    distance = np.concatenate([d for d, _ in near])
    exact = all(is_exact for _, is_exact in near) and len({(t.width, t.factor) for t in terms}) == 1
    known = np.flatnonzero(~np.isnan(distance))
    order = known[np.argsort(distance[known], kind="stable")]
    first = begins_run(distance[order])
    if not exact:
        order, first = _resolved(space, terms, term, cell, distance, order)
    number = np.full(len(distance), -1, np.int32)
    number[order] = np.cumsum(first) - 1
    starts = order[first]
    shown = tuple(zip(term[starts].tolist(), cell[starts].tolist(), strict=True))
    offset = np.cumsum([0, *(len(d) for d, _ in near)])
    level = {t.places[0]: number[offset[i] : offset[i + 1]] for i, t in enumerate(terms)}
    return Radii(tuple(terms), level, shown, space)


def _exact(space: Space, term: DistanceTerm, cell: int) -> Fraction | None:
    """The least distance of a cell; None without legal values."""
    if not space.legal[term.feature][cell]:
        return None
    found = extremes(term, [_reach(space, term.feature).each[cell]])
    return None if found is None else found[0]


def _distances(space: Space, term: DistanceTerm) -> tuple[FloatArray, bool]:
    """The least distance of every cell as a float, and whether these are exact up to the width and the factor."""
    reach = _reach(space, term.feature)
    scale = float(term.factor) / float(term.width)
    if np.isnan(term.row) or term.unordered or term.power != 1:
        return _one_by_one(space, term, ~np.zeros(len(reach.low), bool), reach.low.copy(), 1.0), False
    with np.errstate(invalid="ignore"):
        below, above = reach.low - term.row, term.row - reach.high
        away = np.maximum(0.0, np.maximum(below, above))
        is_exact = bool((_is_exact(reach.low, term.row) & _is_exact(reach.high, term.row))[~np.isnan(away)].all())
    inside = ~reach.dense & (reach.low < term.row) & (term.row < reach.high)
    special = np.isnan(reach.low) | inside
    away[~space.legal[term.feature]] = np.nan
    is_exact = is_exact and not (special & space.legal[term.feature]).any()
    return _one_by_one(space, term, special, away * scale, 1.0), is_exact


def _one_by_one(space: Space, term: DistanceTerm, chosen: BoolArray, distance: FloatArray, scale: float) -> FloatArray:
    for cell in np.flatnonzero(chosen):
        found = _exact(space, term, int(cell))
        distance[cell] = np.nan if found is None else float(found) * scale
    return distance


def _is_exact(values: FloatArray, row: float) -> BoolArray:
    """Where values - row is exact in floats (Knuth's two-sum)."""
    difference = values - row
    back = difference + row
    error = (values - back) + (row - (back - difference)) * -1.0
    return np.asarray(error == 0.0, bool)


def _resolved(
    space: Space,
    terms: Sequence[DistanceTerm],
    term: Int64Array,
    cell: Int64Array,
    distance: FloatArray,
    order: Int64Array,
) -> tuple[Int64Array, BoolArray]:
    """The order with neighbours that floats cannot tell apart compared exactly, and where another distance begins."""
    ordered = distance[order]
    apart = np.ones(len(order), bool)
    apart[1:] = ordered[1:] - ordered[:-1] > _APART * ordered[1:]
    first = apart.copy()
    starts = np.append(np.flatnonzero(apart), len(order))
    for start in np.flatnonzero(np.diff(starts) > 1):
        low, high = int(starts[start]), int(starts[start + 1])
        if ordered[low] == ordered[high - 1] == 0.0:
            continue  # nothing rounds to 0 here: a difference of floats is 0 only if they are equal
        exact = [_exact(space, terms[term[i]], int(cell[i])) for i in order[low:high]]
        ranked = sorted(range(high - low), key=lambda i: exact[i] or 0)
        order[low:high] = order[low:high][ranked]
        for i in range(1, high - low):
            first[low + i] = exact[ranked[i]] != exact[ranked[i - 1]]
    return order, first
