"""Answers from a table's rows.

A row that is already a witness is returned as the answer; promising rows seed the search.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Protocol
from weakref import WeakKeyDictionary

import numpy as np

from treesens.binder.file import ResolvedQuestion
from treesens.builtin import has_extensions, service
from treesens.compiler.base.arrays import BoolArray, FloatArray, Int32Array, Int64Array, frozen
from treesens.compiler.base.dyadic import Unit
from treesens.compiler.query.domain import allowed_values
from treesens.compiler.query.evaluate import Inputs
from treesens.compiler.query.query import AtLeast, Query, Space
from treesens.compiler.result import Result
from treesens.data.flips import MOST_COMBINATIONS, FlipQuestion, Flips, flip_question, flips, with_cells
from treesens.data.rows import cells_of_rows
from treesens.solve.bounds import ContradictoryBound, consistent, value_of
from treesens.solve.conclude import conclude_found, leave_open
from treesens.solve.options import Options
from treesens.values.verify import Witness, verify_values

MOST_ROWS = 50_000
"""Number of rows tried before a search; longer tables are sampled evenly."""
MOST_WALKS = 25_000_000
"""Tree walks (rows x combinations of sensitive cells x trees) before a search: a second or two on one core."""

_FEW_ROWS = 2_000
_TRIED = 20
_HINTS = 32


def table_in_play(query: ResolvedQuestion) -> tuple[str, FloatArray] | None:
    """The table with which an answer is compared: the first table that the question or its domains use."""
    name = next(iter([*query.tables, *query.rows]), None)
    return None if name is None else (name, query.rows[name])


_LEGAL: WeakKeyDictionary[Space, tuple[FloatArray, Int64Array]] = WeakKeyDictionary()
"""For each space, the last table used, with its legal rows: studies ask many questions about one table."""


def legal_rows(query: Query, rows: FloatArray) -> Int64Array:
    """The indices of the rows that are legal inputs: all values are legal, and a value is missing only if allowed."""
    kept = _LEGAL.get(query.space)
    if kept is not None and kept[0] is rows:
        return kept[1]
    found = frozen(_legal_rows(query, rows))
    if not rows.flags.writeable:
        _LEGAL[query.space] = rows, found
    return found


def _legal_rows(query: Query, rows: FloatArray) -> Int64Array:
    good = np.ones(len(rows), bool)
    for f, (domain, grid) in enumerate(zip(query.space.domains, query.space.grid, strict=True)):
        values, place = np.unique(grid.number_type.cast(rows[:, f]), return_inverse=True, equal_nan=True)
        good &= allowed_values(domain, values)[place]
    return np.flatnonzero(good)


def sweep_rows(query: Query, question: FlipQuestion, rows: FloatArray, *, walks: int) -> Flips:
    """The extremes of the legal rows over the combinations of the sensitive features' cells, with at most `walks` tree walks.

    Only evenly spread rows (at most `MOST_ROWS`) are used and, if even few rows are too many, only evenly spread combinations.
    """
    index, model, legal = legal_rows(query, rows), query.models[question.model], query.space.legal
    # The feature with the most cells is swept in one walk.
    wanted = min(math.prod(sorted(int(legal[f].sum()) for f in question.features)[:-1]), MOST_COMBINATIONS)
    most = min(MOST_ROWS, max(_FEW_ROWS, walks // (wanted * max(1, model.n_trees))))
    if len(index) > most:
        index = index[np.linspace(0, len(index) - 1, most, dtype=np.int64)]
    limit = max(1, min(wanted, walks // (max(1, len(index)) * max(1, model.n_trees))))
    cells = cells_of_rows(query.space.grid, rows[index])
    return flips(model, cells, question.features, legal, index=index, output=question.output, limit=limit)


class EventRows:
    """A table's rows for a question about two points: rows that fit one point, rows that flip, and their partners.

    `found` holds the extremes of each row over all values of the varied features. `index`, int64[rows], holds the legal rows'
    numbers in `table`, float64[.., features]; `complete` is False if rows that flip may have been missed.
    """

    def __init__(self, query: Query, question: FlipQuestion, found: Flips, table: FloatArray) -> None:
        self.query, self.question, self.found, self.table = query, question, found, table
        self.index, self.complete = found.index, found.complete

    def __len__(self) -> int:
        return len(self.index)

    def order(self) -> Int64Array:
        """Positions of the rows that flip: first the rows that already fit a point, then those with the largest margins."""
        question, found = self.question, self.found
        places = np.flatnonzero(question.flipping(found))
        clear = question.clearance(found)[places]
        if question.high is None or question.low is None:
            return places[np.argsort(-clear, kind="stable")]
        own = (question.falling(found) | question.rising(found))[places]
        return places[np.lexsort((-clear, ~own))]

    def sides(self) -> tuple[BoolArray, BoolArray] | None:
        """Masks, bool[rows]: rows that, unchanged, fit the first or second point; None if only pairs can be judged."""
        question = self.question
        if question.high is None or question.low is None:
            return None
        falls, rises = question.falling(self.found), question.rising(self.found)
        return (falls, rises) if question.upper == 0 else (rises, falls)

    def witness(self, options: Options) -> tuple[int, Witness] | None:
        """The first row, among the best, that satisfies every constraint, with its row number. If both points must be typical,
        the pairs closest to typical inputs come first.
        """
        for place in self._least_untypical(self.order())[:_TRIED]:
            verdict = verify_values(self.query, self.pair(int(place)), library_predict=options.library_predict)
            if isinstance(verdict, Witness):
                return int(self.index[place]), verdict
        return None

    def pair(self, place: int) -> FloatArray:
        """A row with the varied features' values for each of the two points, float64[2, features]: the cells of the extremes
        give the values, and the row itself is one of the points if its own score is on one side.
        """
        question, found, space = self.question, self.found, self.query.space
        row = space.grid[0].number_type.cast(self.table[self.index[place]])
        values = np.array([row, row])
        falls, rises = bool(question.falling(found)[place]), bool(question.rising(found)[place])
        ends = (
            (question.upper, found.highest_cells, not falls),
            (question.lower, found.lowest_cells, falls or not rises),
        )
        for point, cells, moves in ends:
            if moves:
                values[point] = with_cells(space, row[None], question.features, cells[place, None])[0]
        return values

    def hints(self) -> Int32Array:
        """Rows that flip come first, then the rows with the smallest deficit."""
        question, found = self.question, self.found
        places = np.argsort(-question.clearance(found), kind="stable")
        flipping = np.count_nonzero(question.flipping(found))
        first = self._least_untypical(places[:flipping])
        places = np.concatenate((first, places[flipping:]))[:_HINTS]
        cells = cells_of_rows(self.query.space.grid, self.table[self.index[places]])
        return question.cells_of_pairs(cells, found.highest_cells[places], found.lowest_cells[places])

    def _least_untypical(self, places: Int64Array) -> Int64Array:
        """The positions in the order of their pairs' typicality deficit; unchanged without typicality constraints."""
        typical = [c for c in self.query.constraints if isinstance(c, AtLeast) and c.form.forests and not c.form.scores]
        if not typical or len(places) == 0:
            return places
        question, found = self.question, self.found
        # A row that lies on one side unchanged is kept there.
        rows = cells_of_rows(self.query.space.grid, self.table[self.index[places]])
        own = rows[:, list(question.features)]
        falls = question.falling(found)[places, None]
        rises = question.rising(found)[places, None] & ~falls
        high, low = np.where(falls, own, found.highest_cells[places]), np.where(rises, own, found.lowest_cells[places])
        cells = question.cells_of_pairs(rows, high, low)
        lacking = np.zeros(len(places))
        for row in typical:
            value = np.zeros(len(places))
            for term in row.form.forests:
                scores = term.scores(np.ascontiguousarray(cells[:, term.point]))
                value += term.coefficient * Unit(term.shift).doubles(scores)
            lacking += np.maximum(0.0, float(row.bound.enclose(64)[0]) - value)
        return places[np.argsort(lacking, kind="stable")]


