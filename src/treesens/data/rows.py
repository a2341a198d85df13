"""Rows of a table as rows of cells, cells of one grid in terms of another, and distances of cells to a row."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

import numpy as np

from treesens.compiler.base.arrays import FloatArray, Int32Array, Int64Array
from treesens.compiler.model.grid import FeatureGrid, Grid
from treesens.compiler.query.domain import Domain, ValueDomain, cell_range

SHIFT = 40
"""Quantities learnt from data (log-likelihoods, distances) are integers in units of 2**-40: far finer than data are."""

Rounding = Literal["down", "up", "nearest"]


def round_to_cell(value: Fraction, rounding: Rounding) -> int:
    """A rational in units of 2**-SHIFT."""
    scaled = value * (1 << SHIFT)
    match rounding:
        case "down":
            return scaled.__floor__()
        case "up":
            return -((-scaled).__floor__())
        case "nearest":
            return round(scaled)


def cell_starts(grid: FeatureGrid) -> FloatArray:
    """The smallest value of every present cell (a code if the feature is categorical), float64[present_cells]."""
    if grid.categories:
        return np.arange(grid.categories + 1, dtype=np.float64)
    return np.concatenate(([-np.inf], grid.cuts))


def cells_of_rows(grid: Grid, matrix: FloatArray) -> Int32Array:
    """Cells int32[rows, features] of float64[rows, features]; -1 for a missing value where the grid has no such cell."""
    cells = np.empty(matrix.shape, np.int32)
    for f, feature in enumerate(grid):
        column = matrix[:, f]
        absent = np.isnan(column)
        cells[:, f] = feature.cell_of(np.where(absent, 0.0, column) if absent.any() else column)
        cells[absent, f] = feature.missing_cell
    return cells


def coarse_cells(coarse: FeatureGrid, fine: FeatureGrid) -> Int32Array:
    """The cell of the coarse grid that holds each cell of the fine one, int32[fine.n_cells]; fine has all cuts of coarse."""
    result = np.zeros(fine.n_cells, np.int32)
    result[: fine.present_cells] = coarse.cell_of(cell_starts(fine))
    if fine.missing:
        result[fine.missing_cell] = coarse.missing_cell
    return result


def fine_runs(coarse: FeatureGrid, fine: FeatureGrid) -> tuple[Int64Array, Int64Array]:
    """First and last fine cell of every coarse cell, int64[coarse.n_cells] each."""
    owner = coarse_cells(coarse, fine)
    cells = np.arange(coarse.n_cells)
    return np.searchsorted(owner, cells), np.searchsorted(owner, cells, side="right") - 1


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
