"""One question, compiled once and solved in many boxes of cells: the engine receives only the part inside the box.

The cells are those of the question's grid; lowering is not repeated, and the engine drops dead leaves
(`engine/problem/restricted.hpp`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np

from treesens._engine import LevelSearch, SharedProblem
from treesens.backends.native.backend import NativeArtifact, NativeBackend
from treesens.backends.native.problem import SearchProblem
from treesens.backends.native.solver import SLICE, Solver
from treesens.compiler.base.arrays import BoolArray, Int32Array, frozen
from treesens.compiler.base.budget import Budget
from treesens.compiler.ir import Equal, Order
from treesens.compiler.pipeline import compile_query, decide_at_compile_time
from treesens.compiler.query.query import CellCost, LinearForm, Objective, Query
from treesens.compiler.query.values import Place
from treesens.errors import BackendError
from treesens.runtime.kept import Kept

if TYPE_CHECKING:
    from treesens._engine import Ended

_Facts_co = TypeVar("_Facts_co", bound="Ended", covariant=True)


@dataclass(frozen=True)
class LevelOutcome:
    """The least level of a solution is in [`low`, `high`]; `cells` has level `high`. `none` is True if no solution exists."""

    cells: Int32Array | None
    low: int
    high: int
    none: bool
    reason: str = ""
    nodes: int = 0
    decisions: int = 0

    @property
    def closed(self) -> bool:
        return self.none or (self.cells is not None and self.low == self.high)


class BoxedQuestion:
    """A question without an objective; its cells at the given places can be restricted repeatedly.

    `decided` is the answer if the compiler finds a contradiction; `only` is the combination of cells if exactly one remains.
    Raises `BackendError` if the engine does not support the question.
    """

    def __init__(self, query: Query, places: Sequence[Place], *, verify_each: bool = False) -> None:
        grid = query.space.grid
        # Every cell has its own cost, so that no pass may merge two of them.
        steps = tuple(CellCost(p, f, frozen(np.arange(grid[f].n_cells, dtype=np.int64)), 0) for p, f in places)
        self.query = replace(query, objective=Objective(LinearForm(costs=steps), False, "distance l1"))
        self.places = tuple(places)
        self.compilation = compile_query(self.query, "native", verify_each=verify_each)
        self.decided = decide_at_compile_time(self.compilation)
        self.only: Int32Array | None = None
        if self.decided is None:
            self._emit()

    def _emit(self) -> None:
        module = self.compilation.module
        if not self.compilation.compiled.found_survives or not self.compilation.compiled.none_survives:
            raise BackendError("solving in boxes requires a pipeline that preserves all answers")
        if any(True for _ in module.ops_of(Equal)):
            raise BackendError("solving in boxes requires merged copies of a feature")
        orders = [block for block in module.blocks if isinstance(block, Order)]
        self._variable = {(p, b.feature): (i, b.cells) for i, b in enumerate(orders) for p in b.points}
        if module.variables == 0:
            self.only = self._cells_of(np.zeros(0, bool))
            return
        artifact = NativeBackend().emit(module)
        assert isinstance(artifact, NativeArtifact)
        assert artifact.adapted is not None
        self._artifact, self._adapted = artifact, artifact.adapted
        self.problem = _without_objective(artifact.adapted.problem)
        self._start = np.concatenate(([0], np.cumsum(self.problem.size)))
        self._shared = SharedProblem(Solver(self.problem)._engine)

    @property
    def size(self) -> int:
        """Approximate bytes of the problem, in Python and in the engine."""
        return 0 if self.only is not None or self.decided is not None else 2 * self.problem.n_bytes

    def fixed_cells(self) -> dict[Place, int]:
        """The cells of all places with exactly one allowed cell."""
        fixed = [place for place in self.places if place not in self._variable]
        if not fixed:
            return {}
        cells = self.only if self.only is not None else self._recovered(np.zeros(len(self.problem.size), np.int32))
        return {place: int(cells[place]) for place in fixed}

    def least_level(
        self,
        levels: Mapping[Place, Int32Array],
        budget: Budget,
        *,
        seed: int = 0,
        memory: int | None = None,
    ) -> LevelOutcome:
        """The least level of a solution, which is the highest of its cells' `levels`, int32[n_cells] per place (-1: forbidden).

        Places with exactly one allowed cell are included: `low` and `high` are never below these cells' levels.
        """
        base = max((int(levels[place][cell]) for place, cell in self.fixed_cells().items()), default=0)
        if self.only is not None:
            high = max([base, *(int(of_cell[self.only[place]]) for place, of_cell in levels.items())])
            return LevelOutcome(self.only, high, high, False)
        level = np.zeros(int(self._start[-1]), np.int32)
        for place, of_cell in levels.items():
            if place in self._variable:
                variable, cells = self._variable[place]
                here = level[self._start[variable] : self._start[variable + 1]]
                wanted = of_cell[cells]
                here[:] = np.where((here < 0) | (wanted < 0), -1, np.maximum(here, np.maximum(wanted, base)))
        search = LevelSearch(
            self._shared, level, self.problem.bound, self.problem.hints, seed, -1 if memory is None else memory
        )
        facts = run_search(search, budget)
        cells_found = self._recovered(np.array(facts["point"], np.int32)) if facts["point"] else None
        return LevelOutcome(
            cells_found,
            max(base, facts["low"]),
            max(base, facts["high"]),
            facts["status"] == "infeasible",
            _words(facts),
            facts["nodes"],
            facts["decisions"],
        )

    def _recovered(self, assignment: Int32Array) -> Int32Array:
        point = self._adapted.assignment(assignment, self._artifact.merged_variables)
        assert self._artifact.postsolve is not None
        return self._cells_of(self._artifact.postsolve.recover(point))

    def _cells_of(self, point: BoolArray) -> Int32Array:
        compiled = self.compilation.compiled
        return compiled.source.cells(compiled.recover(point))


def _without_objective(problem: SearchProblem) -> SearchProblem:
    """The problem without its objective."""
    row = problem.constraints
    unary, leaf = problem.unary_row != row, problem.coefficient_row != row
    before = np.concatenate(([0], np.cumsum(leaf)))
    return replace(
        problem,
        objective=False,
        coefficient_offset=before[problem.coefficient_offset],
        coefficient_row=problem.coefficient_row[leaf],
        coefficient_value=problem.coefficient_value[leaf],
        unary_row=problem.unary_row[unary],
        unary_variable=problem.unary_variable[unary],
        unary_cell=problem.unary_cell[unary],
        unary_value=problem.unary_value[unary],
    )


class _Pausing(Protocol[_Facts_co]):
    """A resumable search."""

    def run(self, slice: float, seconds: float) -> None: ...
    def result(self) -> _Facts_co: ...


def run_search(search: _Pausing[_Facts_co], budget: Budget) -> _Facts_co:
    """Runs the search in slices, so that an interruption or the time limit takes effect immediately."""
    while True:
        search.run(slice=min(SLICE, budget.left()), seconds=budget.left())
        facts = search.result()
        if facts["status"] != "open" or facts["reason"] not in {"time", ""} or budget.over:
            return facts


def _words(facts: Ended) -> str:
    if facts["reason"] == "internal":
        return f"internal error of the native engine: {facts['fault']}"
    return "" if facts["status"] != "open" else str(facts["reason"] or "time")


# --- questions of one shape ---------------------------------------------------------------------------------------------------

_COMPILED: Kept[BoxedQuestion] = Kept(16, lambda compiled: compiled.size)


def boxed_question(query: Query, places: Sequence[Place], *, verify_each: bool = False) -> BoxedQuestion:
    """The compiled question, from the cache if a question that differs only in name and objective was compiled before."""
    key = (query.points, query.constraints, tuple(places))
    return _COMPILED.of(
        (query.space, *query.models),
        key,
        lambda: BoxedQuestion(query, places, verify_each=verify_each),
        anew=verify_each,
    )
