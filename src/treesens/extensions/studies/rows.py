"""Finds the rows of a table on each side of an event, the rows that flip, and the other point of each flipping pair.

A row flips if, with its other features fixed, one value of the varied features makes it the first point of the event and
another value makes it the second point. If the sides are two cut-offs of one score, the engine computes the score for all cells
of a feature. For leads of classes (minima of several differences) and for rules between features, every combination of cells of
the varied features is judged by sums of integers; if sides are not bounds on scores, exact arithmetic is used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from treesens._engine import SCORE_BITS
from treesens.compiler.base.arrays import BoolArray, FloatArray, Int32Array, Int64Array
from treesens.compiler.base.budget import Budget
from treesens.compiler.base.dyadic import Unit, to_scaled
from treesens.compiler.base.floats import NumberType, ceil_to
from treesens.compiler.model.cells import CellEnsemble
from treesens.compiler.model.scores import BEYOND, UNTRIED, leaf_values
from treesens.compiler.query.bounds import LogRational
from treesens.compiler.query.dependencies import decided_by_cells, points_in
from treesens.compiler.query.query import AnyOf, DecidedPoint, OneHot, Query, SameExcept
from treesens.data.flips import MOST_COMBINATIONS, FlipQuestion, Flips, Judge, flip_question, flips
from treesens.data.rows import cells_of_rows
from treesens.extensions.answers.evaluate_rows import (
    ManyInputs,
    holds_everywhere,
    holds_on_rows,
    many_inputs,
    sums_of_cells,
)
from treesens.extensions.studies.decisions import Between, Decision
from treesens.runtime.kept import Kept
from treesens.solve.tasks.data_rows import EventRows, legal_rows

WALKS_PER_SECOND = 60_000_000
"""Number of tree traversals per second of the time limit: several times the number that a sweep over all rows needs."""
LEAST_COMBINATIONS = 16
"""Minimum number of combinations of values of several features that are tried for every row."""
_CHUNK = 4096


@dataclass
class ScoreSweep:
    """The highest and lowest scores of each row of `table`, float64[rows, features], if a set of features varies.

    A decision between classes needs two sweeps, because ties at a lead of 0 are broken as in the library.
    """

    decision: Decision
    query: Query
    table: FloatArray
    seconds: float

    def of(self, query: Query, size: Fraction) -> EventRows:
        """The rows for the question with a gap of `size`."""
        return EventRows(query, self.shape(query, size), self.found(size), self.table)

    def found(self, size: Fraction) -> Flips:
        """The extreme scores of all rows for a gap of `size`."""
        return self._at_zero if isinstance(self.decision, Between) and size == 0 else self._plain

    def widest(self, query: Query, size: Fraction) -> EventRows:
        """The rows for the question about any swing."""
        shape = FlipQuestion(0, 1, self.features, 0, self.decision.output, None, None, LogRational(), True)
        return EventRows(query, shape, self.found(size), self.table)

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
        """A bound on all swings, from the leaves: trees without splits on varied features cancel (UnAff in the paper), and each
        other tree adds the range of its values.
        """
        model = self.query.models[0]
        if isinstance(self.decision, Between):
            scores, (first, second) = scores_of_leaves(model), self.decision.classes
            values, shift, slack = scores.leaves[:, first] - scores.leaves[:, second], scores.shift, 2 * scores.slack
        else:
            values, shift, slack = leaf_values(model, self.decision.output)
        start = np.searchsorted(model.ensemble.leaf_tree, np.arange(model.n_trees))
        ranges = np.maximum.reduceat(values, start) - np.minimum.reduceat(values, start)
        units = int(ranges[_trees_about(model, self.features)[1]].sum()) + slack
        exact = Unit(shift).value(units) / model.ensemble.average
        if isinstance(self.decision, Between):
            return math.nextafter(float(exact), math.inf)
        return ceil_to(exact, NumberType.FLOAT64)

    def _swept(self, *, ties: bool) -> Flips:
        query, model, index = self.query, self.query.models[0], legal_rows(self.query, self.table)
        cells, legal = cells_of_rows(query.space.grid, self.table[index]), query.space.legal
        walks, rules = int(WALKS_PER_SECOND * self.seconds), rules_of(query)
        if isinstance(self.decision, Between) or rules:
            inside = _obeys(rules, cells)
            cells, index = cells[inside], index[inside]
            scores, asking = scores_of_leaves(model), _trees_about(model, self.features)[1]
            judge = self._judge(cells, scores, asking, ties=ties)
            limit = max(2, walks / max(1, len(cells) * max(1, len(asking))))
            found = flips(judge, cells, self.features, legal, index=index, limit=limit, least=2)
            slack = 0 if isinstance(self.decision, Between) else scores.slack  # leads have it subtracted already
            return replace(found, shift=scores.shift, slack=slack)
        most = walks / (max(1, len(self.table)) * max(1, model.n_trees))
        limit = max(LEAST_COMBINATIONS, min(MOST_COMBINATIONS, int(most)))
        return flips(model, cells, self.features, legal, index=index, output=self.decision.output, limit=limit)

    def _judge(self, cells: Int32Array, scores: Scores, asking: Int32Array, *, ties: bool) -> Judge:
        """Judges rows by their score or, for two classes, by the leads of the two classes (see `leads`). Trees without splits
        on varied features are added up once per row. Inputs that violate a `onehot` rule do not count.
        """
        model, rules = self.query.models[0], rules_of(self.query)
        known = _add_up(model, scores, cells, _trees_about(model, self.features)[0]) + scores.base

        def judge(places: Int64Array, inputs: Int32Array) -> tuple[Int64Array, Int64Array]:
            found = known[places] + _add_up(model, scores, inputs, asking)
            if isinstance(self.decision, Between):
                high, low = leads(found, self.decision.classes, scores.slack, ties=ties)
            else:
                high = low = found[:, self.decision.output]
            obeys = _obeys(rules, inputs)
            return np.where(obeys, high, -UNTRIED), np.where(obeys, low, UNTRIED)

        return judge


def varied_of(query: Query) -> tuple[int, ...]:
    """The features in which the two points may differ."""
    return tuple(sorted(frozenset.intersection(*(c.varied for c in query.constraints if isinstance(c, SameExcept)))))


def rules_of(query: Query) -> list[OneHot]:
    """The `onehot` rules about the first point."""
    return [c for c in query.constraints if isinstance(c, OneHot) and c.point == 0]


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


def leads(scores: Int64Array, classes: Sequence[int], slack: int, *, ties: bool) -> tuple[Int64Array, Int64Array]:
    """The leads of two classes over all others for `scores`, int64[rows, outputs]; the second lead is negated: it must be low.

    With `ties`, a tie is won by the class that comes first, because libraries predict the first of several best classes.
    """

    def lead(wanted: int) -> Int64Array:
        # Earlier classes win ties: as scores are integers, one more unit makes a tie a lead.
        behind = scores + (np.arange(scores.shape[1]) < wanted) * ties
        behind[:, wanted] = -BEYOND
        return np.asarray(scores[:, wanted] - behind.max(axis=1) - slack)

    return lead(classes[0]), -lead(classes[1])


def _trees_about(model: CellEnsemble, features: Sequence[int]) -> tuple[Int32Array, Int32Array]:
    """The indices of trees that do not split on the features, and of all other trees."""
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


def event_rows(query: Query, table: FloatArray, budget: Budget) -> EventRows:
    """Rows for a question in which each constraint is about one point: exact arithmetic judges every combination of cells.

    No row flips if a constraint depends on values within a cell, or relates both points.
    """
    varied, index = varied_of(query), legal_rows(query, table)
    mine = [c for c in query.constraints if not isinstance(c, SameExcept)]
    decided = all(decided_by_cells(c) and len(points_in(c)) <= 1 for c in mine)
    # A constraint without points, such as an impossible case, holds for both points or for neither.
    sides = [[c for c in mine if points_in(c) <= {point}] if decided else [AnyOf(())] for point in (0, 1)]

    def judge(_: Int64Array, inputs: Int32Array) -> tuple[Int64Array, Int64Array]:
        # Both points get the same inputs; values are left empty, because no constraint reads them.
        scores = {model: sums_of_cells(query, model, inputs) for model in {point.model for point in query.points}}
        both, values = np.broadcast_to(inputs, (2, *inputs.shape)), np.empty((2, len(inputs), 0))
        x = ManyInputs(values, both, tuple(scores[point.model] for point in query.points))
        one, other = (holds_everywhere(side, x).astype(np.int64) for side in sides)
        return one, -other

    cells, limit = cells_of_rows(query.space.grid, table[index]), MOST_COMBINATIONS if decided else 0
    found = flips(judge, cells, varied, query.space.legal, index=index, limit=limit, budget=budget)
    holds = LogRational(Fraction(1))
    return EventRows(query, FlipQuestion(0, 1, varied, 0, 0, holds, -holds, None, False), found, table)


def decided_rows(
    query: Query, rows: FloatArray, wanted: Sequence[tuple[DecidedPoint, str]]
) -> tuple[Int64Array, list[BoolArray]]:
    """The indices of the legal rows in `rows`, float64[rows, features], and of the rows with each decision's outcome."""
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
