"""Maps the cells of a question's own grid to the coarser grid that the engine searches for all questions about a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from treesens.compiler.base.arrays import BoolArray, Int32Array, Int64Array
from treesens.compiler.model.grid import FeatureGrid, Grid
from treesens.compiler.query.query import CellSet, Query

_NEVER = np.iinfo(np.int64).max
"""The cost of a forbidden cell."""


class QuestionCells:
    """The cells of a question's own grid, and the cells of the searched grid that contain them.

    Arrays over all variables are concatenated by variable. Scores depend on coarse cells only, and all other constraints of a
    tree question are about one variable: a solution over coarse cells exists iff a solution over allowed cells exists.
    """

    def __init__(
        self, query: Query, coarse: Grid, variable: Int32Array, feature: Int32Array, sets: Sequence[CellSet]
    ) -> None:
        """`variable`: int32[points, features]; `feature`: the feature of each variable; `sets`: the allowed cells."""
        self.query, self.variable, self.sets = query, variable, sets
        grid = query.space.grid
        self.start = np.concatenate(([0], np.cumsum(grid.n_cells[feature])))
        self._first: Int64Array | None = None
        if any(new is not old for new, old in zip(grid, coarse, strict=True)):
            firsts = [_first_cells(new, old) for new, old in zip(grid, coarse, strict=True)]
            self._coarse_start = np.concatenate(([0], np.cumsum(coarse.n_cells[feature])))
            self._first = np.concatenate([firsts[f] + self.start[v] for v, f in enumerate(feature.tolist())])

    def allowed(self) -> BoolArray | None:
        """The allowed cells of each variable, bool[cells of all variables]; None if some variable has no allowed cell."""
        allowed = np.ones(int(self.start[-1]), bool)

        def restrict(point: int, feature: int, mask: Any) -> None:
            v = self.variable[point, feature]
            allowed[self.start[v] : self.start[v + 1]] &= mask

        for f, legal in enumerate(self.query.space.legal):
            for p in range(len(self.query.points)):
                restrict(p, f, legal)
        for chosen in self.sets:
            restrict(chosen.point, chosen.feature, chosen.mask)
        self._chosen = np.where(allowed, 0, _NEVER)
        return allowed if np.logical_or.reduceat(allowed, self.start[:-1]).all() else None

    def coarse_allowed(self, allowed: BoolArray) -> BoolArray:
        """For each coarse cell, True if it contains an allowed cell."""
        return allowed if self._first is None else np.logical_or.reduceat(allowed, self._first)

    def coarse_costs(self, cost: Int64Array) -> Int64Array:
        """The least cost in each coarse cell, for costs >= 0 (-1: forbidden). `of_point` then chooses the cheapest cells."""
        self._chosen = np.where(cost < 0, _NEVER, cost)
        if self._first is None:
            return cost
        least = np.minimum.reduceat(self._chosen, self._first)
        return np.where(least == _NEVER, -1, least)

    def of_point(self, point: list[int]) -> Int32Array:
        """Converts an engine point to int32[points, features] cells of the question: the cheapest allowed cell in each coarse
        cell."""
        cells = np.array(point, np.int32)
        if self._first is None:
            return cells[self.variable]
        at = self._coarse_start[:-1] + cells
        ends = np.append(self._first[1:], self.start[-1])
        first, last = self._first[at], ends[at]
        cells = (first - self.start[:-1]).astype(np.int32)
        for v in np.flatnonzero(last - first > 1):
            cells[v] += int(np.argmin(self._chosen[first[v] : last[v]]))
        return cells[self.variable]

    def of_hints(self, hints: Int32Array | None) -> Int32Array:
        """Converts `hints`, int32[hints, points, features] in the question's cells, to coarse cells of variables."""
        count = 0 if hints is None else len(hints)
        result = np.zeros((count, len(self.start) - 1), np.int32)
        for p in reversed(range(len(self.variable))):
            if hints is not None and count:
                result[:, self.variable[p]] = hints[:, p, :]
        if self._first is None:
            return result
        flat = np.searchsorted(self._first, result + self.start[:-1], side="right") - 1
        return (flat - self._coarse_start[:-1]).astype(np.int32)


def _first_cells(grid: FeatureGrid, coarse: FeatureGrid) -> Int64Array:
    """The first cell of `grid` in every cell of `coarse`; `grid` refines `coarse`."""
    if grid is coarse or grid.categories:
        return np.arange(grid.n_cells)
    first = np.concatenate(([0], np.searchsorted(grid.cuts, coarse.cuts) + 1))
    return np.append(first, grid.missing_cell) if grid.missing else first
