"""Questions about scores only, passed to the engine without the IR: no lowering, no passes.

Such a question may contain points with their models, one `SameExcept`, sets of cells, boxes to avoid, bounds on sums of scores,
and one such sum as the objective. The engine receives the models' trees unchanged and drops dead leaves itself
(`engine/levels`). If sums of scores are too long, scores are rounded outward, so that a proof remains valid; points are checked
exactly. All other questions take the compiled path, which has the same semantics.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from treesens._engine import SCORE_BITS, CellProblem, RestrictedSearch, SharedProblem
from treesens.backends.native.boxed_question import run_search
from treesens.backends.native.question_cells import QuestionCells
from treesens.backends.native.score_constraints import (
    IntegerRow,
    ScoreConstraints,
    forests_of,
    is_sum_of_scores,
    row_of,
    score_constraints_of,
    upwards_of,
)
from treesens.compiler.base.arrays import Int32Array, Int64Array
from treesens.compiler.base.budget import Budget
from treesens.compiler.base.dyadic import nearest_double
from treesens.compiler.base.tolerance import EXACT, Tolerance
from treesens.compiler.model.cell_trees import side_by_side
from treesens.compiler.model.cells import CellEnsemble
from treesens.compiler.query.evaluate import Inputs, holds, scores_of_cells
from treesens.compiler.query.query import (
    AvoidBoxes,
    Coarse,
    LinearForm,
    Query,
)
from treesens.compiler.result import NearMiss
from treesens.runtime.kept import Kept, is_reused, reuse

if TYPE_CHECKING:
    from treesens._engine import PointTrees, RestrictedFacts

_BYTES_PER_NODE = 50
"""Bytes per node in the engine's representation of a question's trees."""
_UNKNOWN = (1 << 63) - 1
"""The engine's bound on a level while nothing is proved."""
_LOOK = 12
"""Work of the local search before the first proof, per tree node. Most answers are found immediately, and proofs that no answer
exists are often faster than a longer search.
"""
_TREES = 1 << 20
"""Maximum number of trees of a model."""
_ALL = -1
"""Value of `look` for which the local search chooses its own amount of work."""
_SHOWN = 1e-6
"""Fraction by which a relative tolerance is reduced, since displayed values are rounded."""
_MOST = 1 << 62
"""Limit of absolute gaps, and of the references of relative gaps."""


@dataclass(frozen=True)
class TreeOutcome:
    """A point, `cells` int32[points, features], or `none` if no point exists, with the engine's statistics.

    If the question is open, `reason` is `time`, `memory`, `stopped`, `internal`, or `rounding` if the found point satisfies
    only the rounded rows. `near` is the least violation that the search reached, if all rows have the same unit.
    """

    cells: Int32Array | None
    none: bool
    reason: str
    statistics: dict[str, float]
    near: NearMiss | None = None


@dataclass(frozen=True)
class TreeOptimum:
    """The best point found, `cells` int32[points, features], and the proved bound on the objective.

    No point has a better value than `bound`, which excludes unit and offset; `bound` is None if nothing is proved. `none` is
    True if no point exists. `ended` is the termination: `optimal`, `infeasible`, or the reason why the question is open, as in
    `TreeOutcome`; `rounding` if the point satisfies only rounded rows.
    """

    cells: Int32Array | None
    bound: Fraction | None
    ended: str
    statistics: dict[str, float]

    @property
    def none(self) -> bool:
        return self.ended == "infeasible"


