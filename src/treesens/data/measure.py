"""A measure gives every box of cells its share of all inputs.

A measure is a tree of pairwise tables over bins of features, with whole weights of the cells within each bin. Without pairs
(`product`) every feature has one bin, and features are independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from treesens.compiler.base.arrays import FloatArray, Int32Array, Int64Array


@dataclass(frozen=True, eq=False)
class Measure:
    """Per feature: `weights` int64[n_cells] (not negative, some positive), `bins` int32[n_cells] (runs of cells, from 0).

    `order` int32[features] has parents before children, `parent` is -1 at roots; `tables[f]` float64 is P(bin | bin of the
    parent), [bins of the parent, bins], of a root P(bin), [1, bins]. No share differs by more than `error` from the one of
    what the measure stands for (`name`). `rows` is the number of rows that it was learnt from.
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
        """The share of every cell of a feature, float64[n_cells], to the precision of a float."""
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
    """Independent features with these weights of cells."""
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
