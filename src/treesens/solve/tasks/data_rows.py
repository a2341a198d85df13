"""Uses the rows of a table.

A row that is already a witness is the answer, promising rows seed the search, and a witness is moved near its nearest row.
"""

from __future__ import annotations

from dataclasses import replace
from weakref import WeakKeyDictionary

import numpy as np

from treesens.binder.file import ResolvedQuestion
from treesens.compiler.base.arrays import FloatArray, Int32Array, Int64Array, frozen
from treesens.compiler.base.dyadic import Unit
from treesens.compiler.query.domain import allowed_values, pick_value
from treesens.compiler.query.evaluate import Inputs, inputs_of, objective_form_value
from treesens.compiler.query.query import AtLeast, Query, Space
from treesens.compiler.result import Result
from treesens.data.flips import MOST_COMBINATIONS, FlipQuestion, Flips, combinations_of, flip_question, flips
from treesens.data.nearest_row import cells_near, nearest_row
from treesens.data.regions import RegionFinder
from treesens.data.rows import cells_of_rows
from treesens.solve.bounds import ContradictoryBound, consistent, value_of
from treesens.solve.conclude import conclude_found, leave_open
from treesens.solve.options import Options
from treesens.values.verify import Witness, verify_cells, verify_values

MOST_ROWS = 50_000
"""Rows of a table that are tried before a search; of a longer one evenly spread ones."""

MOST_WALKS = 25_000_000
"""Walks through a tree (rows x combinations of sensitive cells x trees) before a search: a second or two on one core."""

_FEW_ROWS = 2_000

_TRIED = 20
_HINTS = 32


def table_in_play(query: ResolvedQuestion) -> tuple[str, FloatArray] | None:
    """The table that an answer is compared with: the first that the question uses, or that its domains come from."""
    name = next(iter([*query.tables, *query.rows]), None)
    return None if name is None else (name, query.rows[name])


_LEGAL: WeakKeyDictionary[Space, tuple[FloatArray, Int64Array]] = WeakKeyDictionary()
"""Of every space the table that was looked at last, with its legal rows: studies ask many questions about one table."""


def legal_rows(query: Query, rows: FloatArray) -> Int64Array:
    """The numbers of the rows that are inputs of the question: all values legal, none missing if that is not allowed."""
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


