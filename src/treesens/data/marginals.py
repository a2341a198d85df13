"""Marginals of the cells of a table: how often each feature falls into each cell (paper, section 4, "Utility function").

The probability of a cell is its share of the rows. A cell without rows counts as half a row: the paper's estimate would be 0,
whose logarithm no solver can add, and a single unlucky feature would make every other one irrelevant.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from treesens.compiler.base.arrays import Int32Array, Int64Array
from treesens.compiler.base.dyadic import ln_bounds
from treesens.data.rows import SHIFT, Rounding, round_to_cell

EMPTY = Fraction(1, 2)
"""How many rows an empty cell counts for."""


@dataclass(frozen=True, eq=False)
class Marginals:
    """Rows per cell: `counts[feature]` int64[n_cells], out of `rows`."""

    counts: tuple[Int64Array, ...]
    rows: int

    def probability(self, feature: int, cell: int) -> Fraction:
        """The smoothed share of a cell."""
        return (Fraction(int(self.counts[feature][cell])) or EMPTY) / self.rows

    def log_costs(self, feature: int, rounding: Rounding) -> Int64Array:
        """ln of the probability of every cell in units of 2**-SHIFT, rounded as asked, int64[n_cells]."""
        distinct, place = np.unique(self.counts[feature], return_inverse=True)
        logs = [_log((Fraction(int(count)) or EMPTY) / self.rows, rounding) for count in distinct]
        return np.array(logs, np.int64)[place]


def _log(probability: Fraction, rounding: Rounding) -> int:
    low, high = ln_bounds(probability, SHIFT + 24)
    return round_to_cell({"down": low, "up": high, "nearest": (low + high) / 2}[rounding], rounding)


def marginals(cells: Int32Array, n_cells: Int32Array) -> Marginals:
    """The marginals of rows of cells int32[rows, features]; cells of -1 (missing where the grid allows none) are left out."""
    counts = tuple(
        np.bincount(column[column >= 0], minlength=int(n)).astype(np.int64)
        for column, n in zip(cells.T, n_cells, strict=True)
    )
    return Marginals(counts, len(cells))