class TreeQuestion:
    """A question's trees and rows in the engine's form; bounds and the allowed cells are set for each question.

    The trees use the `coarse` grid, which has no cuts at a question's constants, so questions that differ in rows, ranges and
    bounds share these trees.
    """

    def __init__(
        self,
        query: Query,
        coarse: Coarse,
        parts: ScoreConstraints,
        rows: list[IntegerRow],
        goal: IntegerRow | None = None,
    ) -> None:
        """With a `goal`, the sum of the goal's values is maximised."""
        points = range(len(query.points))
        features = len(query.space.names)
        varied = frozenset(range(features)) if parts.same is None else parts.same.varied
        self.coarse = coarse
        # Every point gets the trees of every forest, so that their numbers are the same for all points of a model.
        self.forests = [forest.on(coarse.grid) for forest in forests_of(parts.rows)]
        self.optimises = goal is not None
        self.constraints = max(1, len(rows))  # the engine needs at least one row: 0 >= 0
        units = {(row.scale, row.shift) for row in rows}
        self.unit = None
        if len(units) == 1 and not any(row.rounded for row in rows):
            self.unit = rows[0].unit
        self.variable = np.zeros((len(points), features), np.int32)
        owner: list[int] = []
        for f in range(features):
            for p in points:
                if p == 0 or f in varied:
                    owner.append(f)
                self.variable[p, f] = len(owner) - 1
        self.feature = np.array(owner, np.int32)
        counts = coarse.grid.n_cells
        self.size = counts[owner]
        clauses = _clauses(parts.avoided, self.variable, counts)
        self._problem = CellProblem(
            points=[self._point(query, p, rows, goal) for p in points],
            size=self.size.astype(np.int32),
            feature=self.feature,
            bound=np.zeros(self.constraints, np.int64),
            objective=self.optimises,
            **clauses,
        )
        self.nodes = self._problem.nodes()
        self.shared = SharedProblem(self._problem)

    @property
    def groups(self) -> list[tuple[tuple[int, ...], int]]:
        """The points and the tree of every group: points share a group if they agree on all features of the tree."""
        return [(tuple(points), tree) for points, tree in self._problem.groups()]

    def _point(self, query: Query, point: int, rows: list[IntegerRow], goal: IntegerRow | None) -> PointTrees:
        numbered = [*enumerate(rows), *([] if goal is None else [(self.constraints, goal)])]
        parts = [self.coarse.models[query.points[point].model], *self.forests]
        return {
            "trees": side_by_side(parts).engine,
            "first_leaf": _first_leaves(parts),
            "variable": self.variable[point],
            "first_tree": query.points[point].model * _TREES,
            "rows": [(r, row.values[point]) for r, row in numbered if point in row.values],
        }

    def cells(self, query: Query, parts: ScoreConstraints) -> QuestionCells:
        """Maps the question's own grid to the searched grid."""
        return QuestionCells(query, self.coarse.grid, self.variable, self.feature, parts.sets)

    def search(
        self,
        cells: QuestionCells,
        bound: Int64Array,
        hints: Int32Array | None,
        seed: int,
        memory: int | None,
        look: int | None = None,
        threads: int = 1,
    ) -> RestrictedSearch | None:
        """The engine's search; None if a domain is empty, because the compiler has a better message for this case. The local
        search does at most `look` units of work before the first proof (None: in proportion to the trees).
        """
        allowed = cells.allowed()
        if allowed is None:
            return None
        open_cells, starts = cells.coarse_allowed(allowed).astype(np.uint8), cells.of_hints(hints)
        first = _LOOK * self.nodes if look is None else look
        return RestrictedSearch(
            self.shared,
            open_cells,
            bound,
            starts,
            seed,
            -1 if memory is None else memory,
            first,
            threads,
            self.optimises,
        )

    def decide(self, search: RestrictedSearch, cells: QuestionCells, budget: Budget) -> TreeOutcome:
        """The outcome of the search within the budget."""
        facts = run_search(search, budget)
        found = cells.of_point(facts["point"]) if facts["status"] == "witness" else None
        statistics = _statistics(facts)
        near = None
        if facts["status"] == "open" and facts["reason"] != "internal" and self.unit is not None:
            reached, bound = (
                None if abs(end) >= _UNKNOWN else nearest_double(end * self.unit)
                for end in (facts["level"], facts["upper"])
            )
            near = NearMiss(reached, bound)
        return TreeOutcome(found, facts["status"] == "infeasible", facts["reason"], statistics, near)


def _statistics(facts: RestrictedFacts) -> dict[str, float]:
    return {
        "nodes": float(facts["nodes"]),
        "local_seconds": facts["seconds_local"],
        "prove_seconds": facts["seconds_prove"],
    }


@dataclass(frozen=True, eq=False)
class RunningSearch:
    """One question with its resumable search."""

    trees: TreeQuestion
    cells: QuestionCells
    search: RestrictedSearch
    question: BoundQuestion


