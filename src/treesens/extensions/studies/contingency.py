"""How often each value of a column meets each value of every other one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from treesens.compiler.base.arrays import FloatArray, Int64Array
from treesens.compiler.base.budget import check_in, steadily
from treesens.extensions.studies.rule_columns import FewValues

_MOST_ITEMS = 4_000
"""Values of all columns together; further columns are left out (the table of pairs would not fit)."""

_BLOCK = 1 << 12
"""Rows of a product, which takes a second or two at most; counts below 2^24 are exact in float32."""


@dataclass(frozen=True, eq=False)
class Contingency:
    """`pairs` int64[items, items]: rows that hold both. The items of a column are its values, in order, and missing last."""

    columns: tuple[FewValues, ...]
    rows: int
    start: Int64Array
    pairs: Int64Array

    @classmethod
    def of(cls, columns: Sequence[FewValues], rows: int) -> Contingency:
        """The table of the first columns whose items are few enough."""
        sizes = np.array([len(column.values) + 1 for column in columns], np.int64)
        kept = tuple(columns[: int((np.cumsum(sizes) <= _MOST_ITEMS).sum())])
        start = np.concatenate(([0], np.cumsum(sizes[: len(kept)]))).astype(np.int64)
        pairs = np.zeros((start[-1], start[-1]), np.int64)
        for first in range(0, rows, _BLOCK):
            check_in()
            block = np.zeros((min(_BLOCK, rows - first), start[-1]), np.float32)
            for i, column in enumerate(kept):
                block[np.arange(len(block)), start[i] + column.codes[first : first + _BLOCK]] = 1
            pairs += (block.T @ block).astype(np.int64)
        return cls(kept, rows, start, pairs)

    def count(self, x: int, value: int) -> int:
        """Rows with a value of column x."""
        item = self.start[x] + value
        return int(self.pairs[item, item])

    def row(self, x: int, value: int, y: int) -> Int64Array:
        """Rows with a value of x, by the value of y (missing left out), int64[values of y]."""
        return self.pairs[self.start[x] + value, self.start[y] : self.start[y + 1] - 1]

    def best(self, x: int, y: int) -> Int64Array:
        """For every value of x the value of y that most of its rows have."""
        block = self.pairs[self.start[x] : self.start[x + 1] - 1, self.start[y] : self.start[y + 1] - 1]
        best: Int64Array = np.argmax(block, axis=1)
        return best

    def _premises(self) -> Int64Array:
        """Rows of every item; 0 for missing."""
        counts = np.diagonal(self.pairs).copy()
        counts[self.start[1:] - 1] = 0
        return counts

    def _conclusions(self) -> Int64Array:
        """The pairs without those whose second value is missing."""
        pairs = self.pairs.copy()
        pairs[:, self.start[1:] - 1] = 0
        return pairs

    def dependencies(self, exceptions: float, least: float) -> set[tuple[int, int]]:
        """Pairs of columns (x, y): each value of x leaves one value of y, but for a share of the rows with that value.

        A pair is left out if chance would rarely break it: if all rows but the first of each value of x drew their value of y,
        fewer than 16 would draw another one than the most frequent.
        """
        counts = self._premises()
        best = np.maximum.reduceat(self._conclusions(), self.start[:-1], axis=1)
        missed = counts[:, None] - best
        fine = np.logical_and.reduceat(
            (missed <= exceptions * counts[:, None]) | (counts[:, None] == 0), self.start[:-1]
        )
        chance = np.maximum.reduceat(counts, self.start[:-1])
        support = np.add.reduceat(counts, self.start[:-1])
        repeated = support - np.array([len(column.values) for column in self.columns])
        fine &= (support >= least)[:, None] & (repeated[:, None] * (1 - chance / self.rows)[None, :] >= 16)
        np.fill_diagonal(fine, False)
        return {(int(x), int(y)) for x, y in np.argwhere(fine)}

    def candidates(self, exceptions: float, least: float, expected: float) -> Iterator[tuple[int, int, int]]:
        """(x, value, y): the value of x may exclude values of y that would be in `expected` of its rows by chance."""
        counts = self._premises()
        share: FloatArray = np.diagonal(self.pairs) / self.rows
        rare = np.where(self.pairs <= exceptions * counts[:, None], share[None, :], 0.0)
        excluded = np.add.reduceat(rare, self.start[:-1], axis=1) * counts[:, None]
        for item, y in steadily(np.argwhere((excluded >= expected) & (counts >= least)[:, None]).tolist()):
            x = int(np.searchsorted(self.start, item, side="right")) - 1
            if x != y:
                yield x, int(item - self.start[x]), y
