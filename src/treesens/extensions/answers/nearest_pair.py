"""Finds the nearest pair: minimises the distance of a point to the nearest row of a table, with a proved lower bound.

Rows that are answers themselves are tried first, since a distance of 0 is optimal. Next, the rows with the closest scores are
tried one by one, and best-first branch and bound runs over groups of rows. For a group, the native engine minimises the
distance to the range of its values: a lower bound on the distance to each row of the group. Every pair gives an upper bound,
and a group that may contain a better pair is split. The bound of the answer is the least bound of the remaining groups.
"""

from __future__ import annotations

import heapq
import itertools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from treesens.binder.ladders import distance_to_row
from treesens.compiler.base.arrays import FloatArray, Int32Array, Int64Array
from treesens.compiler.base.budget import Budget, OutOfTime, working_within
from treesens.compiler.base.tolerance import EXACT, Closeness
from treesens.compiler.query.query import NearestRows, Query
from treesens.compiler.result import NearestRow, ObjectiveValue, Result, Sense, Verdict
from treesens.data.flips import flip_question, flips, with_cells
from treesens.extensions.answers.clusters import Rows
from treesens.extensions.answers.evaluate_rows import holds_everywhere, many_inputs
from treesens.extensions.answers.incremental import IncrementalSearch
from treesens.extensions.answers.neighbours import Neighbours
from treesens.extensions.answers.pair_search import RowSearch
from treesens.solve.conclude import conclude_contradiction, conclude_found, conclude_infeasible, leave_open
from treesens.solve.driver import FIRST_MOMENT
from treesens.solve.method import OpenQuestion
from treesens.solve.options import Options, for_engine
from treesens.values.relations import relates_values
from treesens.values.verify import Witness, verify_cells, verify_values

_SLICE = 2.0
"""Maximum number of seconds for one group before it is split."""

_ROW_SLICE = 0.25
"""Maximum number of seconds for one row while other rows remain."""

_SINGLE_ROWS = 0.5
"""Share of the time for single rows, before groups of rows."""

_MOVED_ROWS = 0.65
"""Share of the time for single-feature moves from the most promising rows."""

_TRIED = 50
_ROWS_AT_ONCE = 1024
_CLOSE = 1e-6
_CLOSING = 2.0
"""Maximum number of seconds for groups that are within the tolerance of the best pair."""

_MOMENT = 0.02
"""Minimum number of seconds for one group of rows."""


@dataclass
class _Best:
    value: float = math.inf
    witness: Witness | None = None
    row: int = -1


