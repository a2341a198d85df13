"""Builds the measures for counting shares from a name, the domain of a question, and the rows of a table.

Two measures need no table: the uniform distribution on the domain, and equal weights for all cells.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import lcm
from typing import Literal, get_args

import numpy as np

from treesens.binder.file import ResolvedQuestion
from treesens.compiler.base.arrays import FloatArray, Int32Array, Int64Array
from treesens.compiler.model.grid import FeatureGrid
from treesens.compiler.query.domain import Domain, RealDomain, ValueDomain, whole_range
from treesens.compiler.query.query import Query, Space
from treesens.data.rows import cells_of_rows
from treesens.errors import DataError, UsageError
from treesens.extensions.measure.groups import Groups, groups_of
from treesens.extensions.measure.measure import Measure, chow_liu, marginals, product
from treesens.solve.tasks.data_rows import legal_rows, table_in_play

MeasureName = Literal["uniform", "cells", "marginals", "chow-liu", "rows"]
MEASURES: tuple[MeasureName, ...] = get_args(MeasureName)
NOT_LEARNT = "the measure was not ready in time"
LEARNT: tuple[MeasureName, ...] = ("marginals", "chow-liu", "rows")
"""Measures that are learnt from a table."""

_UNITS = 1 << 61
"""Lengths are rounded to integer multiples of 1 / _UNITS of the length of the domain."""


def check_measure(name: MeasureName, has_table: bool) -> None:
    """Raises UsageError if the measure requires a table that is missing."""
    if name in LEARNT and not has_table:
        raise UsageError(f"the measure `{name}` is learnt from a table", remedy="add --data FILE")


def rows_of_domain(query: Query, rows: FloatArray, groups: Groups, place: str) -> Int32Array:
    """Cells int32[rows, features] of those `rows` (float64[all, features]) in the domain. Raises DataError without rows."""
    cells = cells_of_rows(query.space.grid, rows[legal_rows(query, rows)])
    cells = cells[groups.legal_rows(cells)]
    if len(cells) == 0:
        raise DataError("no row of the table is in the domain", place=place)
    return cells


def measure_by(name: MeasureName, query: Query, groups: Groups, cells: Int32Array | None) -> Measure:
    """A measure over a question's domain, learnt from `cells` if necessary. For `rows`, the result is the product of the
    marginals, which the counting does not use.
    """
    if name == "uniform":
        return uniform(query.space, groups)
    if name == "cells":
        return all_cells(query.space, groups)
    assert cells is not None
    learn = chow_liu if name == "chow-liu" else marginals
    return learn(groups.folded_rows(cells), groups.folded_grid())


def measure_of(name: MeasureName, question: ResolvedQuestion) -> Measure:
    """A measure over the domain of a question, learnt from the table that defines the domain."""
    groups = groups_of(question.query)
    table = table_in_play(question) if name in LEARNT else None
    cells = None if table is None else rows_of_domain(question.query, table[1], groups, table[0])
    return measure_by(name, question.query, groups, cells)


def uniform(space: Space, groups: Groups) -> Measure:
    """Independent features. The weight of a cell is its length within the domain for real features, the number of values for
    integers and categories, and 1 for each member of a group. Missing values have no share, unless a feature is always missing.

    Raises UsageError for a real feature with an unbounded domain.
    """
    counts = groups.counts
    parts = [
        (np.ones(counts[f], np.int64), True) if f in counts else _weights(name, domain, grid)
        for f, (name, domain, grid) in enumerate(zip(space.names, space.domains, space.grid, strict=True))
    ]
    # Each cell and the total are off by at most one unit, so the share of a box is off by at most the sum.
    error = sum(2.0 * len(weights) / (_UNITS - len(weights)) for weights, exact in parts if not exact)
    return product("uniform", [weights for weights, _ in parts], error=error)


def all_cells(space: Space, groups: Groups) -> Measure:
    """The measure in which all cells with a legal value, all members of a group, and the missing cell have equal weight."""
    counts = groups.counts
    weights = [
        np.ones(counts[f], np.int64) if f in counts else legal.astype(np.int64) for f, legal in enumerate(space.legal)
    ]
    return product("cells", weights)


def _weights(name: str, domain: Domain, grid: FeatureGrid) -> tuple[Int64Array, bool]:
    """The weights of the cells, and True if the weights are exact."""
    if isinstance(domain, ValueDomain):
        weights, exact = _by_value(domain, grid), True
    else:
        _check_ends(name, domain, grid)
        sizes = _counts(domain, grid) if domain.whole else _lengths(domain, grid)
        weights, exact = _scaled(sizes)
    if not weights.any() and grid.missing:
        weights[grid.missing_cell] = 1
    return weights, exact


def _by_value(domain: ValueDomain, grid: FeatureGrid) -> Int64Array:
    """The weights of the cells if all labels have equal weight, which is split equally among the values of a label."""
    labels = Counter(domain.labels)
    whole = lcm(*labels.values()) if labels else 1
    weights = np.zeros(grid.n_cells, np.int64)
    for cell, label in zip(grid.cell_of(domain.values).tolist(), domain.labels, strict=True):
        weights[cell] += whole // labels[label]
    return weights


def _check_ends(name: str, domain: RealDomain, grid: FeatureGrid) -> None:
    if max(abs(domain.low), abs(domain.high)) >= grid.number_type.max:
        raise UsageError(
            f"the domain of `{name}` is unbounded, so no measure is uniform on it",
            remedy="pass --data (ranges of its columns), --domain (a file with `feature` lines), or --measure cells",
        )


def _lengths(domain: RealDomain, grid: FeatureGrid) -> list[Fraction]:
    """The length of every cell within the domain; a domain with a single value is in one cell."""
    sizes = [Fraction(0)] * grid.n_cells
    if domain.low == domain.high:
        sizes[int(grid.cell_of(np.array([domain.low]))[0])] = Fraction(1)
        return sizes
    ends = [Fraction(domain.low), *(Fraction(c) for c in grid.cuts.tolist()), Fraction(domain.high)]
    least, most = ends[0], ends[-1]
    inside = [min(max(end, least), most) for end in ends]
    for cell in range(grid.present_cells):
        sizes[cell] = inside[cell + 1] - inside[cell]
    return sizes


def _counts(domain: RealDomain, grid: FeatureGrid) -> list[Fraction]:
    """The number of integers of the domain in each cell."""
    sizes = [Fraction(0)] * grid.n_cells
    for cell in range(grid.present_cells):
        low, high = grid.interval(cell)
        first, last = whole_range(max(low, domain.low), min(high, domain.high))
        sizes[cell] = Fraction(max(0, last - first + 1))
    return sizes


def _scaled(sizes: list[Fraction]) -> tuple[Int64Array, bool]:
    total = sum(sizes, Fraction(0))
    if total == 0:
        return np.zeros(len(sizes), np.int64), True
    if total < _UNITS and all(size.denominator == 1 for size in sizes):
        return np.array([int(size) for size in sizes], np.int64), True
    return np.array([int(size * _UNITS / total) for size in sizes], np.int64), False