def _first_leaves(parts: Sequence[CellEnsemble]) -> Int64Array:
    """The number of each tree's first leaf, for the trees of all `parts` in order, followed by the total: int64[trees + 1]."""
    counts = [np.bincount(part.ensemble.leaf_tree, minlength=part.n_trees) for part in parts]
    return np.cumsum([0, *np.concatenate(counts)], dtype=np.int64)


def _clauses(avoided: list[AvoidBoxes], variable: Int32Array, counts: Int32Array) -> dict[str, Any]:
    """Clauses that exclude boxes: in some feature, the point lies outside of the box."""
    offset, literals = [0], list[tuple[int, int, int]]()
    for boxes in avoided:
        for box in range(len(boxes.indptr) - 1):
            for i in range(int(boxes.indptr[box]), int(boxes.indptr[box + 1])):
                f, low, high = int(boxes.feature[i]), int(boxes.low[i]), int(boxes.high[i])
                v, last = int(variable[boxes.point, f]), int(counts[f]) - 1
                literals += [(v, 0, low - 1)] if low > 0 else []
                literals += [(v, high + 1, last)] if high < last else []
            offset.append(len(literals))
    flat = np.array(literals, np.int32).reshape(-1, 3)
    return {
        "clause_offset": np.array(offset, np.int64),
        "clause_variable": np.ascontiguousarray(flat[:, 0]),
        "clause_low": np.ascontiguousarray(flat[:, 1]),
        "clause_high": np.ascontiguousarray(flat[:, 2]),
    }


def decide_on_trees(
    query: Query,
    budget: Budget,
    *,
    hints: Int32Array | None = None,
    seed: int = 0,
    memory: int | None = None,
    look: int | None = None,
    threads: int = 1,
) -> TreeOutcome | None:
    """Decides a question without an objective; None if the question needs the compiled path. The engine searches
    locally for `look` units of work (None: in proportion to the trees) before the first proof.
    """
    shared = not is_reused()
    try:
        running = reuse(
            query, ("tree path",), lambda: ask(query, hints, seed, memory, shared=shared, look=look, threads=threads)
        )
    except MemoryError:
        return TreeOutcome(None, False, "memory", {})
    if running is None:
        return None
    found = running.trees.decide(running.search, running.cells, budget)
    if found.cells is None or running.question.confirms(query, found.cells):
        return found
    return replace(found, cells=None, reason="rounding")


def maximise_on_trees(
    query: Query,
    budget: Budget,
    *,
    tolerance: Tolerance = EXACT,
    offset: float = 0.0,
    hints: Int32Array | None = None,
    seed: int = 0,
    memory: int | None = None,
    threads: int = 1,
) -> TreeOptimum | None:
    """The best value of a sum of scores; None if the question has another objective, or parts of other kinds.

    The search ends when the gap between value and bound is within the `tolerance`; absolute tolerances are in units of the
    form, relative tolerances refer to the form plus `offset`.
    """
    if query.objective is None or not is_sum_of_scores(query.objective):
        return None
    try:
        question = bound_question(query, optimises=True)
        if question is None or question.goal is None:
            return None
        trees, cells = question.trees, question.cells(query)
        search = trees.search(cells, question.bound, hints, seed, memory, _ALL, threads)
    except MemoryError:
        return TreeOptimum(None, None, "memory", {})
    if search is None:
        return None
    per_unit = 1 / question.goal.unit
    search.set_gap(
        relative=tolerance.relative * (1 - _SHOWN),
        absolute=max(1, int(min(tolerance.absolute * float(per_unit), _MOST))),
        reference=max(-_MOST, min(question.goal.base + int(Fraction(offset) * per_unit), _MOST)),
    )
    facts = run_search(search, budget)
    status, upper = facts["status"], facts["upper"]
    if facts["reason"] == "internal":
        return None
    found = cells.of_point(facts["point"]) if facts["point"] else None
    bound = None if status == "infeasible" or abs(upper) >= _UNKNOWN else question.goal.most(upper)
    if bound is not None and not query.objective.maximize:
        bound = -bound
    ended: str = facts["reason"] or "time" if status == "open" else status
    if found is not None and not question.confirms(query, found):
        found, ended = None, "rounding"
    return TreeOptimum(found, bound, ended, _statistics(facts))


