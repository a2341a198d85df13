"""All boxes that bound at most w features and contain no row of a table, without listing them (paper, section 4, "cavities").

A point is in such a box if and only if, on some set of at most w features, no row agrees with the point: the point's cells on
this set are then a box without a row. In other words, the sets of features in which rows differ from the point have a hitting
set of size w. Such a set is found by branching on the row that differs in the fewest features, so that the number of features
of the table hardly matters (Reiter, *A theory of diagnosis from first principles*, Artificial Intelligence 32, 1987).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TypeAlias

import numpy as np

from treesens.compiler.base.arrays import BoolArray, Int32Array, frozen
from treesens.compiler.base.budget import check_in

Side: TypeAlias = tuple[int, int, int]
"""A feature, and the first and last cell of a run."""
Box: TypeAlias = tuple[Side, ...]


class Cavities:
    """The boxes of at most `width` features that contain none of `rows`, cells int32[rows, features]; cell -1 is in no box.

    `n_cells` is int32[features]; features with a single cell are ignored. `known` holds the boxes learnt so far, for any
    question; none of these boxes contains a row.
    """

    def __init__(self, rows: Int32Array, n_cells: Int32Array, width: int) -> None:
        self.features = frozen(np.flatnonzero(n_cells > 1).astype(np.int32))
        self.rows: Int32Array = frozen(np.unique(rows[:, self.features], axis=0))
        self.n_cells = n_cells
        self.width = min(width, len(self.features))
        self._bits = np.uint64(1) << np.arange(min(64, len(self.features)), dtype=np.uint64)
        self.known: list[Box] = []
        self._listed: set[Box] = set()

    def hold(self, cells: Int32Array) -> bool:
        """True if one of the boxes contains the point with `cells`, int32[features]."""
        return bool(self.separating(cells, 1))

    def separating(self, cells: Int32Array, limit: int) -> list[tuple[int, ...]]:
        """The smallest sets of at most `width` features on which no row agrees with a point: at most `limit` sets, sorted."""
        apart = np.asarray(self.rows != cells[self.features])
        if not apart.any(axis=1).all():
            return []  # the point is a row
        if len(self._bits) == len(self.features):
            _, first = np.unique(apart @ self._bits, return_index=True)
            apart = apart[first]
        for size in range(min(1, self.width), self.width + 1):
            found = list(islice(_hitting_sets(apart, size), limit))
            if found:
                return [tuple(sorted(int(self.features[c]) for c in columns)) for columns in found]
        return []

    def learn(self, box: Box) -> bool:
        """Adds a box without rows; returns False if the box is already known."""
        if box in self._listed:
            return False
        self._listed.add(box)
        self.known.append(box)
        return True


def _hitting_sets(apart: BoolArray, size: int) -> Iterator[tuple[int, ...]]:
    """Yields the sets of `size` columns such that every row of `apart`, bool[rows, columns], is true in one of the columns.

    Each set occurs once, and no set is missing unless a smaller set exists.
    """
    if size == 0 or len(apart) == 0:
        yield from [()] if len(apart) == 0 else []
        return
    if size == 1:
        yield from ((int(c),) for c in np.flatnonzero(apart.all(axis=0)))
        return
    check_in()
    counts = np.count_nonzero(apart, axis=0)
    if int(np.partition(counts, -size)[-size:].sum()) < len(apart):
        return
    branch = np.flatnonzero(apart[np.count_nonzero(apart, axis=1).argmin()])
    left = apart.copy()
    for column in branch[np.argsort(-counts[branch], kind="stable")]:
        for others in _hitting_sets(left[~left[:, column]], size - 1):
            yield (int(column), *others)
        left[:, column] = False
