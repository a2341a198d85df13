"""What is decided about rows of a table, in exact arithmetic."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from treesens.compiler.base.arrays import BoolArray, FloatArray, Int64Array
from treesens.compiler.query.evaluate_rows import ManyInputs, holds_on_rows, many_inputs
from treesens.compiler.query.query import DecidedPoint, Query
from treesens.data.rows import cells_of_rows
from treesens.solve.tasks.data_rows import legal_rows


def decided_rows(
    query: Query, rows: FloatArray, wanted: Sequence[tuple[DecidedPoint, str]]
) -> tuple[Int64Array, list[BoolArray]]:
    """The legal rows of a table float64[rows, features], by their numbers; for each decision, which have the outcome."""
    index = legal_rows(query, rows)
    values = query.space.grid[0].number_type.cast(rows[index])
    cells = cells_of_rows(query.space.grid, rows[index])
    x = many_inputs(query, np.stack([values] * len(query.points)), np.stack([cells] * len(query.points)))
    return index, [_has_outcome(decided, outcome, x) for decided, outcome in wanted]


def _has_outcome(decided: DecidedPoint, outcome: str, x: ManyInputs) -> BoolArray:
    """Rows whose first case that holds has the outcome, bool[rows]."""
    open_rows, found = np.ones(len(x), bool), np.zeros(len(x), bool)
    for named, condition in decided.cases:
        held = open_rows & holds_on_rows(condition, x)
        found |= held & (named == outcome)
        open_rows &= ~held
    return found | (open_rows & (decided.otherwise == outcome))
