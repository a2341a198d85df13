"""Every partner of every row: what `count rows` asks if the features that may differ have few combinations of cells.

A disjunction has no extreme score that decides it, and a search for each row is slow. If cells alone decide whether a pair
satisfies the question, all combinations of cells are tried at once: a row of which none holds does not count, by exact
arithmetic, and one that holds is a partner to be replayed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from treesens.compiler.base.arrays import BoolArray, Int32Array, Int64Array
from treesens.compiler.base.budget import Budget
from treesens.compiler.query.dependencies import decided_by_cells
from treesens.compiler.query.evaluate_rows import ManyInputs, holds_everywhere, sums_of_cells
from treesens.compiler.query.query import Query, SameExcept

MOST_COMBINATIONS = 2048
"""Most combinations of cells of the features that may differ."""
_INPUTS = 1 << 14
"""Pairs that are judged between two looks at the clock."""


@dataclass(frozen=True, eq=False)
class Partners:
    """The partners of some rows: `holds` bool[rows, combinations], and the cells of each, int32[combinations, varied]."""

    places: Int64Array
    holds: BoolArray
    combinations: Int32Array


def partners_of(
    query: Query,
    varied: tuple[int, ...],
    cells: Int32Array,
    places: Int64Array,
    legal: Sequence[BoolArray],
    budget: Budget,
) -> Iterator[Partners]:
    """For the rows at `places` of cells int32[rows, features], part by part until the time is over, which combinations hold.

    Nothing if values and not cells decide a constraint, or if there are too many combinations. `legal[f]` flags the cells of
    feature f that the second point may have.
    """
    constraints = [c for c in query.constraints if not isinstance(c, SameExcept)]
    size = math.prod(int(legal[f].sum()) for f in varied)
    if len(query.points) != 2 or size > MOST_COMBINATIONS or not all(map(decided_by_cells, constraints)):
        return
    options = np.meshgrid(*(np.flatnonzero(legal[f]) for f in varied), indexing="ij")
    combinations = np.stack([o.ravel() for o in options], axis=1).astype(np.int32)
    step = max(1, _INPUTS // size)
    for start in range(0, len(places), step):
        if budget.over:
            return
        chosen = places[start : start + step]
        own = np.repeat(cells[chosen], size, axis=0)
        other = own.copy()
        other[:, varied] = np.tile(combinations, (len(chosen), 1))
        held = holds_everywhere(constraints, _pairs(query, cells[chosen], size, own, other))
        yield Partners(chosen, held.reshape(len(chosen), size), combinations)


def _pairs(query: Query, rows: Int32Array, size: int, own: Int32Array, other: Int32Array) -> ManyInputs:
    """The pairs with their exact scores; of the row itself, which is the same in `size` of them, they are made once."""
    first = sums_of_cells(query, query.points[0].model, np.ascontiguousarray(rows))
    second = sums_of_cells(query, query.points[1].model, other)
    # No constraint reads values.
    values = np.empty((2, len(own), 0))
    return ManyInputs(values, np.stack([own, other]), (first[np.repeat(np.arange(len(rows)), size)], second))