def ask(
    query: Query,
    hints: Int32Array | None,
    seed: int,
    memory: int | None,
    *,
    shared: bool = False,
    look: int | None = None,
    threads: int = 1,
) -> RunningSearch | None:
    """The search for a question; None if the question needs the compiled path. With `shared`, the search uses trees that other
    questions share, so its proofs do not refer to the question's own cells.
    """
    question = None if query.objective is not None else bound_question(query, shared=shared)
    if question is None:
        return None
    cells = question.cells(query)
    search = question.trees.search(cells, question.bound, hints, seed, memory, look, threads)
    return None if search is None else RunningSearch(question.trees, cells, search, question)


@dataclass(frozen=True, eq=False)
class BoundQuestion:
    """A question in the engine's form: its shape's trees and rows, its bounds int64[rows], and its objective."""

    trees: TreeQuestion
    constraints: ScoreConstraints
    rows: list[IntegerRow]
    bound: Int64Array
    goal: IntegerRow | None = None

    def cells(self, query: Query) -> QuestionCells:
        """Maps the question's own grid to the searched grid."""
        return self.trees.cells(query, self.constraints)

    def confirms(self, query: Query, cells: Int32Array) -> bool:
        """True if `cells`, int32[points, features], found by the engine also satisfy the exact rows."""
        rounded = [row for row, whole_row in zip(self.constraints.rows, self.rows, strict=True) if whole_row.rounded]
        if not rounded:
            return True
        nowhere = np.full(cells.shape, np.nan)  # rows depend on scores, which cells determine
        point = Inputs(nowhere, cells, scores_of_cells(query, cells))
        return all(holds(row, point) for row in rounded)


@dataclass(frozen=True, eq=False)
class _Built:
    """The trees and rows shared by questions of one shape."""

    trees: TreeQuestion
    rows: list[IntegerRow]
    goal: IntegerRow | None


_BUILT: Kept[_Built | None] = Kept(32, lambda built: 0 if built is None else _BYTES_PER_NODE * built.trees.nodes)


def _build(
    query: Query, coarse: Coarse, parts: ScoreConstraints, upwards: LinearForm | None, *, shared: bool
) -> _Built | None:
    """The trees and rows for questions of one shape; None if integers cannot express the rows."""
    forests = forests_of(parts.rows)
    rows = [row_of(query, row.form, forests) for row in parts.rows]
    whole = [row for row in rows if row is not None]
    goal = None if upwards is None else row_of(query, upwards, forests)
    # A proof for an independent checker must be about exact rows.
    inexact = not shared and any(row.rounded for row in whole)
    if len(whole) < len(rows) or (upwards is not None and goal is None) or inexact:
        return None
    return _Built(TreeQuestion(query, coarse, parts, whole, goal), whole, goal)


def bound_question(query: Query, *, shared: bool = True, optimises: bool = False) -> BoundQuestion | None:
    """The constraints of a question, taken from the cache or built; None for the compiled path.

    With `optimises`, the trees also include the question's objective, a sum of scores.
    """
    parts = score_constraints_of(query, optimises=optimises)
    if parts is None or query.rows is not None or query.explained is not None:
        return None
    # Boxes to avoid consist of cells of the question's own grid.
    coarse = query.space.coarse if shared and not parts.avoided else None
    coarse = coarse or Coarse(query.space.grid, query.models)
    upwards = upwards_of(query.objective) if optimises and query.objective is not None else None
    owner = coarse if coarse is query.space.coarse else query.space
    key = (query.points, parts.same, tuple(row.form for row in parts.rows), tuple(parts.avoided), shared, upwards)
    built = _BUILT.of((owner, *coarse.models), key, lambda: _build(query, coarse, parts, upwards, shared=shared))
    if built is None:
        return None
    bounds = [whole_row.bound(row) for whole_row, row in zip(built.rows, parts.rows, strict=True)]
    if any(abs(bound).bit_length() > SCORE_BITS for bound in bounds):
        return None
    return BoundQuestion(built.trees, parts, built.rows, np.array(bounds or [0], np.int64), built.goal)
