"""Rows that are pairs, for questions whose constraints are of one point each: an outcome here, another one there.

A row flips if some legal value of the varied features makes it the first point and another one the second. Every combination
of cells of these features is tried for every row, in exact arithmetic. One score that passes two cut-offs is swept faster by
`data/flips.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from treesens.compiler.base.arrays import BoolArray, FloatArray, Int32Array, Int64Array
from treesens.compiler.base.budget import Budget
from treesens.compiler.query.dependencies import decided_by_cells, points_in
from treesens.compiler.query.domain import pick_value
from treesens.compiler.query.evaluate_rows import (
    ManyInputs,
    holds_everywhere,
    holds_on_rows,
    many_inputs,
    sums_of_cells,
)
from treesens.compiler.query.query import Constraint, DecidedPoint, Query, SameExcept
from treesens.data.rows import cells_of_rows
from treesens.solve.options import Options
from treesens.solve.tasks.data_rows import legal_rows
from treesens.values.verify import Witness, verify_values

MOST_COMBINATIONS = 1024
"""Most combinations of cells of the varied features that are tried for a row; beyond it evenly spread ones."""
_INPUTS = 1 << 14
"""Inputs that are judged between two looks at the clock."""
_TRIED = 20
"""Most rows that are replayed to find a witness among them."""


@dataclass(frozen=True, eq=False)
class PairRows:
    """What is known of rows, by their numbers in the table, `index`: which can be either point, and by which combination.

    `reached` bool[points, rows]; `at` int64[points, rows] numbers the `combinations` int32[n, varied]; `own` bool[points, rows]
    says that the row as it is will do. `complete` if all combinations of all rows were tried.
    """

    varied: tuple[int, ...]
    index: Int64Array
    combinations: Int32Array
    reached: BoolArray
    at: Int64Array
    own: BoolArray
    complete: bool

    @property
    def flipping(self) -> BoolArray:
        """Rows that can be both, bool[rows]."""
        return np.asarray(self.reached.all(axis=0), bool)

    def order(self) -> Int64Array:
        """The places of rows that flip, those first that are one of the points as they are."""
        places = np.flatnonzero(self.flipping)
        return places[np.argsort(~self.own[:, places].any(axis=0), kind="stable")]


def pair_rows(query: Query, rows: FloatArray, budget: Budget) -> PairRows:
    """Tries all legal rows float64[rows, features] of a table, until the time is over."""
    varied = varied_of(query)
    index = legal_rows(query, rows)
    sides = [sides_of(query, point) for point in (0, 1)]
    combinations, complete = _combinations(query, varied)
    size = (len(combinations), 2, len(index))
    reached, own, at = np.zeros(size[1:], bool), np.zeros(size[1:], bool), np.zeros(size[1:], np.int64)
    if any(side is None for side in sides):
        return PairRows(varied, index, combinations, reached, at, own, False)
    cells = cells_of_rows(query.space.grid, rows[index])
    step = max(1, _INPUTS // (size[0] + 1))
    for start in range(0, len(index), step):
        if budget.over:
            complete = False
            break
        part = slice(start, start + step)
        tried = _tried(cells[part], varied, combinations)
        x = _inputs(query, tried.reshape(-1, tried.shape[2]))
        for point, side in enumerate(sides):
            assert side is not None
            held = holds_everywhere(side, x).reshape(tried.shape[:2])
            own[point, part] = held[:, 0]
            reached[point, part], at[point, part] = held[:, 1:].any(axis=1), held[:, 1:].argmax(axis=1)
    return PairRows(varied, index, combinations, reached, at, own, complete)


def varied_of(query: Query) -> tuple[int, ...]:
    """The features in which the two points may differ."""
    return tuple(sorted(frozenset.intersection(*(c.varied for c in query.constraints if isinstance(c, SameExcept)))))


def sides_of(query: Query, point: int) -> list[Constraint] | None:
    """The constraints of one point; None if cells do not decide them, or if some constraint relates both points."""
    mine = [c for c in query.constraints if not isinstance(c, SameExcept)]
    if not all(decided_by_cells(c) and len(points_in(c)) <= 1 for c in mine):
        return None
    # What reads no point at all, such as a case that nothing meets, is true of both or of none.
    return [c for c in mine if points_in(c) <= {point}]


def witness_of_rows(query: Query, found: PairRows, rows: FloatArray, options: Options) -> tuple[int, Witness] | None:
    """The first of the rows that flip which passes every constraint in the library's arithmetic, with its number."""
    for place in found.order()[:_TRIED]:
        number = int(found.index[place])
        row = query.space.grid[0].number_type.cast(rows[number])
        values = np.array([row, row])
        for point in (0, 1):
            if found.own[point, place]:
                continue
            for f, cell in zip(found.varied, found.combinations[found.at[point, place]], strict=True):
                near = None if np.isnan(row[f]) else float(row[f])
                values[point, f] = pick_value(query.space.domains[f], query.space.grid[f], int(cell), near)
        verdict = verify_values(query, values, library_predict=options.library_predict)
        if isinstance(verdict, Witness):
            return number, verdict
    return None


def _combinations(query: Query, varied: Sequence[int]) -> tuple[Int32Array, bool]:
    """Combinations of legal cells, int32[n, varied], and whether these are all."""
    cells = [np.flatnonzero(query.space.legal[f]) for f in varied]
    complete = True
    while math.prod(map(len, cells)) > MOST_COMBINATIONS:
        complete = False
        longest = max(range(len(cells)), key=lambda i: len(cells[i]))
        half = len(cells[longest]) // 2
        cells[longest] = cells[longest][np.linspace(0, len(cells[longest]) - 1, half, dtype=np.int64)]
    grids = np.meshgrid(*cells, indexing="ij")
    return np.stack([grid.ravel() for grid in grids], axis=1).astype(np.int32), complete


def _tried(cells: Int32Array, varied: Sequence[int], combinations: Int32Array) -> Int32Array:
    """Every row as it is, and then with each combination, int32[rows, 1 + combinations, features]."""
    tried = np.repeat(cells[:, None, :], 1 + len(combinations), axis=1)
    tried[:, 1:, list(varied)] = combinations
    return np.ascontiguousarray(tried)


def _inputs(query: Query, cells: Int32Array) -> ManyInputs:
    """The same inputs for both points. Nothing reads values."""
    scores = {model: sums_of_cells(query, model, cells) for model in {point.model for point in query.points}}
    of_points = tuple(scores[point.model] for point in query.points)
    both = np.broadcast_to(cells, (len(query.points), *cells.shape))
    return ManyInputs(np.empty((len(query.points), len(cells), 0)), both, of_points)


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
