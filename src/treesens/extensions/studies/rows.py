"""Which rows of a table are on which side of an event, which flip, and with which partner.

A row flips if, with its other features as they are, one value of the varied features makes it the first point of the event and
another one the second. One score that passes two cut-offs is followed through the cells of a feature by the engine
(`data/flips.py`). The lead of a class over all others is the least of several differences; for it, and for rules between
features, every combination of cells of the varied features is tried (`joint_flips`). Sides that are no bounds of scores are
judged by exact arithmetic for every combination (`CombinedRows`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product

import numpy as np

from treesens._engine import SCORE_BITS
from treesens.compiler.base.arrays import BoolArray, FloatArray, Int32Array, Int64Array
from treesens.compiler.base.budget import Budget
from treesens.compiler.base.dyadic import Unit, to_scaled
from treesens.compiler.base.kept import Kept
from treesens.compiler.model.cells import CellEnsemble
from treesens.compiler.model.scores import BEYOND, UNTRIED
from treesens.compiler.query.bounds import LogRational
from treesens.compiler.query.dependencies import decided_by_cells, points_in
from treesens.compiler.query.query import Constraint, DecidedPoint, OneHot, Query, SameExcept
from treesens.data.flips import MOST_COMBINATIONS, FlipQuestion, Flips, flip_question, flips, swing_bound, thinned
from treesens.data.rows import cells_of_rows
from treesens.extensions.answers.evaluate_rows import (
    ManyInputs,
    holds_everywhere,
    holds_on_rows,
    many_inputs,
    sums_of_cells,
)
from treesens.extensions.studies.decisions import Between, Decision
from treesens.solve.tasks.data_rows import EventRows, ScoreRows, legal_rows

WALKS_PER_SECOND = 60_000_000
"""Walks through a tree for every second of the limit: several times those of a sweep of all rows."""
LEAST_COMBINATIONS = 16
"""Combinations of values of several features that are tried for every row in any case."""
_CHUNK = 4096
_INPUTS = 1 << 14
"""Inputs that are judged between two looks at the clock."""


@dataclass
class ScoreSweep:
    """The extremes of the scores of a decision on rows float64[rows, features] of a table, for one set of features.

    A decision between classes has two sweeps: at a lead of 0 ties count as the library breaks them.
    """

    decision: Decision
    query: Query
    table: FloatArray
    seconds: float

    def of(self, query: Query, size: Fraction) -> ScoreRows:
        """The rows for the question about a size."""
        return ScoreRows(query, self.shape(query, size), self.found(size), self.table)

    def found(self, size: Fraction) -> Flips:
        """The extremes of all rows for a size."""
        return self._at_zero if isinstance(self.decision, Between) and size == 0 else self._plain

    def widest(self, query: Query, size: Fraction) -> ScoreRows:
        """The rows for the question about any swing at all."""
        shape = FlipQuestion(0, 1, self.features, 0, self.decision.output, None, None, LogRational(), True)
        return ScoreRows(query, shape, self.found(size), self.table)

    @cached_property
    def _plain(self) -> Flips:
        return self._swept(ties=False)

    @cached_property
    def _at_zero(self) -> Flips:
        return self._swept(ties=True)

    @cached_property
    def features(self) -> tuple[int, ...]:
        """The features that vary."""
        return varied_of(self.query)

    def shape(self, query: Query, size: Fraction) -> FlipQuestion:
        """The question about a size as one about the extremes of rows."""
        if isinstance(self.decision, Between):
            lead = LogRational(size * self.query.models[0].ensemble.average)
            return FlipQuestion(
                0, 1, self.features, 0, self.decision.first, lead, -lead, None, not rules_of(self.query)
            )
        found = flip_question(query)
        assert found is not None
        return found

    def swing_bound(self) -> float:
        """A bound on all swings, from the leaves alone."""
        model = self.query.models[0]
        if isinstance(self.decision, Between):
            exact = two_class_swing(model, self.features, *self.decision.classes)
            return math.nextafter(float(exact), math.inf)
        return swing_bound(model, self.features, self.decision.output)

    def _swept(self, *, ties: bool) -> Flips:
        model, index = self.query.models[0], legal_rows(self.query, self.table)
        cells = cells_of_rows(self.query.space.grid, self.table[index])
        walks = int(WALKS_PER_SECOND * self.seconds)
        if isinstance(self.decision, Between) or rules_of(self.query):
            outputs = self.decision.classes if isinstance(self.decision, Between) else (self.decision.output,)
            return joint_flips(self.query, model, cells, self.features, outputs, index=index, walks=walks, ties=ties)
        most = walks / (max(1, len(self.table)) * max(1, model.n_trees))
        limit = max(LEAST_COMBINATIONS, min(MOST_COMBINATIONS, int(most)))
        output, legal = self.decision.output, self.query.space.legal
        return flips(model, cells, self.features, legal, index=index, output=output, limit=limit)


def varied_of(query: Query) -> tuple[int, ...]:
    """The features in which the two points may differ."""
    return tuple(sorted(frozenset.intersection(*(c.varied for c in query.constraints if isinstance(c, SameExcept)))))


def rules_of(query: Query) -> list[OneHot]:
    """The `onehot` rules of the first point."""
    return [c for c in query.constraints if isinstance(c, OneHot) and c.point == 0]


Sides = Callable[[Int64Array], tuple[Int64Array, Int64Array]]
"""From all scores int64[rows, outputs] to the number that is high at one point, and the one that is low at the other."""


@dataclass(frozen=True, eq=False)
class Scores:
    """The values of leaves by output, int64[leaves, outputs] in units of 2**-shift, and the base of each output.

    Values are rounded down where they are too long: an exact score lies in [v, v + slack].
    """

    leaves: Int64Array
    base: Int64Array
    shift: int
    slack: int


_SCORES: Kept[Scores] = Kept(4, lambda scores: scores.leaves.nbytes)


def scores_of_leaves(model: CellEnsemble) -> Scores:
    """All outputs in one unit, before averaging."""
    return _SCORES.of((model,), None, lambda: _scores_of_leaves(model))


def _scores_of_leaves(model: CellEnsemble) -> Scores:
    ensemble = model.ensemble
    scaled, base = ensemble.scaled_contributions, to_scaled(ensemble.base)
    shift = max(scaled.shift, base.shift)
    width = scaled.values.shape[1]
    owner = ensemble.tree_output[ensemble.leaf_tree]
    exact = np.zeros((ensemble.n_leaves, ensemble.n_outputs), object)
    for output in range(ensemble.n_outputs):
        mine = np.flatnonzero((owner == output) | (owner == -1))
        column = scaled.values[mine, output if width > 1 else 0]
        exact[mine, output] = [int(v) << (shift - scaled.shift) for v in column.tolist()]
    bases = [int(v) * ensemble.average << (shift - base.shift) for v in base.values.tolist()]
    most = max(map(abs, exact.ravel().tolist()), default=0) * (ensemble.n_trees + 1) + max(map(abs, bases), default=0)
    # The lead of one score over another one decides.
    drop = max(0, most.bit_length() - (SCORE_BITS - 1))
    leaves = np.array([v >> drop for v in exact.ravel().tolist()], np.int64).reshape(exact.shape)
    slack = 0 if drop == 0 else ensemble.n_trees + 1
    return Scores(leaves, np.array([v >> drop for v in bases], np.int64), shift - drop, slack)


def leads(first: int, second: int, slack: int, *, ties: bool) -> Sides:
    """By how much each of two classes is ahead of every other one; the second with its sign turned, since it has to be low.

    With `ties` a lead of 0 suffices for the class: of several best classes a library predicts the first one.
    """

    def lead(scores: Int64Array, wanted: int) -> Int64Array:
        # An integer greater than another one is so by a unit.
        behind = scores + (np.arange(scores.shape[1]) < wanted) * ties
        behind[:, wanted] = -BEYOND
        return np.asarray(scores[:, wanted] - behind.max(axis=1) - slack)

    return lambda scores: (lead(scores, first), -lead(scores, second))


def joint_flips(
    query: Query,
    model: CellEnsemble,
    cells: Int32Array,
    features: Sequence[int],
    outputs: tuple[int, ...],
    *,
    index: Int64Array,
    walks: int,
    ties: bool = False,
) -> Flips:
    """Sweeps rows of cells int32[rows, features of the grid] over the legal cells of `features`, as `flips` does.

    Of one output its score is followed, of two the lead of the one class and that of the other (see `leads`).

    Rows and combinations that break a `onehot` of the question do not count. About `walks` walks through a tree are made: of
    evenly spread combinations if all are too many.
    """
    scores, rules = scores_of_leaves(model), rules_of(query)
    sides: Sides = lambda found: (found[:, outputs[0]], found[:, outputs[0]])  # noqa: E731
    if len(outputs) == 2:
        sides = leads(*outputs, scores.slack, ties=ties)
    inside = _obeys(rules, cells)
    cells, index = cells[inside], index[inside]
    fixed, asking = _trees_about(model, features)
    known = _add_up(model, scores, cells, fixed) + scores.base
    cells_of = [np.flatnonzero(query.space.legal[f]) for f in features]
    options, complete = thinned(cells_of, max(2, walks / max(1, len(cells) * max(1, len(asking)))), least=2)
    high, low = np.full(len(cells), -UNTRIED), np.full(len(cells), UNTRIED)
    high_cells, low_cells = (np.zeros((len(cells), len(features)), np.int32) for _ in range(2))
    work = np.ascontiguousarray(cells, np.int32).copy()
    for combination in product(*options):
        work[:, list(features)] = combination
        upper, lower = sides(known + _add_up(model, scores, work, asking))
        legal = _obeys(rules, work)
        better, worse = legal & (upper > high), legal & (lower < low)
        high[better], low[worse] = upper[better], lower[worse]
        high_cells[better], low_cells[worse] = combination, combination
    own, own_low = sides(known + _add_up(model, scores, cells, asking))
    slack = scores.slack if len(outputs) == 1 else 0  # of a lead it is taken off already
    return Flips(tuple(features), index, high, low, high_cells, low_cells, own, scores.shift, slack, complete, own_low)


def _trees_about(model: CellEnsemble, features: Sequence[int]) -> tuple[Int32Array, Int32Array]:
    """The numbers of trees that do not split on the features, and of those that do."""
    ensemble = model.ensemble
    asks = np.zeros(model.n_trees, bool)
    asks[ensemble.node_tree[np.isin(ensemble.node_feature, list(features))]] = True
    return np.flatnonzero(~asks).astype(np.int32), np.flatnonzero(asks).astype(np.int32)


def _add_up(model: CellEnsemble, scores: Scores, cells: Int32Array, trees: Int32Array) -> Int64Array:
    """What some trees add to the scores of rows of cells, int64[rows, outputs]."""
    result = np.zeros((len(cells), scores.leaves.shape[1]), np.int64)
    for start in range(0, len(cells) if len(trees) else 0, _CHUNK):
        part = np.ascontiguousarray(cells[start : start + _CHUNK])
        reached = np.empty((len(part), len(trees)), np.int32)
        model.engine.reach_leaves(part, reached, trees)
        for output in range(result.shape[1]):
            result[start : start + _CHUNK, output] = scores.leaves[reached, output].sum(axis=1)
    return result


def _obeys(rules: Sequence[OneHot], cells: Int32Array) -> BoolArray:
    """Rows of cells that have exactly one of the features of every rule, bool[rows]."""
    good = np.ones(len(cells), bool)
    for rule in rules:
        ones = sum(member.mask[cells[:, member.feature]].astype(np.int64) for member in rule.members)
        good &= np.asarray(ones == 1)
    return good


def two_class_swing(model: CellEnsemble, features: Sequence[int], first: int, second: int) -> Fraction:
    """No change of `features` alone moves the difference of two scores by more: the ranges of trees that split on them."""
    scores = scores_of_leaves(model)
    values = scores.leaves[:, first] - scores.leaves[:, second]
    start = np.searchsorted(model.ensemble.leaf_tree, np.arange(model.n_trees))
    ranges = np.maximum.reduceat(values, start) - np.minimum.reduceat(values, start)
    units = int(ranges[_trees_about(model, features)[1]].sum()) + 2 * scores.slack
    return Unit(scores.shift).value(units) / model.ensemble.average


class CombinedRows(EventRows):
    """Rows for questions whose constraints are of one point each: every combination of cells, in exact arithmetic.

    `reached` bool[points, rows] says which rows can be which point, `at` int64[points, rows] by which of the `combinations`
    int32[n, varied], `own` bool[points, rows] which are it as they are. Rows are tried until the time is over.
    """

    def __init__(self, query: Query, table: FloatArray, budget: Budget) -> None:
        super().__init__(query, table)
        self.varied, self.index = varied_of(query), legal_rows(query, table)
        options, self.complete = thinned([np.flatnonzero(query.space.legal[f]) for f in self.varied], MOST_COMBINATIONS)
        grids = np.meshgrid(*options, indexing="ij")
        self.combinations: Int32Array = np.stack([grid.ravel() for grid in grids], axis=1).astype(np.int32)
        shape = (2, len(self.index))
        self.reached, self.own, self.at = np.zeros(shape, bool), np.zeros(shape, bool), np.zeros(shape, np.int64)
        sides = [side_of(query, point) for point in (0, 1)]
        if any(side is None for side in sides):
            self.complete = False
            return
        cells = cells_of_rows(query.space.grid, table[self.index])
        step = max(1, _INPUTS // (len(self.combinations) + 1))
        for start in range(0, len(self.index), step):
            if budget.over:
                self.complete = False
                break
            self._try(slice(start, start + step), cells, [side for side in sides if side is not None])

    def _try(self, part: slice, cells: Int32Array, sides: Sequence[Sequence[Constraint]]) -> None:
        """Every row of a part as it is, and then with each combination."""
        tried = np.repeat(cells[part, None, :], 1 + len(self.combinations), axis=1)
        tried[:, 1:, list(self.varied)] = self.combinations
        flat = np.ascontiguousarray(tried).reshape(-1, tried.shape[2])
        # The same inputs for both points. Nothing reads values.
        query, both = self.query, np.broadcast_to(flat, (2, *flat.shape))
        scores = {model: sums_of_cells(query, model, flat) for model in {point.model for point in query.points}}
        x = ManyInputs(np.empty((2, len(flat), 0)), both, tuple(scores[point.model] for point in query.points))
        for point, side in enumerate(sides):
            held = holds_everywhere(side, x).reshape(tried.shape[:2])
            self.own[point, part] = held[:, 0]
            self.reached[point, part], self.at[point, part] = held[:, 1:].any(axis=1), held[:, 1:].argmax(axis=1)

    def order(self) -> Int64Array:
        """By whether a row is one of the points as it is."""
        places = np.flatnonzero(self.reached.all(axis=0))
        return places[np.argsort(~self.own[:, places].any(axis=0), kind="stable")]

    def sides(self) -> tuple[BoolArray, BoolArray]:
        """By exact arithmetic."""
        return self.own[0], self.own[1]

    def pair(self, place: int) -> FloatArray:
        """With the first combination that makes the row each point, unless it is that point as it is."""
        row = self.row(place)
        values = np.array([row, row])
        for point in (0, 1):
            if not self.own[point, place]:
                for f, cell in zip(self.varied, self.combinations[self.at[point, place]], strict=True):
                    values[point, f] = self.value(f, int(cell), row)
        return values


def side_of(query: Query, point: int) -> list[Constraint] | None:
    """The constraints of one point; None if cells do not decide them, or if some constraint relates both points."""
    mine = [c for c in query.constraints if not isinstance(c, SameExcept)]
    if not all(decided_by_cells(c) and len(points_in(c)) <= 1 for c in mine):
        return None
    # A constraint without points, such as a case that nothing meets, is true of both or of none.
    return [c for c in mine if points_in(c) <= {point}]


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
