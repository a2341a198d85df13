"""Learns typicality with a Chow-Liu tree: the log-likelihood of an input's bins, in integer units, as a sum over tables.

Bins, spanning tree and smoothing are as in the measure (`measure.py`). Logarithms of table entries are rounded to integer
units, and the score of an input is the sum of these integers: this sum is calibrated, constrained and verified.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from treesens.compiler.base.arrays import BoolArray, FloatArray, Int32Array, Int64Array
from treesens.compiler.base.dyadic import ln_bounds
from treesens.compiler.model.grid import FeatureGrid, Grid
from treesens.compiler.query.forest import SHIFT
from treesens.extensions.measure.measure import SMOOTHING, bins_of_cells, counts_of_cells, joint_counts, spanning_tree

_UNSURE = 1e-6
"""Logarithms this near to a rounding boundary (in units) are uncertain; the error of float logarithms is far smaller."""


@dataclass(frozen=True, eq=False)
class PairTables:
    """The score of an input: the sum over features f of tables[f][group of the parent, group of f].

    `groups`, int32[n_cells] per feature, holds the bin of each cell; categories and missing values without rows form a further
    bin. `parent`, int32[features], is -1 at the root, whose table has one line. `tables`, int64 in units of 2**-SHIFT, has no
    positive entries. An input with a cell without rows is less typical than all inputs without such a cell.
    """

    groups: tuple[Int32Array, ...]
    parent: Int32Array
    tables: tuple[Int64Array, ...]

    def scores(self, cells: Int32Array) -> Int64Array:
        """The scores int64[rows] of `cells`, int32[rows, features] on the grid of the training rows."""
        total = np.zeros(len(cells), np.int64)
        own = [group[cells[:, f]] for f, group in enumerate(self.groups)]
        for f, table in enumerate(self.tables):
            above = int(self.parent[f])
            total += table[own[above] if above >= 0 else 0, own[f]]
        return total


def learn_pairs(cells: Int32Array, grid: Grid) -> PairTables:
    """The pair tables learnt from `cells`, int32[rows, features] on `grid`; at least one row is required."""
    counts = counts_of_cells(cells, grid)
    groups = tuple(_groups(count, feature) for count, feature in zip(counts, grid, strict=True))
    columns = np.stack([of_cell[cells[:, f]] for f, of_cell in enumerate(groups)], axis=1)
    parent, _ = spanning_tree(columns)
    tables = [_table(columns, f, int(parent[f])) for f in range(columns.shape[1])]
    least = 1 - sum(int(table.min()) for table in tables)
    sizes = [int(of_cell.max()) + 1 for of_cell in groups]
    wide = [
        _with_unseen(table, sizes[int(above)] if above >= 0 else 1, size, -least)
        for table, above, size in zip(tables, parent, sizes, strict=True)
    ]
    return PairTables(groups, parent, tuple(wide))


def _groups(counts: Int64Array, feature: FeatureGrid) -> Int32Array:
    """The bin of every cell; unordered cells without rows form an additional group."""
    bins = bins_of_cells(counts, feature)
    unseen = _unordered(feature) & (counts == 0)
    seen = bins[~unseen]
    # Each bin has a cell with rows, unless no value is present at all.
    number = np.zeros(int(bins.max()) + 1, np.int32)
    number[np.unique(seen)] = np.arange(len(np.unique(seen)))
    return np.where(unseen, np.int32(len(np.unique(seen))), number[bins]).astype(np.int32)


def _unordered(feature: FeatureGrid) -> BoolArray:
    cells = np.arange(feature.n_cells)
    return np.asarray((cells == feature.missing_cell) | (feature.categories > 0))


def _table(columns: Int32Array, feature: int, parent: int) -> Int64Array:
    """ln P(own bin | bin of the parent) in units, [bins of the parent, bins]; for a root, ln P(bin), [1, bins]."""
    rows = len(columns)
    if parent < 0:
        counts = np.bincount(columns[:, feature])
        return logs_in_units(counts[None, :].astype(object), np.full((1, 1), rows, object))
    joint = joint_counts(columns, parent, feature).astype(object)
    above, own = joint.sum(axis=1)[:, None], joint.sum(axis=0)[None, :]
    # The ratio (n + s a b / N**2) / (a + s a / N), with both sides multiplied by N**2, so that no fractions remain.
    return logs_in_units(joint * rows**2 + SMOOTHING * above * own, above * (rows * (rows + SMOOTHING)))


def logs_in_units(above: np.ndarray[tuple[int, int], np.dtype[np.object_]], below: object) -> Int64Array:
    """ln(above / below) of integers, rounded to the nearest unit, int64 in the shape of `above`."""
    under = np.broadcast_to(np.asarray(below, object), above.shape)
    units: FloatArray = (np.log(above.astype(np.float64)) - np.log(under.astype(np.float64))) * (1 << SHIFT)
    whole = np.rint(units).astype(np.int64)
    for at in np.argwhere(np.abs(np.abs(units - whole) - 0.5) < _UNSURE):
        place = tuple(at.tolist())
        low, high = ln_bounds(Fraction(int(above[place]), int(under[place])), SHIFT + 64)
        whole[place] = round((low + high) / 2 * (1 << SHIFT))
    return whole


def _with_unseen(table: Int64Array, height: int, width: int, least: int) -> Int64Array:
    """Adds a line and a column for values without rows; a single such value costs more than all other values together."""
    wide = np.zeros((height, width), np.int64)
    wide[: table.shape[0], : table.shape[1]] = table
    wide[:, table.shape[1] :] = least
    return wide