def sweep_rows(
    query: Query,
    question: FlipQuestion,
    rows: FloatArray,
    *,
    walks: int | None = None,
    combinations: int = MOST_COMBINATIONS,
) -> Flips:
    """The extremes of all legal rows over all combinations of cells of the sensitive features, up to `combinations`.

    With `walks` at most so many walks through a tree are made: of evenly spread rows (`MOST_ROWS` of them at most) and, where
    even few rows are too much, of evenly spread combinations.
    """
    index = legal_rows(query, rows)
    model = query.models[question.model]
    if walks is not None:
        wanted = min(combinations_of(question.features, query.space.legal), MOST_COMBINATIONS)
        most = min(MOST_ROWS, max(_FEW_ROWS, walks // (wanted * max(1, model.n_trees))))
        if len(index) > most:
            index = index[np.linspace(0, len(index) - 1, most, dtype=np.int64)]
        combinations = max(1, min(wanted, walks // (max(1, len(index)) * max(1, model.n_trees))))
    cells = cells_of_rows(query.space.grid, rows[index])
    legal = query.space.legal
    return flips(model, cells, question.features, legal, index=index, output=question.output, limit=combinations)


def pair_of_row(query: Query, question: FlipQuestion, found: Flips, place: int, row: FloatArray) -> FloatArray:
    """A row with the values of the sensitive features that reach its extremes, float64[2, features].

    The row itself is one of the two points where its own score is on one side already.
    """
    values = np.array([row, row])
    falls, rises = bool(question.falling(found)[place]), bool(question.rising(found)[place])
    for column, f in enumerate(question.features):
        domain, grid = query.space.domains[f], query.space.grid[f]
        near = None if np.isnan(row[f]) else float(row[f])
        if not falls:
            values[question.upper, f] = pick_value(domain, grid, int(found.highest_cells[place, column]), near)
        if falls or not rises:
            values[question.lower, f] = pick_value(domain, grid, int(found.lowest_cells[place, column]), near)
    return values


def order_of_rows(question: FlipQuestion, found: Flips) -> Int64Array:
    """Rows that flip, the best first: those that are on one side as they are, then the clearest."""
    places = np.flatnonzero(question.flipping(found))
    clear = question.clearance(found)[places]
    if question.high is None or question.low is None:
        return places[np.argsort(-clear, kind="stable")]
    own = (question.falling(found) | question.rising(found))[places]
    return places[np.lexsort((-clear, ~own))]


def witness_among_rows(
    query: Query, question: FlipQuestion, found: Flips, rows: FloatArray, options: Options
) -> tuple[int, Witness] | None:
    """The first of the best rows that passes every constraint, with the number of the row."""
    order = least_untypical(query, question, found, order_of_rows(question, found), rows)
    for place in order[:_TRIED]:
        index = int(found.index[place])
        row = query.space.grid[0].number_type.cast(rows[index])
        verdict = verify_values(
            query, pair_of_row(query, question, found, int(place), row), library_predict=options.library_predict
        )
        if isinstance(verdict, Witness):
            return index, verdict
    return None


def hints_of(query: Query, question: FlipQuestion, found: Flips, rows: FloatArray) -> Int32Array:
    """Cells int32[hints, points, features] of the rows that come closest to being an answer."""
    places = np.argsort(-question.clearance(found), kind="stable")
    flipping = np.count_nonzero(question.flipping(found))
    first = least_untypical(query, question, found, places[:flipping], rows)
    places = np.concatenate((first, places[flipping:]))[:_HINTS]
    cells = cells_of_rows(query.space.grid, rows[found.index[places]])
    result = np.repeat(cells[:, None, :], 2, axis=1)
    result[:, question.upper, list(question.features)] = found.highest_cells[places]
    result[:, question.lower, list(question.features)] = found.lowest_cells[places]
    return result.astype(np.int32)


def among_rows(query: ResolvedQuestion, options: Options) -> tuple[Result | None, Options]:
    """An answer that is a row itself, or None and options with hints, if a table is in play."""
    table, question = table_in_play(query), flip_question(query.query)
    if table is None or question is None:
        return None, options
    found = sweep_rows(query.query, question, table[1], walks=MOST_WALKS)
    if len(found) == 0:
        return None, options
    if query.query.objective is None:
        pair = witness_among_rows(query.query, question, found, table[1], options)
        if pair is not None:
            return conclude_found(leave_open(query.name, witness=pair[1], backend="rows")), options
    return None, replace(options, hints=hints_of(query.query, question, found, table[1]))


def locate(query: ResolvedQuestion, result: Result, options: Options) -> Result:
    """A found answer with its region and the nearest row, and with values near that row.

    Without an objective the point also moves to the cells of the region that are nearest to the row.
    """
    table, witness = table_in_play(query), result.witness
    if witness is None:
        return result
    typed = query.query
    if table is None and not options.regions:
        return recompute_objective(typed, result)
    region = RegionFinder(typed).region(witness.cells)
    if table is None:
        return recompute_objective(typed, replace(result, region=region))
    name, rows = table
    nearest = nearest_row(typed, name, rows, witness.cells, region)
    if result.backend != "rows" and _movable(typed):
        row = rows[nearest.index]
        cells = witness.cells
        if region is not None and typed.objective is None:
            cells = cells_near(typed, region, cells, row)
        moved = verify_cells(typed, cells, near=row, library_predict=options.library_predict)
        if isinstance(moved, Witness) and not worse(typed, moved, witness):
            witness = moved
            nearest = replace(
                nearest, point_distance=nearest_row(typed, name, rows[nearest.index :][:1], moved.cells, None).distance
            )
    return recompute_objective(typed, replace(result, witness=witness, region=region, nearest=nearest))


def _movable(query: Query) -> bool:
    """True if a point may have values to choose freely: an objective over all of them, or to the nearest row, has."""
    goal = query.objective
    if goal is None:
        return True
    settled = {place for term in goal.values for place in term.places}
    return goal.nearest is None and len(settled) < len(query.points) * len(query.space.names)


def worse(query: Query, moved: Witness, witness: Witness) -> bool:
    """True if the objective loses by moving."""
    goal = query.objective
    if goal is None or goal.nearest is not None:
        return False
    before, after = (objective_form_value(goal, inputs_of(query, w.values)) for w in (witness, moved))
    return after < before if goal.maximize else after > before


def recompute_objective(query: Query, result: Result) -> Result:
    """The answer with the objective of the very point that it shows; `unknown` if its bound contradicts this value."""
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


def pair_cells(query: Query, question: FlipQuestion, found: Flips, places: Int64Array, rows: FloatArray) -> Int32Array:
    """The cells int32[places, points, features] of rows with the sensitive cells that reach their extremes; a row that is on
    one side as it is stays as it is there.
    """
    cells = cells_of_rows(query.space.grid, rows[found.index[places]])
    result = np.repeat(cells[:, None, :], 2, axis=1)
    features = list(question.features)
    falls = question.falling(found)[places, None]
    rises = question.rising(found)[places, None] & ~falls
    own = cells[:, features]
    result[:, question.upper, features] = np.where(falls, own, found.highest_cells[places])
    result[:, question.lower, features] = np.where(rises, own, found.lowest_cells[places])
    return result.astype(np.int32)


def least_untypical(
    query: Query, question: FlipQuestion, found: Flips, places: Int64Array, rows: FloatArray
) -> Int64Array:
    """The places in the order of what their pairs lack to be typical, and otherwise as they are; only of constraints that hold
    in any case.
    """
    typical_rows = [c for c in query.constraints if isinstance(c, AtLeast) and c.form.forests and not c.form.scores]
    if not typical_rows or len(places) == 0:
        return places
    cells = pair_cells(query, question, found, places, rows)
    lacking = np.zeros(len(places))
    for row in typical_rows:
        value = np.zeros(len(places))
        for term in row.form.forests:
            scores = term.scores(np.ascontiguousarray(cells[:, term.point]))
            value += term.coefficient * Unit(term.shift).doubles(scores)
        lacking += np.maximum(0.0, float(row.bound.enclose(64)[0]) - value)
    return places[np.argsort(lacking, kind="stable")]
