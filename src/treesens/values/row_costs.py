"""Integer costs of cells: the least distances from a row, rounded down; they are computed for all features at once.

Floats determine the floor of a distance, unless the distance is so close to an integer that rounding could matter; only cells
with such a distance need exact arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import frexp, inf, isnan, nextafter

import numpy as np

from treesens.compiler.base.arrays import BoolArray, FloatArray, Int64Array, IntegerArray, frozen
from treesens.compiler.base.dyadic import Unit
from treesens.compiler.query.query import CellCost, LinearForm, Space
from treesens.compiler.query.values import DistanceTerm, LinearTerm, Place, Term
from treesens.values.distance_costs import UNARY_SHIFT, cell_cost, cell_reaches, least_of_cells, pair_cost
from treesens.values.radii import Layout, exact_distance, is_exact, layout_of

_BITS = 58
"""Sums of costs stay below 2**_BITS units."""
_FINEST = 1000
_LESS = 1 - 2.0**-48
"""A factor that reduces a float with about six rounding errors to at most the exact value."""


@dataclass(frozen=True, eq=False)
class CellCosts:
    """Costs int64[n_cells] per place, in units of 2**-shift, never above the true value; -1 if no value is legal."""

    cost: dict[Place, Int64Array]
    shift: int


def costs_of_terms(space: Space, terms: Sequence[DistanceTerm]) -> CellCosts | None:
    """The costs of terms with factors > 0, each with a place of its own; None if floats cannot represent the costs."""
    layout = layout_of(space, tuple(t.feature for t in terms))
    least = _least(space, terms, layout)
    present = ~np.isnan(least)
    if not np.isfinite(least[present]).all():
        return None
    largest = np.fmax.reduceat(np.where(present, least, 0.0), layout.offset[:-1]) if len(terms) else np.zeros(0)
    total = float(largest.sum())
    if not total < 2.0**_BITS:
        return None
    shift = min(_FINEST, _BITS - 1 - frexp(total)[1]) if total > 0 else 0
    whole = np.where(present, np.floor(Unit(shift).counts(np.where(present, least, 0.0))), -1.0).astype(np.int64)
    offset = layout.offset.tolist()
    return CellCosts({t.places[0]: whole[offset[i] : offset[i + 1]] for i, t in enumerate(terms)}, shift)


@dataclass(frozen=True, eq=False)
class _Distances:
    """For each cell, the least value of a term as a float with at most six roundings; `exact` marks exact values, and `plain`
    marks values that floats can represent."""

    value: FloatArray
    exact: BoolArray
    plain: BoolArray


def _distances(terms: Sequence[DistanceTerm], layout: Layout) -> _Distances:
    counts = np.diff(layout.offset)

    def spread(values: Sequence[float]) -> FloatArray:
        return np.repeat(np.array(values, np.float64), counts)

    row, power = spread([t.row for t in terms]), spread([t.power for t in terms])
    width, factor = spread([float(t.width) for t in terms]), spread([float(t.factor) for t in terms])
    ordered = [not (isnan(t.row) or t.unordered) and t.power in (1, 2) for t in terms]
    doubling = [t.factor == 1 and frexp(t.width)[0] == 0.5 and Fraction(float(t.width)) == t.width for t in terms]
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        away = np.maximum(0.0, np.maximum(layout.low - row, row - layout.high)) / width
        value = np.where(power == 2, away * away, away) * factor
        inside = ~layout.dense & (layout.low < row) & (row < layout.high)
        short = np.floor(np.frexp(away)[0] * 2.0**26) == np.frexp(away)[0] * 2.0**26
        kept = is_exact(layout.low, row) & is_exact(layout.high, row) & ((power == 1) | short)
    exact = (away == 0) | (kept & np.repeat(np.array(doubling, bool), counts))
    plain = np.repeat(np.array(ordered, bool), counts) & ~np.isnan(layout.low) & ~inside
    return _Distances(np.asarray(value, np.float64), np.asarray(exact, bool), np.asarray(plain, bool))


def _least(space: Space, terms: Sequence[DistanceTerm], layout: Layout) -> FloatArray:
    """A lower bound close to the least value of a term in every cell; NaN for cells without legal values."""
    found = _distances(terms, layout)
    least = np.where(found.exact, found.value, found.value * _LESS)
    least[~layout.legal] = np.nan
    for i in np.flatnonzero(layout.legal & ~found.plain):
        exact = exact_distance(space, terms[layout.term[i]], int(layout.cell[i]))
        least[i] = np.nan if exact is None else _rounded_down(exact)
    return np.asarray(least, np.float64)


def _rounded_down(value: Fraction) -> float:
    """A float not greater than the value; infinite for a value beyond the range of floats."""
    try:
        found = float(value)
    except OverflowError:
        return inf
    return nextafter(found, -inf) if Fraction(found) > value else found


def cell_costs(space: Space, terms: Sequence[DistanceTerm]) -> tuple[CellCost, ...]:
    """`cell_cost` for several terms with factors > 0."""
    if not terms:
        return ()
    layout = layout_of(space, tuple(t.feature for t in terms))
    found = _distances(terms, layout)
    units = Unit(UNARY_SHIFT).counts(found.value)
    with np.errstate(invalid="ignore"):
        clear = np.abs(units - np.rint(units)) > units * 2.0**-48
        sure = found.plain & (units < 2.0**52) & (found.exact | clear)
        whole = np.floor(np.where(layout.legal & sure, units, 0.0)).astype(np.int64)
    open_cells = layout.legal & ~sure
    result = []
    for term, start, end in zip(terms, layout.offset[:-1].tolist(), layout.offset[1:].tolist(), strict=True):
        costs: IntegerArray = whole[start:end].copy()
        if open_cells[start:end].any():
            units_of = {int(i): _units(space, term, int(i)) for i in np.flatnonzero(open_cells[start:end])}
            wide = any(abs(v) >= 1 << 61 for v in units_of.values())
            costs = costs.astype(object) if wide else costs
            for i, v in units_of.items():
                costs[i] = v
        result.append(CellCost(term.point, term.feature, frozen(costs), UNARY_SHIFT))
    return tuple(result)


def _units(space: Space, term: DistanceTerm, cell: int) -> int:
    found = exact_distance(space, term, cell)
    return 0 if found is None else Unit(UNARY_SHIFT).floor(found)


def best_of_cells(space: Space, terms: Sequence[Term], upwards: bool) -> LinearForm:
    """The least (or, if `upwards`, greatest) values of terms over each cell, or pair of cells, as a linear form."""
    sign = -1 if upwards else 1
    signed = [replace(term, factor=term.factor * sign) for term in terms] if upwards else list(terms)
    distances = [term for term in signed if isinstance(term, DistanceTerm)]
    alone = [term for term in signed if len(term.places) == 1]
    to_rows = [term for term in distances if term.other is None and term.factor > 0]
    quick = len(to_rows) == len(alone)
    costs = cell_costs(space, to_rows) if quick else tuple(cell_cost(space, term) for term in alone)
    pairs = [pair_cost(space, term) for term in distances if term.other is not None]
    return LinearForm(
        costs=tuple(replace(c, costs=frozen(c.costs * sign)) for c in costs) if upwards else costs,
        pairs=tuple(replace(p, costs=frozen(p.costs * sign, np.int64)) for p in pairs),
    )


def greatest_of_cells(space: Space, terms: Sequence[LinearTerm], enough: Fraction) -> tuple[CellCost, ...]:
    """The greatest values of terms over each cell, rounded up; above `enough`, the sum of all values does not matter.

    Values are capped where they alone reach `enough`, so that domains without ends yield short numbers.
    """
    turned = [replace(term, factor=-term.factor) for term in terms]
    least = [least_of_cells(t, cell_reaches(space, t.feature), space.legal[t.feature]) for t in turned]
    lows = [min((-v for v in mine if v is not None), default=Fraction(0)) for mine in least]
    more = max(Fraction(0), enough - sum(lows))
    unit = Unit(max(0, UNARY_SHIFT - more.numerator.bit_length() + more.denominator.bit_length()))
    costs = []
    for term, mine, low in zip(terms, least, lows, strict=True):
        whole = [unit.ceil(low if v is None else min(-v, low + more)) for v in mine]
        exact = np.int64 if max(map(abs, whole)) < 1 << _BITS else object
        costs.append(CellCost(term.point, term.feature, frozen(np.array(whole, exact)), unit.shift))
    return tuple(costs)


def costs_of_cells(costs: Sequence[CellCost]) -> CellCosts | None:
    """Integer costs in one unit; None if any cost is negative or too large, or if two costs refer to the same place."""
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
