"""Finds the rows of a table on each side of an event, the rows that flip, and the other point of their pairs.

A row flips if, with its other features fixed, one value of the varied features makes it the first point of the event and
another value the second point. If the sides are two cut-offs of one score, the engine computes the score for all cells of a
feature (`data/flips.py`). For leads of classes, which are minima of several differences, and for rules between features, every
combination of cells of the varied features is tried (`joint_flips`). If sides are not bounds on scores, exact arithmetic
decides every combination (`CombinedRows`).
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
"""Number of walks through a tree for every second of the time limit: several times those of a sweep over all rows."""
LEAST_COMBINATIONS = 16
"""Minimum number of combinations of values of several features that are tried for every row."""
_CHUNK = 4096
_INPUTS = 1 << 14
"""Inputs that are evaluated between two checks of the clock."""


@dataclass
class ScoreSweep:
    """The highest and lowest scores of each row of `table`, float64[rows, features], if a set of features varies.

    A decision between classes needs two sweeps, because ties at a lead of 0 are broken as in the library.
    """

    decision: Decision
    query: Query
    table: FloatArray
    seconds: float

    def of(self, query: Query, size: Fraction) -> ScoreRows:
        """The rows for the question with a gap of `size`."""
        return ScoreRows(query, self.shape(query, size), self.found(size), self.table)

    def found(self, size: Fraction) -> Flips:
        """The extreme scores of all rows for a gap of `size`."""
        return self._at_zero if isinstance(self.decision, Between) and size == 0 else self._plain

    def widest(self, query: Query, size: Fraction) -> ScoreRows:
        """The rows for the question about any swing."""
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
        """The varied features."""
        return varied_of(self.query)

    def shape(self, query: Query, size: Fraction) -> FlipQuestion:
        """The question with a gap of `size`, as a question about the extreme scores of rows."""
        if isinstance(self.decision, Between):
            lead = LogRational(size * self.query.models[0].ensemble.average)
            return FlipQuestion(
                0, 1, self.features, 0, self.decision.first, lead, -lead, None, not rules_of(self.query)
            )
        found = flip_question(query)
        assert found is not None
        return found

    def swing_bound(self) -> float:
        """A bound on all swings, computed from the leaves alone."""
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
    """The `onehot` rules about the first point."""
    return [c for c in query.constraints if isinstance(c, OneHot) and c.point == 0]


Sides = Callable[[Int64Array], tuple[Int64Array, Int64Array]]
"""Maps scores, int64[rows, outputs], to numbers that must be high at one point, and to those that must be low at the other."""


@dataclass(frozen=True, eq=False)
class Scores:
    """The leaf values by output, int64[leaves, outputs], in units of 2**-shift, and the base of each output.

    Values with too many bits are rounded down: for a sum v, the exact score lies in [v, v + slack].
    """

    leaves: Int64Array
    base: Int64Array
    shift: int
    slack: int


_SCORES: Kept[Scores] = Kept(4, lambda scores: scores.leaves.nbytes)


def scores_of_leaves(model: CellEnsemble) -> Scores:
    """The scores of all outputs in one unit, before averaging."""
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
    # The difference of two scores needs one more bit.
    drop = max(0, most.bit_length() - (SCORE_BITS - 1))
    leaves = np.array([v >> drop for v in exact.ravel().tolist()], np.int64).reshape(exact.shape)
    slack = 0 if drop == 0 else ensemble.n_trees + 1
    return Scores(leaves, np.array([v >> drop for v in bases], np.int64), shift - drop, slack)


def leads(first: int, second: int, slack: int, *, ties: bool) -> Sides:
    """The function from scores to the leads of two classes over all others; the second lead is negated, since it has to be low.

    With `ties`, a tie counts for the class that comes first, because libraries predict the first of several best classes.
    """

    def lead(scores: Int64Array, wanted: int) -> Int64Array:
        # Earlier classes win ties: as scores are integers, one more unit makes a tie a lead.
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
    """Sweeps the rows of `cells`, int32[rows, features of the grid], over the legal cells of `features`, as `flips` does.

    With one output, the sides are about its score; with two outputs, about the leads of the two classes (see `leads`).

    Rows and combinations that violate a `onehot` rule do not count. At most about `walks` walks through trees are made; if all
    combinations need more, evenly spread combinations are tried.
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
    slack = scores.slack if len(outputs) == 1 else 0  # leads have it subtracted already
    return Flips(tuple(features), index, high, low, high_cells, low_cells, own, scores.shift, slack, complete, own_low)


def _trees_about(model: CellEnsemble, features: Sequence[int]) -> tuple[Int32Array, Int32Array]:
    """The indices of trees that do not split on the features, and of trees that do."""
    ensemble = model.ensemble
    asks = np.zeros(model.n_trees, bool)
    asks[ensemble.node_tree[np.isin(ensemble.node_feature, list(features))]] = True
    return np.flatnonzero(~asks).astype(np.int32), np.flatnonzero(asks).astype(np.int32)


