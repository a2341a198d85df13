"""A measure assigns every box of cells its share of all inputs.

A measure is a tree of pairwise tables over bins of features, with integer weights for the cells in each bin. Without pairs
(`product`), every feature has one bin and features are independent.

Two measures are learnt from a table: the product of the table's marginals, and the Chow-Liu tree of its pairwise marginals
(*Approximating discrete probability distributions with dependence trees*, IEEE Transactions on Information Theory 14, 1968).
The Chow-Liu tree is the most likely tree distribution: the spanning tree with the greatest mutual information.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from treesens.compiler.base.arrays import FloatArray, Int32Array, Int64Array
from treesens.compiler.base.budget import steadily
from treesens.compiler.model.grid import FeatureGrid, Grid


@dataclass(frozen=True, eq=False)
class Measure:
    """Per feature: `weights` int64[n_cells] (non-negative, some positive), and `bins` int32[n_cells] (runs of cells, from 0).

    `order` int32[features] lists parents before children; `parent` is -1 at roots. `tables[f]`, float64[parent's bins, bins],
    is P(bin | bin of the parent) or, at a root, P(bin), [1, bins]. Shares differ by at most `error` from the shares under the
    measure with the name `name`. `rows` is the number of rows from which the measure was learnt, if any.
    """

    name: str
    weights: tuple[Int64Array, ...]
    bins: tuple[Int32Array, ...]
    parent: Int32Array
    order: Int32Array
    tables: tuple[FloatArray, ...]
    error: float = 0.0
    rows: int | None = None

    def shares(self, feature: int) -> FloatArray:
        """The shares of the cells of a feature, float64[n_cells], in float precision."""
        bins, weights = self.bins[feature], self.weights[feature].astype(np.float64)
        inside = np.bincount(bins, weights)
        share: FloatArray = weights / inside[bins] * self._bin_shares(feature)[bins]
        return share

    def _bin_shares(self, feature: int) -> FloatArray:
        parent = int(self.parent[feature])
        above = np.ones(1) if parent < 0 else self._bin_shares(parent)
        found: FloatArray = above @ self.tables[feature]
        return found


def product(name: str, weights: Sequence[Int64Array], *, error: float = 0.0, rows: int | None = None) -> Measure:
    """The measure with independent features and the given weights of cells."""
    count = len(weights)
    return Measure(
        name,
        tuple(weights),
        tuple(np.zeros(len(w), np.int32) for w in weights),
        np.full(count, -1, np.int32),
        np.arange(count, dtype=np.int32),
        tuple(np.ones((1, 1)) for _ in weights),
        error,
        rows,
    )


BINS = 16
"""Number of bins of an ordered feature; the bins contain about the same number of rows."""
CATEGORIES = 32
"""Maximum number of bins of a categorical feature."""
SMOOTHING = 1
"""Number of rows added to every pair table, distributed as if the two features were independent."""


def marginals(cells: Int32Array, grid: Grid) -> Measure:
    """The measure with independent features; a cell's share is its share of the rows of `cells`, int32[rows, features]."""
    return product("marginals", counts_of_cells(cells, grid), rows=len(cells))


def chow_liu(cells: Int32Array, grid: Grid) -> Measure:
    """The Chow-Liu tree learnt from `cells`, int32[rows, features]; cells are weighted by their shares of a bin's rows.

    Each pair table has an extra row, distributed like the product of marginals: the marginals do not change, and every pair of
    bins is possible. With thousands of features, learning takes minutes. Raises OutOfTime (base/budget.py) at the time limit.
    """
    counts = counts_of_cells(cells, grid)
    bins = tuple(bins_of_cells(count, feature) for count, feature in zip(counts, grid, strict=True))
    columns = np.stack([of_cell[cells[:, f]] for f, of_cell in enumerate(bins)], axis=1)
    parent, order = spanning_tree(columns)
    tables = tuple(_table(columns, f, int(parent[f])) for f in steadily(range(columns.shape[1])))
    return Measure("chow-liu", tuple(counts), bins, parent, order, tables, rows=len(cells))


def counts_of_cells(cells: Int32Array, grid: Grid) -> list[Int64Array]:
    """The number of rows in every cell, int64[n_cells] per feature."""
    return [
        np.bincount(column, minlength=int(n)).astype(np.int64) for column, n in zip(cells.T, grid.n_cells, strict=True)
    ]


def bins_of_cells(counts: Int64Array, feature: FeatureGrid) -> Int32Array:
    """The bin of every cell. Bins are runs of cells with roughly equal numbers of rows; a missing cell with rows is a bin."""
    present = counts[: feature.present_cells]
    most = CATEGORIES if feature.categories else BINS
    share = max(1.0, present.sum() / most)
    bin_of = np.zeros(len(counts), np.int32)
    filled, number = 0, 0
    for cell, count in enumerate(present.tolist()):
        # Every bin has rows, because empty cells join the current bin.
        if (
            filled
            and count
            and ((feature.categories and np.count_nonzero(present) <= most) or filled + count / 2 > share)
        ):
            number, filled = number + 1, 0
        bin_of[cell] = number
        filled += count
    if feature.missing:
        absent = bool(counts[feature.missing_cell])
        bin_of[feature.missing_cell] = number + (1 if absent and present.any() else 0)
    return bin_of


def joint_counts(columns: Int32Array, one: int, two: int) -> Int64Array:
    """The number of rows per pair of bins of two features, int64[bins of `one`, bins of `two`]."""
    width = int(columns[:, two].max()) + 1
    height = int(columns[:, one].max()) + 1
    flat = np.bincount(columns[:, one].astype(np.int64) * width + columns[:, two], minlength=height * width)
    return flat.reshape(height, width).astype(np.int64)


def _information(columns: Int32Array, one: int, two: int) -> float:
    """The mutual information in the rows, in nats; exactly 0 for a feature with a single bin, despite rounding."""
    joint = joint_counts(columns, one, two) / len(columns)
    if 1 in joint.shape:
        return 0.0
    apart = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    some = joint > 0
    return float((joint[some] * np.log(joint[some] / apart[some])).sum())


def spanning_tree(columns: Int32Array) -> tuple[Int32Array, Int32Array]:
    """The parents (-1 at the root), and the features in an order with parents before children (Prim's algorithm)."""
    count = columns.shape[1]
    parent, order = np.full(count, -1, np.int32), [0]
    best: FloatArray = np.array([-np.inf] + [_information(columns, 0, f) for f in steadily(range(1, count))])
    nearest = np.zeros(count, np.int32)
    while len(order) < count:
        added = int(np.argmax(best))
        parent[added] = nearest[added]
        order.append(added)
        best[added] = -np.inf
        for f in steadily(sorted(set(range(count)) - set(order))):
            gain = _information(columns, added, f)
            if gain > best[f]:
                best[f], nearest[f] = gain, added
    return parent, np.array(order, np.int32)


def _table(columns: Int32Array, feature: int, parent: int) -> FloatArray:
    rows = len(columns)
    if parent < 0:
        return np.asarray([np.bincount(columns[:, feature]) / rows])
    joint = joint_counts(columns, parent, feature)
    above, own = joint.sum(axis=1).tolist(), joint.sum(axis=0).tolist()
    return np.array(
        [
            [float((Fraction(n) + SMOOTHING * Fraction(a * b, rows * rows)) / (a + SMOOTHING * Fraction(a, rows)))
             for n, b in zip(line, own, strict=True)]
            for line, a in zip(joint.tolist(), above, strict=True)
        ]
    )  # fmt: skip
