"""The measure that shares are counted by: from its name, the domain of a question, and the rows of a table."""

from __future__ import annotations

from typing import Literal, get_args

from treesens.binder.file import ResolvedQuestion
from treesens.compiler.base.arrays import FloatArray, Int32Array
from treesens.compiler.query.query import Query
from treesens.data.learnt_measure import chow_liu, marginals
from treesens.data.measure import Measure
from treesens.data.rows import cells_of_rows
from treesens.errors import DataError, UsageError
from treesens.extensions.measure.groups import Groups, groups_of
from treesens.extensions.measure.uniform import all_cells, uniform
from treesens.solve.tasks.data_rows import legal_rows, table_in_play

MeasureName = Literal["uniform", "cells", "marginals", "chow-liu", "rows"]
MEASURES: tuple[MeasureName, ...] = get_args(MeasureName)
NOT_LEARNT = "the measure was not ready by then"
LEARNT: tuple[MeasureName, ...] = ("marginals", "chow-liu", "rows")
"""Those that need a table."""


def check_measure(name: MeasureName, has_table: bool) -> None:
    """UsageError for a measure of a table that is not there."""
    if name in LEARNT and not has_table:
        raise UsageError(f"the measure `{name}` is learnt from a table", remedy="add --data FILE")


def rows_of_domain(query: Query, rows: FloatArray, groups: Groups, place: str) -> Int32Array:
    """The cells of the rows float64[all rows, features] that are inputs of a question, int32[rows, features]. DataError if none
    is.
    """
    cells = cells_of_rows(query.space.grid, rows[legal_rows(query, rows)])
    cells = cells[groups.legal_rows(cells)]
    if len(cells) == 0:
        raise DataError("no row of the table lies in the domain", place=place)
    return cells


def measure_by(name: MeasureName, query: Query, groups: Groups, cells: Int32Array | None) -> Measure:
    """A measure over the domain of a question, learnt from the cells of rows if it needs some. For `rows` it is that of their
    marginals, which nothing is counted by.
    """
    if name == "uniform":
        return uniform(query.space, groups)
    if name == "cells":
        return all_cells(query.space, groups)
    assert cells is not None
    learn = chow_liu if name == "chow-liu" else marginals
    return learn(groups.folded_rows(cells), groups.folded_grid())


def measure_of(name: MeasureName, question: ResolvedQuestion) -> Measure:
    """A measure over the domain of a question, learnt from the table that its domain comes from."""
    groups = groups_of(question.query)
    table = table_in_play(question) if name in LEARNT else None
    cells = None if table is None else rows_of_domain(question.query, table[1], groups, table[0])
    return measure_by(name, question.query, groups, cells)
