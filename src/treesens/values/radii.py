"""The radii at which a row reaches cells: the least distance of each cell, in exact order.

Distances are compared as floats if the floats are exact or far enough apart; only other distances need exact arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isnan
from weakref import WeakKeyDictionary

import numpy as np

from treesens.compiler.base.arrays import BoolArray, FloatArray, Int32Array, Int64Array, begins_run
from treesens.compiler.query.query import Space
from treesens.compiler.query.values import DistanceTerm, Place, ValueRange, extremes
from treesens.values.distance_costs import cell_reaches

_APART = 2.0**-49
"""Floats that differ by more than this factor have different exact values, since each is rounded three times."""


@dataclass(frozen=True, eq=False)
class _Reach:
    """A feature's legal values by cell: each range, both ends as arrays (NaN without values), and `dense`, which is True if all
    values between the ends are legal."""

    each: list[ValueRange | None]
    low: FloatArray
    high: FloatArray
    dense: BoolArray


_REACHES: WeakKeyDictionary[Space, dict[int, _Reach]] = WeakKeyDictionary()


def reach_of(space: Space, feature: int) -> _Reach:
    kept = _REACHES.setdefault(space, {})
    if feature not in kept:
        each = cell_reaches(space, feature)
        low = np.array([np.nan if r is None else r.low for r in each])
        high = np.array([np.nan if r is None else r.high for r in each])
        dense = np.array([r is not None and r.values is None and not r.whole for r in each], bool)
        kept[feature] = _Reach(each, low, high, dense)
    return kept[feature]


@dataclass(frozen=True, eq=False)
class Layout:
    """The concatenated cells of some features: for each, `term`, `cell`, the ends of its legal values, and `legal`, which is
    True if the cell has legal values; `offset`, int64[features + 1], delimits the features.
    """

    offset: Int64Array
    term: Int64Array
    cell: Int64Array
    low: FloatArray
    high: FloatArray
    dense: BoolArray
    legal: BoolArray


_LAYOUTS: WeakKeyDictionary[Space, dict[tuple[int, ...], Layout]] = WeakKeyDictionary()


def layout_of(space: Space, features: tuple[int, ...]) -> Layout:
    kept = _LAYOUTS.setdefault(space, {})
    if features not in kept:
        reaches = [reach_of(space, f) for f in features]
        counts = [len(r.each) for r in reaches]
        kept[features] = Layout(
            np.cumsum([0, *counts]).astype(np.int64),
            np.repeat(np.arange(len(features)), counts).astype(np.int64),
            np.concatenate([np.arange(n) for n in counts]).astype(np.int64),
            np.concatenate([r.low for r in reaches]),
            np.concatenate([r.high for r in reaches]),
            np.concatenate([r.dense for r in reaches]),
            np.concatenate([space.legal[f] for f in features]),
        )
    return kept[features]


@dataclass(frozen=True, eq=False)
class Radii:
    """Cells in the order of their least distance from a row.

    `level`, int32[n_cells] per place, is the rank of the cell's distance, ascending; -1 for cells without legal values.
    """

    terms: tuple[DistanceTerm, ...]
    level: dict[Place, Int32Array]
    shown: tuple[tuple[int, int], ...]
    """For each level, a term and a cell with this distance."""
    space: Space

    def distance(self, level: int) -> Fraction:
        """The exact distance of a level."""
        term, cell = self.shown[level]
        found = exact_distance(self.space, self.terms[term], cell)
        assert found is not None
        return found


def radii_of(space: Space, terms: Sequence[DistanceTerm]) -> Radii:
    """The radii for minimised terms with a single place each, at most one term per place."""
    layout = layout_of(space, tuple(t.feature for t in terms))
    distance, exact = _distances(space, terms, layout)
    present = np.flatnonzero(~np.isnan(distance))
    order = present[np.argsort(distance[present], kind="stable")]
    first = begins_run(distance[order])
    if not exact:
        order, first = _resolved(space, terms, layout, distance, order)
    number = np.full(len(distance), -1, np.int32)
    number[order] = np.cumsum(first) - 1
    starts = order[first]
    shown = tuple(zip(layout.term[starts].tolist(), layout.cell[starts].tolist(), strict=True))
    offset = layout.offset.tolist()
    level = {t.places[0]: number[offset[i] : offset[i + 1]] for i, t in enumerate(terms)}
    return Radii(tuple(terms), level, shown, space)


def exact_distance(space: Space, term: DistanceTerm, cell: int) -> Fraction | None:
    """The least distance of a cell; None if the cell has no legal values."""
    if not space.legal[term.feature][cell]:
        return None
    found = extremes(term, [reach_of(space, term.feature).each[cell]])
    return None if found is None else found[0]


def _distances(space: Space, terms: Sequence[DistanceTerm], layout: Layout) -> tuple[FloatArray, bool]:
    """The least distance of every cell as a float, up to a common factor; and whether the floats have the exact order."""
    counts = np.diff(layout.offset)
    row = np.repeat([t.row for t in terms], counts)
    scale = np.repeat([float(t.factor) / float(t.width) for t in terms], counts)
    plain = np.array([not (isnan(t.row) or t.unordered or t.power != 1) for t in terms], bool)
    with np.errstate(invalid="ignore"):
        away = np.maximum(0.0, np.maximum(layout.low - row, row - layout.high))
        inside = ~layout.dense & (layout.low < row) & (row < layout.high)
    special = layout.legal & (~np.repeat(plain, counts) | np.isnan(layout.low) | inside)
    distance = np.where(layout.legal & ~special, away * scale, np.nan)
    for i in np.flatnonzero(special):
        found = exact_distance(space, terms[layout.term[i]], int(layout.cell[i]))
        distance[i] = np.nan if found is None else float(found)
    one_unit = len({(t.width, t.factor) for t in terms}) <= 1
    if special.any() or not one_unit:
        return distance, False
    if not (is_exact(layout.low, row) & is_exact(layout.high, row))[layout.legal].all():
        return distance, False
    # The differences are exact, and have the same order as the distances.
    return np.where(layout.legal, away, np.nan), True


def is_exact(values: FloatArray, row: FloatArray) -> BoolArray:
    """True where `values - row` is exact in floats (Knuth's two-sum)."""
    difference = values - row
    back = difference + row
    error = (values - back) + (row - (back - difference)) * -1.0
    return np.asarray(error == 0.0, bool)


def _resolved(
    space: Space,
    terms: Sequence[DistanceTerm],
    layout: Layout,
    distance: FloatArray,
    order: Int64Array,
) -> tuple[Int64Array, BoolArray]:
    """The order after an exact comparison of neighbours that are close as floats, and a mask of each distance's first cell."""
    ordered = distance[order]
    apart = np.ones(len(order), bool)
    apart[1:] = ordered[1:] - ordered[:-1] > _APART * ordered[1:]
    first = apart.copy()
    starts = np.append(np.flatnonzero(apart), len(order))
    for start in np.flatnonzero(np.diff(starts) > 1):
        low, high = int(starts[start]), int(starts[start + 1])
        if ordered[low] == ordered[high - 1] == 0.0:
            continue  # a difference of floats is 0 only if they are equal
        exact = [exact_distance(space, terms[layout.term[i]], int(layout.cell[i])) for i in order[low:high]]
        ranked = sorted(range(high - low), key=lambda i: exact[i] or 0)
        order[low:high] = order[low:high][ranked]
        for i in range(1, high - low):
            first[low + i] = exact[ranked[i]] != exact[ranked[i - 1]]
    return order, first
