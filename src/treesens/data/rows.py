"""Maps rows of a table to cells, maps cells between grids, and counts rows per cell."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from treesens.compiler.base.arrays import BoolArray, FloatArray, Int32Array, Int64Array
from treesens.compiler.base.dyadic import ln_bounds
from treesens.compiler.model.grid import FeatureGrid, Grid
from treesens.compiler.query.domain import Domain, allowed_values

SHIFT = 40
"""Quantities learnt from data (log-likelihoods, distances) are integers in units of 2**-40, far finer than the data."""

Rounding = Literal["down", "up", "nearest"]


def round_to_cell(value: Fraction, rounding: Rounding) -> int:
    """A rational rounded to an integer number of units of 2**-SHIFT."""
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
    """The cells int32[rows, features] of `matrix`, float64[rows, features]; -1 for a missing value that has no cell."""
    cells = np.empty(matrix.shape, np.int32)
    for f, feature in enumerate(grid):
        column = matrix[:, f]
        absent = np.isnan(column)
        cells[:, f] = feature.cell_of(np.where(absent, 0.0, column) if absent.any() else column)
        cells[absent, f] = feature.missing_cell
    return cells


def coarse_cells(coarse: FeatureGrid, fine: FeatureGrid) -> Int32Array:
    """The coarse cell that contains each fine cell, int32[fine.n_cells]; `fine` must have all cuts of `coarse`."""
    result = np.zeros(fine.n_cells, np.int32)
    result[: fine.present_cells] = coarse.cell_of(cell_starts(fine))
    if fine.missing:
        result[fine.missing_cell] = coarse.missing_cell
    return result


def fine_runs(coarse: FeatureGrid, fine: FeatureGrid) -> tuple[Int64Array, Int64Array]:
    """The first and the last fine cell in every coarse cell, int64[coarse.n_cells] each."""
    owner = coarse_cells(coarse, fine)
    cells = np.arange(coarse.n_cells)
    return np.searchsorted(owner, cells), np.searchsorted(owner, cells, side="right") - 1


def changes_from_value(domain: Domain, grid: FeatureGrid, legal: BoolArray, value: float) -> Int64Array:
    """int64[n_cells]: 1 for every cell of which `value` is not a legal value, otherwise 0; missing (NaN) is a separate value.
    Present cells without a legal value cost 0, unless `value` is missing.
    """
    changes = legal.astype(np.int64)
    if grid.missing:
        changes[grid.missing_cell] = 1
    if np.isnan(value):
        changes[: grid.present_cells] = 1
        if grid.missing:
            changes[grid.missing_cell] = 0
    elif allowed_values(domain, np.array([value]))[0]:
        changes[grid.cell_of(value)] = 0
    return changes


EMPTY = Fraction(1, 2)
"""The pseudo-count of an empty cell."""


@dataclass(frozen=True, eq=False)
class Marginals:
    """The number of rows per cell, `counts[feature]` int64[n_cells], out of `rows` (paper, section 4, "Utility function").

    The probability of a cell is its share of the rows. A cell without rows is counted as half a row: the paper's estimate would
    be 0, whose logarithm is infinite, and a single unlucky feature would make all other features irrelevant.
    """

    counts: tuple[Int64Array, ...]
    rows: int

    def probability(self, feature: int, cell: int) -> Fraction:
        """The smoothed share of a cell."""
        return (Fraction(int(self.counts[feature][cell])) or EMPTY) / self.rows

    def log_costs(self, feature: int, rounding: Rounding) -> Int64Array:
        """ln(probability) of every cell in units of 2**-SHIFT, with the given rounding, int64[n_cells]."""
        distinct, place = np.unique(self.counts[feature], return_inverse=True)
        logs = [_log((Fraction(int(count)) or EMPTY) / self.rows, rounding) for count in distinct]
        return np.array(logs, np.int64)[place]


def _log(probability: Fraction, rounding: Rounding) -> int:
    low, high = ln_bounds(probability, SHIFT + 24)
    return round_to_cell({"down": low, "up": high, "nearest": (low + high) / 2}[rounding], rounding)


def marginals(cells: Int32Array, n_cells: Int32Array) -> Marginals:
    """The marginal counts of `cells`, int32[rows, features]; -1 (a missing value where the grid allows none) is skipped."""
    counts = tuple(
        np.bincount(column[column >= 0], minlength=int(n)).astype(np.int64)
        for column, n in zip(cells.T, n_cells, strict=True)
    )
    return Marginals(counts, len(cells))
