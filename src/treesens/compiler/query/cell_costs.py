"""What cells cost as whole numbers: their least distance from a row, rounded down, in units as fine as sums of them allow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import frexp, isnan

import numpy as np

from treesens.compiler.base.arrays import FloatArray, Int64Array
from treesens.compiler.query.query import CellCost, Space
from treesens.compiler.query.radii import Layout, exact_distance, layout_of
from treesens.compiler.query.values import DistanceTerm, Place

_BITS = 58
"""Sums of costs stay below 2**_BITS units."""
_FINEST = 1000
_LESS = 1 - 2.0**-48
"""Makes a float no more than the exact value that half a dozen roundings lie behind."""


@dataclass(frozen=True, eq=False)
class CellCosts:
    """int64[n_cells] per place, in units of 2**-shift; no more than the truth. Cells without legal values have -1."""

    cost: dict[Place, Int64Array]
    shift: int


def costs_of_terms(space: Space, terms: Sequence[DistanceTerm]) -> CellCosts | None:
    """The costs of terms of one place each, at most one per place, with factors > 0; None if floats cannot hold them."""
    layout = layout_of(space, tuple(t.feature for t in terms))
    least = _least(space, terms, layout)
    known = ~np.isnan(least)
    if not np.isfinite(least[known]).all():
        return None
    largest = np.fmax.reduceat(np.where(known, least, 0.0), layout.offset[:-1]) if len(terms) else np.zeros(0)
    total = float(largest.sum())
    if not total < 2.0**_BITS:
        return None
    shift = min(_FINEST, _BITS - 1 - frexp(total)[1]) if total > 0 else 0
    whole = np.where(known, np.floor(np.ldexp(np.where(known, least, 0.0), shift)), -1.0).astype(np.int64)
    offset = layout.offset.tolist()
    return CellCosts({t.places[0]: whole[offset[i] : offset[i + 1]] for i, t in enumerate(terms)}, shift)


def _least(space: Space, terms: Sequence[DistanceTerm], layout: Layout) -> FloatArray:
    """The least value of a term in every cell, or a little less; NaN in cells without legal values."""
    counts = np.diff(layout.offset)
    row = np.repeat([t.row for t in terms], counts)
    width = np.repeat([float(t.width) for t in terms], counts)
    factor = np.repeat([float(t.factor) for t in terms], counts)
    power = np.repeat([t.power for t in terms], counts)
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        away = np.maximum(0.0, np.maximum(layout.low - row, row - layout.high)) / width
        least = np.where(power == 2, away * away, away) * factor * _LESS
        inside = ~layout.dense & (layout.low < row) & (row < layout.high)
    plain = np.repeat(np.array([not (isnan(t.row) or t.unordered) and t.power in (1, 2) for t in terms], bool), counts)
    special = layout.legal & (~plain | np.isnan(layout.low) | inside)
    least[~layout.legal] = np.nan
    for i in np.flatnonzero(special):
        found = exact_distance(space, terms[layout.term[i]], int(layout.cell[i]))
        least[i] = np.nan if found is None else float(found) * _LESS
    return np.asarray(least, np.float64)


def costs_of_cells(costs: Sequence[CellCost]) -> CellCosts | None:
    """Costs that are whole numbers already, in one unit; None if they are negative, too large, or two are of one place."""
    places = [(c.point, c.feature) for c in costs]
    shifts = {c.shift for c in costs}
    if len(set(places)) < len(places) or len(shifts) > 1:
        return None
    if any(int(c.costs.min(initial=0)) < 0 for c in costs):
        return None
    if sum(int(c.costs.max(initial=0)) for c in costs) >= 1 << _BITS:
        return None
    return CellCosts(
        {place: np.asarray(c.costs, np.int64) for place, c in zip(places, costs, strict=True)}, max(shifts, default=0)
    )
