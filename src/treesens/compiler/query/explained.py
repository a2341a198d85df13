"""The claims of a row's reason: questions that must have no answer."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from treesens.compiler.base.arrays import Int32Array, frozen
from treesens.compiler.query.query import CellSet, ExplainedRow, Query


def agreeing(row: ExplainedRow, features: Collection[int]) -> list[Query]:
    """For each other class, the question for an input of it that agrees with the row on the features. A reason claims: none."""
    return [pinned(other, row.cells, features) for other in row.others]


def pinned(query: Query, cells: Int32Array, features: Collection[int]) -> Query:
    """The question with the first point fixed to these cells, int32[features], on some features."""
    numbers = [(f, np.arange(query.space.grid[f].n_cells)) for f in sorted(features)]
    sets = [CellSet(0, f, frozen(mine == cells[f], bool)) for f, mine in numbers]
    return replace(query, constraints=(*query.constraints, *sets))
