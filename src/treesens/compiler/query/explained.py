"""What the reason of a row claims: that questions without an answer have none."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from treesens.compiler.base.arrays import Int32Array, frozen
from treesens.compiler.query.query import CellSet, ExplainedRow, Query


def agreeing(row: ExplainedRow, features: Collection[int]) -> list[Query]:
    """For each other class the question about an input of it that agrees with the row on features. A reason says: none."""
    return [pinned(other, row.cells, features) for other in row.others]


def pinned(query: Query, cells: Int32Array, features: Collection[int]) -> Query:
    """The question with a first point that has these cells, int32[features], on some features."""
    numbers = [(f, np.arange(query.space.grid[f].n_cells)) for f in sorted(features)]
    sets = [CellSet(0, f, frozen(mine == cells[f], bool)) for f, mine in numbers]
    return replace(query, constraints=(*query.constraints, *sets))
