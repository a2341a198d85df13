"""What the reason of a row claims: that questions without an answer have none."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from treesens.compiler.base.arrays import frozen
from treesens.compiler.query.query import CellSet, ExplainedRow, Query


def agreeing(row: ExplainedRow, features: Collection[int]) -> list[Query]:
    """For each other class the question about an input of it that agrees with the row on features. A reason says: none."""
    return [replace(other, constraints=(*other.constraints, *_fixed(other, row, features))) for other in row.others]


def _fixed(query: Query, row: ExplainedRow, features: Collection[int]) -> list[CellSet]:
    cells = [(f, np.arange(query.space.grid[f].n_cells)) for f in sorted(features)]
    return [CellSet(0, f, frozen(numbers == row.cells[f], bool)) for f, numbers in cells]
