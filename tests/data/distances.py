"""Distances from a row's value to cells, one cell after the other: what the vectorised ones are compared with."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from treesens.compiler.base.arrays import FloatArray
from treesens.compiler.model.grid import FeatureGrid
from treesens.compiler.query.domain import Domain, ValueDomain, cell_range


def distances_to_row(
    domain: Domain, grid: FeatureGrid, value: float, width: Fraction, *, ordered: bool
) -> list[Fraction]:
    """The distance of a row's value to the nearest legal value of every cell, in units of `width`.

    A missing value is one width away from every other and 0 from missing; so are unequal values if `ordered` is False.
    Cells without a legal value get 0.
    """
    one = Fraction(1)
    result = [Fraction(0)] * grid.n_cells
    absent = bool(np.isnan(value))
    if grid.missing:
        result[grid.missing_cell] = Fraction(0) if absent else one
    values = domain.values if isinstance(domain, ValueDomain) else None
    if values is not None:
        ends = np.searchsorted(grid.cell_of(values), np.arange(grid.present_cells + 1))
    for cell in range(grid.present_cells):
        if absent:
            result[cell] = one
            continue
        if values is not None:
            inside = values[ends[cell] : ends[cell + 1]]
            if len(inside) == 0:
                continue
            nearest = _nearest(inside, value)
        else:
            assert not isinstance(domain, ValueDomain)
            low, high = cell_range(domain, grid, cell)
            if low > high:
                continue
            nearest = min(max(value, low), high)
            if domain.whole:
                nearest = min(max(float(round(nearest)), low), high)
        if nearest != value:
            result[cell] = abs(Fraction(nearest) - Fraction(value)) / width if ordered else one
    return result


def _nearest(values: FloatArray, value: float) -> float:
    """The nearest of ascending values."""
    after = min(int(np.searchsorted(values, value)), len(values) - 1)
    before = max(after - 1, 0)
    return float(min(values[before], values[after], key=lambda v: abs(v - value)))
