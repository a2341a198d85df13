"""All cavities as a statement about inputs: the cells of rows of which any few features of a point have those of one row.

A point lies in no box of at most w features without a row if for every w of its features some row has their cells. Fewer rows
say more, so that of an answer those are enough which rule out every such box (`Cavities.separating`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from treesens.compiler.base.arrays import Int32Array
from treesens.compiler.query.cavities import Cavities
from treesens.compiler.query.query import AvoidCavities, Query
from treesens.extensions.certify.statement import NoCertificate, set_of_cells

MOST_CELLS = 200_000
"""Of all rows of one statement."""


def stated_cavities(query: Query, constraint: AvoidCavities, answer: Int32Array | None = None) -> dict[str, Any]:
    """That a point lies in none of the cavities; if its cells, `answer` int32[features], are given, by rows that are enough.

    NoCertificate if there are more than MOST_CELLS cells to name.
    """
    cavities = constraint.cavities
    rows = cavities.rows if answer is None else _enough(cavities, constraint.coarse_cells(answer))
    if rows.size > MOST_CELLS:
        raise NoCertificate(f"all cavities of {len(rows)} different rows are more than {MOST_CELLS} cells")
    cells, numbers = list[list[dict[str, Any]]](), np.empty(rows.shape, object)
    for column, feature in enumerate(cavities.features.tolist()):
        start = int(constraint.start[feature])
        grid = query.space.grid[feature]
        owner = constraint.coarse[start : start + grid.n_cells]
        used, place = np.unique(rows[:, column], return_inverse=True)
        sets = {int(c): set_of_cells(grid, owner == c) for c in used if (owner == c).any()}
        order = {c: number for number, c in enumerate(sets)}
        cells.append(list(sets.values()))
        numbers[:, column] = [order.get(int(used[i])) for i in place.reshape(-1)]
    return {
        "point": constraint.point,
        "width": cavities.width,
        "features": cavities.features.tolist(),
        "cells": cells,
        "rows": numbers.tolist(),
    }


def _enough(cavities: Cavities, cells: Int32Array) -> Int32Array:
    """Rows none of whose cavities of the width hold a point: the one that has most of its cells, and then for each set of
    features that none so far has, one that has.
    """
    alike = np.asarray(cavities.rows == cells[cavities.features])
    best = np.argsort(-np.count_nonzero(alike, axis=1), kind="stable")
    column = {feature: place for place, feature in enumerate(cavities.features.tolist())}
    chosen = best[:1]
    while True:
        few = Cavities(np.empty((0, len(cavities.n_cells)), np.int32), cavities.n_cells, cavities.width)
        few.rows = np.unique(cavities.rows[chosen], axis=0)
        apart = few.separating(cells, 1)
        if not apart:
            return few.rows
        with_these = best[alike[best][:, [column[f] for f in apart[0]]].all(axis=1)]
        if len(with_these) == 0:
            raise NoCertificate("the answer lies in a cavity")
        chosen = np.append(chosen, with_these[0])
