"""The measure that a study counts by: from its name, the domain of a question, and the rows of a table."""

from __future__ import annotations

from typing import Literal, get_args

from treesens.binder.file import ResolvedQuestion
from treesens.compiler.base.arrays import Int32Array
from treesens.compiler.measure.learnt import chow_liu, marginals
from treesens.compiler.measure.measure import Measure
from treesens.compiler.measure.uniform import all_cells, uniform
from treesens.data.rows import cells_of_rows
from treesens.errors import DataError, UsageError
from treesens.solve.data_rows import legal_rows, table_in_play

MeasureName = Literal["uniform", "cells", "marginals", "chow-liu", "rows"]
MEASURES: tuple[MeasureName, ...] = get_args(MeasureName)


def check_measure(name: MeasureName, has_table: bool) -> None:
    """UsageError for a measure of a table that is not there."""
    if name in ("marginals", "chow-liu", "rows") and not has_table:
        raise UsageError(f"the measure `{name}` is learnt from a table", remedy="add --data FILE")


def rows_of_domain(question: ResolvedQuestion) -> tuple[Int32Array, int]:
    """The cells of the rows in the domain of a question, int32[rows, features], and how many rows lie outside. DataError if
    all do.
    """
    table = table_in_play(question)
    assert table is not None
    index = legal_rows(question.query, table[1])
    if len(index) == 0:
        raise DataError("no row of the table lies in the domain", place=table[0])
    return cells_of_rows(question.query.space.grid, table[1][index]), len(table[1]) - len(index)


def measure_of(name: MeasureName, question: ResolvedQuestion) -> Measure:
    """A measure over the domain of a question. For `rows` it is the one of their marginals, which nothing is counted by."""
    space = question.query.space
    if name == "uniform":
        return uniform(space)
    if name == "cells":
        return all_cells(space)
    cells, _ = rows_of_domain(question)
    return chow_liu(cells, space.grid) if name == "chow-liu" else marginals(cells, space.grid)
