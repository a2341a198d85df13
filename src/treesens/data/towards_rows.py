"""Points in few cavities: cells that many rows share, and cells of a region that are those of one row."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from treesens.compiler.base.arrays import Int32Array
from treesens.compiler.query.query import AvoidCavities, CellCost, LinearForm, Objective, Query
from treesens.compiler.result import Region

_SHIFT = 16
"""Logarithms of numbers of rows are whole multiples of 2**-16: they only guide."""
_TRIED = 20
"""Rows whose cells are tried."""


def density(query: Query) -> Objective:
    """How many rows share each cell of the points, in logarithms: points among many rows lie in few cavities."""
    costs: list[CellCost] = []
    for constraint in query.constraints:
        if isinstance(constraint, AvoidCavities):
            cavities = constraint.cavities
            ends = np.append(constraint.start, len(constraint.coarse))
            for column, f in enumerate(cavities.features):
                present = cavities.rows[:, column]
                counts = np.bincount(present[present >= 0], minlength=int(cavities.n_cells[f]))
                logs = np.round(np.log(np.maximum(counts, 0.5)) * 2**_SHIFT).astype(np.int64)
                costs.append(CellCost(constraint.point, int(f), logs[constraint.coarse[ends[f] : ends[f + 1]]], _SHIFT))
    return Objective(LinearForm(costs=tuple(costs)), True, "log-likelihood")


def towards_rows(region: Region, cells: Int32Array, constraint: AvoidCavities) -> Iterator[Int32Array]:
    """Cells int32[points, features] of a region that agree with a row in the most features; the best rows first."""
    cavities, point = constraint.cavities, constraint.point
    ends = np.append(constraint.start, len(constraint.coarse))
    choice: list[dict[int, int]] = []  # of each feature: a cell of the region for each coarse cell
    reached = np.zeros(cavities.rows.shape, bool)
    for column, f in enumerate(cavities.features):
        owner = constraint.coarse[ends[f] : ends[f + 1]]
        inside = np.flatnonzero(region.boxes[point][f])
        own = int(owner[cells[point, f]])
        choice.append({int(owner[c]): int(c) for c in inside[::-1]} | {own: int(cells[point, f])})
        reached[:, column] = np.isin(cavities.rows[:, column], list(choice[-1]))
    order = np.argsort(-reached.sum(axis=1), kind="stable")[:_TRIED]
    for row in order:
        moved = cells.copy()
        for column, f in enumerate(cavities.features):
            if reached[row, column]:
                places = range(len(cells)) if int(f) in region.shared else (point,)
                for place in places:
                    moved[place, f] = choice[column][int(cavities.rows[row, column])]
        yield moved
