"""Computes distances of cells to groups of rows, for branching in the search for the nearest pair.

The distance of a cell to a group of rows is a lower bound on the cell's distance to each row: in every feature, the gap between
the cell's legal values and the range of the group. For a single row, the bound is the exact distance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from treesens.compiler.base.arrays import BoolArray, FloatArray, Int32Array, Int64Array
from treesens.compiler.query.domain import ValueDomain, cell_range
from treesens.compiler.query.query import NearestRows, Space


@dataclass(frozen=True, eq=False)
class CellValues:
    """The range of legal values of every present cell of a feature, and flags for legal cells."""

    low: FloatArray
    high: FloatArray
    legal: BoolArray
    missing_cell: int
    unit: float
    same_or_not: bool


class Rows:
    """The rows of a "nearest row" objective, with their cells in a space."""

    def __init__(self, space: Space, nearest: NearestRows) -> None:
        self.values = nearest.values
        self.features = nearest.features
        self.norm = nearest.norm
        self.cells: list[Int32Array] = []
        self.about: list[CellValues] = []
        for column, f in enumerate(nearest.features):
            about = _cell_values(space, f, float(nearest.widths[column]), bool(nearest.same_or_not[column]))
            self.about.append(about)
            values = self.values[:, column]
            absent = np.isnan(values)
            cells = space.grid[f].cell_of(np.where(absent, 0.0, values)) if not space.grid[f].missing else None
            if cells is None:
                cells = space.grid[f].cell_of(values)
            self.cells.append(np.where(absent, about.missing_cell, cells).astype(np.int32))

    def spread(self, group: Int64Array) -> FloatArray:
        """Per counted feature, the spread of the group's rows in units of the feature's width; 1 if unordered values differ."""
        result = np.zeros(len(self.features))
        for column, about in enumerate(self.about):
            values = self.values[group, column]
            present = values[~np.isnan(values)]
            if len(present) == 0:
                continue
            apart = float(present.max() - present.min())
            result[column] = float(apart > 0) if about.same_or_not else apart / about.unit
            if len(present) < len(values):
                result[column] = max(result[column], 1.0)
        return result

    def halves(self, group: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Splits the group at the feature with the largest spread; the second part is empty if all rows are equal."""
        column = int(np.argmax(self.spread(group)))
        keys = np.nan_to_num(self.values[group, column], nan=np.inf)
        order = np.argsort(keys, kind="stable")
        ranked = keys[order]
        middle = len(group) // 2
        # Equal values stay together: the group is split at the change of values nearest to the middle.
        changes = np.flatnonzero(ranked[1:] != ranked[:-1]) + 1
        cut = len(group) if len(changes) == 0 else int(changes[np.argmin(np.abs(changes - middle))])
        return group[order[:cut]], group[order[cut:]]

    def distances(self, group: Int64Array) -> list[FloatArray]:
        """For each counted feature, the distances of all cells to the group, float64[n_cells]; infinite for illegal cells."""
        result = []
        for column, about in enumerate(self.about):
            values = self.values[group, column]
            absent = np.isnan(values)
            distance = np.ones(len(about.legal))
            present = slice(0, len(about.low))
            if not absent.all():
                if about.same_or_not or self.norm == "l0":
                    inside = np.unique(self.cells[column][group][~absent])
                    away = np.ones(len(about.low))
                    if self.norm == "l0" and not about.same_or_not:
                        low, high = values[~absent].min(), values[~absent].max()
                        away[(about.low <= high) & (about.high >= low)] = 0.0
                    away[inside[inside < len(away)]] = 0.0
                else:
                    low, high = values[~absent].min(), values[~absent].max()
                    away = np.maximum(0.0, np.maximum(about.low - high, low - about.high)) / about.unit
                distance[present] = np.minimum(away, 1.0) if absent.any() else away
            if about.missing_cell >= 0:
                distance[about.missing_cell] = 0.0 if absent.any() else 1.0
            distance[~about.legal] = np.inf
            result.append(distance)
        return result

    def to_point(self, point: Sequence[float]) -> FloatArray:
        """The distances of all rows to `point`, float64[counted features]."""
        columns = []
        for column, about in enumerate(self.about):
            values, own = self.values[:, column], float(point[column])
            if np.isnan(own):
                gap = np.where(np.isnan(values), 0.0, 1.0)
            else:
                gap = np.abs(values - own) / about.unit
                if about.same_or_not or self.norm == "l0":
                    gap = (gap != 0).astype(np.float64)
                gap = np.where(np.isnan(values), 1.0, gap)
            columns.append(gap)
        stacked = np.stack(columns) if columns else np.zeros((1, len(self.values)))
        match self.norm:
            case "l2":
                return np.asarray(np.sqrt((stacked**2).sum(axis=0)))
            case "linf":
                return np.asarray(stacked.max(axis=0))
            case _:
                return np.asarray(stacked.sum(axis=0))


def _cell_values(space: Space, feature: int, unit: float, same_or_not: bool) -> CellValues:
    domain, grid = space.domains[feature], space.grid[feature]
    low, high = np.full(grid.present_cells, np.inf), np.full(grid.present_cells, -np.inf)
    if isinstance(domain, ValueDomain):
        owner = grid.cell_of(domain.values)
        np.minimum.at(low, owner, domain.values)
        np.maximum.at(high, owner, domain.values)
    else:
        for cell in range(grid.present_cells):
            low[cell], high[cell] = cell_range(domain, grid, cell)
    legal = space.legal[feature]
    return CellValues(low, high, np.asarray(legal), grid.missing_cell, unit, same_or_not)