def _add_up(model: CellEnsemble, scores: Scores, cells: Int32Array, trees: Int32Array) -> Int64Array:
    """The contribution of some trees to the scores of each row of `cells`, int64[rows, outputs]."""
    result = np.zeros((len(cells), scores.leaves.shape[1]), np.int64)
    for start in range(0, len(cells) if len(trees) else 0, _CHUNK):
        part = np.ascontiguousarray(cells[start : start + _CHUNK])
        reached = np.empty((len(part), len(trees)), np.int32)
        model.engine.reach_leaves(part, reached, trees)
        for output in range(result.shape[1]):
            result[start : start + _CHUNK, output] = scores.leaves[reached, output].sum(axis=1)
    return result


def _obeys(rules: Sequence[OneHot], cells: Int32Array) -> BoolArray:
    """True for rows of `cells` that satisfy every rule (exactly one of its features is 1), bool[rows]."""
    good = np.ones(len(cells), bool)
    for rule in rules:
        ones = sum(member.mask[cells[:, member.feature]].astype(np.int64) for member in rule.members)
        good &= np.asarray(ones == 1)
    return good


def two_class_swing(model: CellEnsemble, features: Sequence[int], first: int, second: int) -> Fraction:
    """A bound on the change of a difference of two scores by `features` alone: the sum of the ranges of their trees."""
    scores = scores_of_leaves(model)
    values = scores.leaves[:, first] - scores.leaves[:, second]
    start = np.searchsorted(model.ensemble.leaf_tree, np.arange(model.n_trees))
    ranges = np.maximum.reduceat(values, start) - np.minimum.reduceat(values, start)
    units = int(ranges[_trees_about(model, features)[1]].sum()) + 2 * scores.slack
    return Unit(scores.shift).value(units) / model.ensemble.average


class CombinedRows(EventRows):
    """Rows for questions in which each constraint is about one point: every combination of cells is tried in exact arithmetic.

    `reached`, bool[points, rows], is True if some combination makes the row the point, and `at`, int64[points, rows], is the
    index of the first such combination in `combinations`, int32[n, varied]. `own`, bool[points, rows], is True if the unchanged
    row is the point. Rows are tried until the time runs out.
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
        """Evaluates every row of a part, first unchanged and then with each combination."""
        tried = np.repeat(cells[part, None, :], 1 + len(self.combinations), axis=1)
        tried[:, 1:, list(self.varied)] = self.combinations
        flat = np.ascontiguousarray(tried).reshape(-1, tried.shape[2])
        # Both points get the same inputs; values are left empty, because no constraint reads them.
        query, both = self.query, np.broadcast_to(flat, (2, *flat.shape))
        scores = {model: sums_of_cells(query, model, flat) for model in {point.model for point in query.points}}
        x = ManyInputs(np.empty((2, len(flat), 0)), both, tuple(scores[point.model] for point in query.points))
        for point, side in enumerate(sides):
            held = holds_everywhere(side, x).reshape(tried.shape[:2])
            self.own[point, part] = held[:, 0]
            self.reached[point, part], self.at[point, part] = held[:, 1:].any(axis=1), held[:, 1:].argmax(axis=1)

    def order(self) -> Int64Array:
        """The rows that flip, first those that are one of the points unchanged."""
        places = np.flatnonzero(self.reached.all(axis=0))
        return places[np.argsort(~self.own[:, places].any(axis=0), kind="stable")]

    def sides(self) -> tuple[BoolArray, BoolArray]:
        """True for rows that are the first (the second) point unchanged, in exact arithmetic."""
        return self.own[0], self.own[1]

    def pair(self, place: int) -> FloatArray:
        """The row as each point: unchanged if it is the point, otherwise with the first combination that makes it the point."""
        row = self.row(place)
        values = np.array([row, row])
        for point in (0, 1):
            if not self.own[point, place]:
                for f, cell in zip(self.varied, self.combinations[self.at[point, place]], strict=True):
                    values[point, f] = self.value(f, int(cell), row)
        return values


def side_of(query: Query, point: int) -> list[Constraint] | None:
    """The constraints on one point; None if some constraint is not decided by cells, or relates both points."""
    mine = [c for c in query.constraints if not isinstance(c, SameExcept)]
    if not all(decided_by_cells(c) and len(points_in(c)) <= 1 for c in mine):
        return None
    # A constraint without points, such as an impossible case, holds for both points or for neither.
    return [c for c in mine if points_in(c) <= {point}]


def decided_rows(
    query: Query, rows: FloatArray, wanted: Sequence[tuple[DecidedPoint, str]]
) -> tuple[Int64Array, list[BoolArray]]:
    """The indices of the legal rows in `rows`, float64[rows, features], and for each decision those with the outcome."""
    index = legal_rows(query, rows)
    values = query.space.grid[0].number_type.cast(rows[index])
    cells = cells_of_rows(query.space.grid, rows[index])
    x = many_inputs(query, np.stack([values] * len(query.points)), np.stack([cells] * len(query.points)))
    return index, [_has_outcome(decided, outcome, x) for decided, outcome in wanted]


def _has_outcome(decided: DecidedPoint, outcome: str, x: ManyInputs) -> BoolArray:
    """True for rows whose first satisfied case has the outcome, bool[rows]."""
    open_rows, found = np.ones(len(x), bool), np.zeros(len(x), bool)
    for named, condition in decided.cases:
        held = open_rows & holds_on_rows(condition, x)
        found |= held & (named == outcome)
        open_rows &= ~held
    return found | (open_rows & (decided.otherwise == outcome))