def among_rows(query: ResolvedQuestion, options: Options) -> tuple[Result | None, Options]:
    """An answer that is itself a row; otherwise None, and options with rows as hints if the question uses a table."""
    table, question = table_in_play(query), flip_question(query.query)
    if table is None or question is None:
        return None, options
    found = sweep_rows(query.query, question, table[1], walks=MOST_WALKS)
    if len(found) == 0:
        return None, options
    rows = EventRows(query.query, question, found, table[1])
    pair = rows.witness(options) if query.query.objective is None else None
    if pair is not None:
        return conclude_found(leave_open(query.name, witness=pair[1], backend="rows")), options
    return None, replace(options, hints=rows.hints())


class Locations(Protocol):
    """The interface of the service "location" (`builtin.SERVICES`)."""

    def locate(
        self, query: ResolvedQuestion, table: tuple[str, FloatArray] | None, result: Result, options: Options
    ) -> Result:
        """An answer with its region and the nearest row of `table`."""


def locate(query: ResolvedQuestion, result: Result, options: Options) -> Result:
    """The answer with its region, its nearest row if the extension is installed, and the shown point's objective."""
    if has_extensions():
        locations: Locations = service("location")
        result = locations.locate(query, table_in_play(query), result, options)
    return recompute_objective(query.query, result)


def recompute_objective(query: Query, result: Result) -> Result:
    """The answer with the objective of the displayed point; `unknown` if the bound contradicts this value."""
    goal, objective = query.objective, result.objective
    if goal is None or objective is None or result.witness is None:
        return result
    value = objective.value
    if goal.nearest is None:
        point = Inputs(result.witness.values, result.witness.cells, result.witness.exact)
        value = value_of(goal, point)
    try:
        bound = objective.bound
        if bound is not None:
            bound = consistent(bound, value, maximize=goal.maximize, exact=False, who=result.backend)
    except ContradictoryBound as error:
        return leave_open(query.name, error.reason, backend=result.backend, attempts=result.attempts)
    return replace(result, objective=replace(objective, value=value, bound=bound))