@dataclass
class _NearestPair:
    answer: Callable[..., Result]
    query: Query
    nearest: NearestRows
    options: Options
    budget: Budget
    on_better: Callable[[Witness], None] | None
    best: _Best = field(default_factory=_Best)

    def __post_init__(self) -> None:
        self.plain = replace(self.query, objective=None)
        self.rows = Rows(self.query.space, self.nearest)
        shape = flip_question(self.plain)
        self.neighbours = None if shape is None else Neighbours(self.plain, shape, self.rows)
        around = RowSearch(self.plain, shape, self.rows) if shape is not None and shape.only else None
        self.around = around if around is not None and around.possible else None

    def run(self) -> Result:
        if not self.nearest.features:
            # The distance has no features, so every pair is optimal.
            settled = self._any_pair(self.budget)
            return self._result(0.0, "native") if settled is None else settled
        order = self._rows_themselves()
        if self.best.value == 0.0:
            return self._result(0.0, "rows")
        if relates_values(self.plain) and (settled := self._any_pair(self.budget.share(1 / 4))) is not None:
            return settled
        try:
            with working_within(self.budget.at_least(FIRST_MOMENT)):
                engine = IncrementalSearch(
                    self.plain, self.nearest.point, self.nearest.features, **for_engine(self.options)
                )
        except OutOfTime:
            return self._result(0.0, "native")
        if engine.decided is not None:
            return conclude_contradiction(self.query.name, engine.decided)
        if engine.artifact.adapted is None:
            return self._in_one_combination()
        first = engine.solve(None, math.inf, max(_MOMENT, self.budget.left() / 2), self.budget.stop)
        if first.empty:
            return replace(conclude_infeasible(self.query.name), backend="native")
        if first.cells is not None:
            self._offer(first.cells)
        if self.around is not None:
            bound = self.around.run(order, lambda: self.best.value, self._offer, self.budget.left)
            if self.best.witness is not None:
                return self._result(bound, "native")
        self._move_rows(order)
        self._rows_one_by_one(engine, order)
        bound = self._search(engine)
        return self._result(bound, "native")

    def _any_pair(self, part: Budget) -> Result | None:
        """Searches for any pair, unless cells alone prove that a pair exists; returns the answer `none` if `none` is proved."""
        found = self.answer(self.plain, self.options, part.at_least(_MOMENT))
        if found.verdict is Verdict.NONE:
            return found
        if found.witness is not None:
            self._keep(found.witness)
        return None

    def _in_one_combination(self) -> Result:
        """The answer if the domain is a single combination of cells, so that only values remain to be searched."""
        if (settled := self._any_pair(self.budget.share(1 / 4))) is not None:
            return settled
        bound = math.inf
        for row in range(len(self.rows.values)):
            if self.budget.over:
                return self._result(0.0, "native")
            bound = min(bound, self._row_on_values(row, self.budget.share(1 / 2)))
        return self._result(bound, "native")

    def _row_on_values(self, row: int, part: Budget, options: Options | None = None) -> float:
        """Searches for the pair nearest to one row, by a method that chooses values; returns the lower bound."""
        objective = distance_to_row(self.query.space, self.nearest, row)
        question = replace(self.plain, objective=objective)
        found = self.answer(question, options or self.options, part.at_least(_MOMENT))
        if found.verdict is Verdict.NONE:
            return math.inf
        if found.witness is not None:
            self._keep(found.witness)
        bound = None if found.objective is None else found.objective.bound
        return 0.0 if bound is None else bound

    def _move_rows(self, order: Int64Array) -> None:
        """Searches for pairs by single-feature moves from the rows in the given order, the most promising row first."""
        near = self.neighbours
        if near is None or len(order) == 0:
            return
        part = self.budget.share(_MOVED_ROWS)
        start = self._legal_cells()
        for row in order:
            if part.over or self.best.value == 0.0:
                break
            cells = start.copy()
            for column, f in enumerate(self.nearest.features):
                cells[f] = self.rows.cells[column][row]
            if (cells < 0).any() or not all(self.query.space.legal[f][c] for f, c in enumerate(cells)):
                continue
            found = near.towards(cells, int(row), self.best.value, part.left)
            if found is not None and found[1] < self.best.value:
                self._offer(found[0], int(row))

    def _legal_cells(self) -> Int32Array:
        """A legal cell of every feature, int32[features]."""
        return np.array([int(np.flatnonzero(legal)[0]) for legal in self.query.space.legal], np.int32)

    def _rows_one_by_one(self, engine: IncrementalSearch, order: Int64Array) -> None:
        """Tries the row nearest to the first pair, then the most promising rows for a share of the time."""
        part = self.budget.share(_SINGLE_ROWS)
        waiting = iter(order)
        rows_asked: set[int] = set()
        while not part.over and self.best.value > 0.0:
            row = self.best.row if self.best.row >= 0 and self.best.row not in rows_asked else next(waiting, None)
            if row is None:
                break
            if int(row) not in rows_asked:
                rows_asked.add(int(row))
                self._group(engine, np.array([row]), min(_ROW_SLICE, max(_MOMENT, self.budget.left())))

    def _rows_themselves(self) -> Int64Array:
        """Offers rows that are pairs themselves; returns all rows, sorted by how close they are to being a pair."""
        shape = flip_question(self.plain)
        count = len(self.rows.values)
        if shape is None:
            self._rows_as_inputs()
            return np.arange(count)
        space = self.query.space
        cells = np.empty((count, len(space.names)), np.int32)
        cells[:] = self._legal_cells()
        usable = np.ones(count, bool)
        for column, f in enumerate(self.nearest.features):
            cells[:, f] = self.rows.cells[column]
            usable &= (cells[:, f] >= 0) & space.legal[f][np.maximum(cells[:, f], 0)]
        index = np.flatnonzero(usable)
        if len(index) == 0:
            return np.arange(count)
        found = flips(
            self.plain.models[shape.model], cells[index], shape.features, space.legal, index=index, output=shape.output
        )
        clear = shape.clearance(found)
        places = np.lexsort((-clear, shape.deficit(found)))
        flipping = shape.flipping(found)
        for place in places[:_TRIED]:
            if not flipping[place]:
                break
            row = int(index[place])
            values = np.full((2, len(space.names)), np.nan)
            values[:, list(self.nearest.features)] = self.rows.values[row]
            values[:, list(shape.features)] = np.nan
            ends = np.empty((2, len(shape.features)), np.int32)
            ends[shape.upper], ends[shape.lower] = found.highest_cells[place], found.lowest_cells[place]
            values = with_cells(space, values, shape.features, ends)
            verdict = verify_values(self.plain, values, library_predict=self.options.library_predict)
            if isinstance(verdict, Witness):
                self._keep(verdict)
                break
        return index[places]

    def _rows_as_inputs(self) -> None:
        """For a question about one input, offers the rows that answer the question, if the distance is over all features."""
        features = list(self.nearest.features)
        space = self.query.space
        if len(self.query.points) > 1 or len(features) < len(space.names):
            return
        cells = np.empty(self.rows.values.shape, np.int32)
        cells[:, features] = np.column_stack(self.rows.cells)
        values = np.empty(self.rows.values.shape)
        values[:, features] = self.rows.values
        legal = [(c >= 0) & space.legal[f][np.maximum(c, 0)] for f, c in enumerate(cells.T)]
        usable, tried = np.flatnonzero(np.logical_and.reduce(legal)), 0
        for start in range(0, len(usable), _ROWS_AT_ONCE):
            some = usable[start : start + _ROWS_AT_ONCE]
            if self.budget.over:
                return
            for row in some[
                holds_everywhere(self.plain.constraints, many_inputs(self.plain, values[None, some], cells[None, some]))
            ]:
                tried += 1
                verdict = verify_values(self.plain, values[None, row], library_predict=self.options.library_predict)
                if isinstance(verdict, Witness):
                    self._keep(verdict)
                if isinstance(verdict, Witness) or tried >= _TRIED:
                    return

    def _offer(self, cells: Int32Array, row: int | None = None) -> None:
        """Verifies a pair with values in `cells` near a row (by default the nearest row), and keeps the best pair so far."""
        if row is None:
            row = int(np.argmin(self._to_cells(cells)))
        near = np.full(len(self.query.space.names), np.nan)
        near[list(self.nearest.features)] = self.rows.values[row]
        before = self.best.value
        verdict = verify_cells(self.plain, cells, near=near, library_predict=self.options.library_predict)
        if isinstance(verdict, Witness):
            self._keep(verdict)
        if self.best.value < before and self.neighbours is not None:
            # Moving features of the better pair back may bring it nearer still.
            back = self.neighbours.back(cells[self.neighbours.question.upper], row, self.budget.left)
            if back is not None and back[1] < self.best.value:
                closer = verify_cells(self.plain, back[0], near=near, library_predict=self.options.library_predict)
                if isinstance(closer, Witness):
                    self._keep(closer)

    def _to_cells(self, cells: Int32Array) -> FloatArray:
        """The distances of all rows to round values in the cells of a pair, int32[points, features]."""
        space, features = self.query.space, list(self.nearest.features)
        near = np.full((1, len(space.names)), np.nan)
        point = with_cells(space, near, features, cells[self.nearest.point, None][:, features])[0]
        return self.rows.to_point(point[features].tolist())

    def _keep(self, witness: Witness) -> None:
        distances = self.rows.to_point(witness.values[self.nearest.point][list(self.nearest.features)].tolist())
        row = int(np.argmin(distances))
        if distances[row] < self.best.value:
            self.best = _Best(float(distances[row]), witness, row)
            if self.on_better is not None:
                self.on_better(witness)

    def _group(self, engine: IncrementalSearch, group: Int64Array, seconds: float) -> float:
        """Searches around a group of rows; returns a lower bound on the distance to its rows."""
        if len(group) == 1 and relates_values(self.plain):
            # A single row cannot be split, and relations between values need a search that chooses values.
            return self._row_on_values(int(group[0]), self.budget.share(1 / 4).at_least(seconds))
        costs = dict(zip(self.nearest.features, self.rows.distances(group), strict=True))
        norm, most = self.nearest.norm, self.best.value
        squared = {f: c**2 for f, c in costs.items()} if norm == "l2" else costs
        limit = most**2 if norm == "l2" else most
        if norm == "linf":
            return self._largest(engine, group, costs, seconds)
        found = engine.solve(squared, limit, seconds, self.budget.stop)
        if found.cells is not None:
            self._offer(found.cells, self._row_near(group, found.cells))
        # Pairs outside the allowed cells are no better than the best known pair.
        bound = min(
            float(math.ceil(found.bound - _CLOSE)) if norm == "l0" and found.bound < math.inf else found.bound, limit
        )
        return most if bound >= limit else math.sqrt(bound) if norm == "l2" else bound

    def _largest(
        self, engine: IncrementalSearch, group: Int64Array, costs: dict[int, FloatArray], seconds: float
    ) -> float:
        """The bound for linf, by bisection on the distances of cells; each step is a question without costs.

        No pair is nearer than the least radius that is not refuted; for a group that can be split, an approximation suffices.
        """
        every = np.unique(np.concatenate([c[np.isfinite(c)] for c in costs.values()]))
        radii = np.append(every[every < self.best.value], min(self.best.value, every[-1]))
        low, high = 0, len(radii) - 1
        enough = 1e-3 if len(group) > 1 else 0.0
        part = self.budget.within(seconds)
        while low < high and radii[high] - radii[low] > enough * radii[high] and not part.over:
            middle = (low + high) // 2
            inside = {f: np.where(c <= radii[middle], 0.0, np.inf) for f, c in costs.items()}
            found = engine.solve(inside, 0.0, max(_MOMENT, part.left()), self.budget.stop)
            if found.cells is not None:
                self._offer(found.cells, self._row_near(group, found.cells))
                high = middle
            elif found.empty:
                low = middle + 1
            else:
                break
        return float(radii[low])

    def _row_near(self, group: Int64Array, cells: Int32Array) -> int:
        """The row of the group that is nearest to the cells."""
        if len(group) == 1:
            return int(group[0])
        return int(group[np.argmin(self._to_cells(cells)[group])])

    def _search(self, engine: IncrementalSearch) -> float:
        """Best-first search over groups of rows; returns the least bound that remains.

        Every group keeps its bound until it is searched; a group is kept even if its bound is close to the best pair. When all
        groups are within the tolerance of the best pair, the search continues only for a short time, to raise the bounds.
        """
        number = itertools.count()
        queue = [(0.0, 0, next(number), np.arange(len(self.rows.values)))]
        stuck, closing = math.inf, False
        part = self.budget
        while queue:
            bound, _, _, group = queue[0]
            if bound >= min(self.best.value, stuck if self._is_near(stuck) else math.inf):
                break
            if closing != self._is_near(bound):
                closing = not closing
                part = self.budget.within(_CLOSING) if closing else self.budget
            if part.over:
                break
            heapq.heappop(queue)
            own_bound = max(bound, self._group(engine, group, min(_SLICE, max(_MOMENT, part.left()))))
            one, other = self.rows.halves(group) if len(group) > 1 else (group, group[:0])
            if own_bound >= self.best.value:
                continue
            if len(other) > 0:
                for half in (one, other):
                    heapq.heappush(queue, (own_bound, len(half), next(number), half))
            else:
                stuck = min(stuck, self._close_row(int(group[0]), own_bound, part))
        least = queue[0][0] if queue else math.inf
        return min(stuck, least, self.best.value)

    def _is_near(self, bound: float) -> bool:
        """True if a bound is within the tolerance of the best pair."""
        best = self.best.value
        return best < math.inf and (
            bound >= best or self.options.closeness.closeness(best, bound) is not Closeness.OPEN
        )

    def _close_row(self, row: int, bound: float, part: Budget) -> float:
        """Improves the bound for one row, which cannot be split, by separate questions: first approximate, then exact."""
        if not relates_values(self.plain) and not self._is_near(bound):
            bound = max(bound, self._row_on_values(row, part.share(1 / 4)))
        if bound < self.best.value and self._is_near(bound):
            exact = self.options.asking_for(EXACT)
            bound = max(bound, self._row_on_values(row, part.within(_CLOSING).share(1 / 2), exact))
        return bound

    def _result(self, bound: float, backend: str) -> Result:
        witness = self.best.witness
        if witness is None:
            reason = "time: no pair found" if self.budget.over else "no pair found"
            return leave_open(self.query.name, reason, backend=backend)
        kind = f"distance {self.nearest.norm}"
        objective = ObjectiveValue(self.best.value, bound, Sense.MINIMIZE, kind)
        nearest = NearestRow("", int(self.nearest.index[self.best.row]), self.best.value, self.best.value)
        return conclude_found(
            leave_open(self.query.name, witness=witness, objective=objective, backend=backend, nearest=nearest)
        )


def distance_of(query: Query, nearest: NearestRows, witness: Witness) -> float:
    """The distance of a witness to the nearest row."""
    point = witness.values[nearest.point][list(nearest.features)].tolist()
    return float(Rows(query.space, nearest).to_point(point).min(initial=math.inf))


def answer_nearest(
    answer: Callable[..., Result],
    query: Query,
    options: Options,
    budget: Budget,
    *,
    on_better: Callable[[Witness], None] | None = None,
) -> Result:
    """The answer to a question that minimises the distance to the nearest row: the best pair found within the time limit.

    `answer` answers the same question without the objective, or with the distance to one row.
    """
    assert query.objective is not None
    assert query.objective.nearest is not None
    start = time.perf_counter()
    result = _NearestPair(answer, query, query.objective.nearest, options, budget, on_better).run()
    seconds = {"build": 0.0, "solve": time.perf_counter() - start}
    return replace(result, query=query.name, seconds=seconds, pipeline="native")


def search_nearest(question: OpenQuestion, budget: Budget) -> Result:
    """The method named in `extensions/methods/registered.py`."""
    return answer_nearest(question.ask, question.query, question.options, budget, on_better=question.on_better)
