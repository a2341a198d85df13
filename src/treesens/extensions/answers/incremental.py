"""Compiles a question once and solves it repeatedly with the native engine, with different costs or cells of one point."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from treesens.backends.base import Limits, Termination
from treesens.backends.native.backend import NativeArtifact, NativeBackend
from treesens.compiler.base.arrays import FloatArray, Int32Array, Int64Array, frozen
from treesens.compiler.base.budget import StopEvent
from treesens.compiler.base.tolerance import Tolerance
from treesens.compiler.ir import Equal, Order
from treesens.compiler.pipeline import compile_query, decide_at_compile_time
from treesens.compiler.query.query import CellCost, LinearForm, Objective, Query
from treesens.errors import BackendError

_SHIFT = 30
"""The engine's costs are integers in units of 2**-30, rounded down, so that bounds remain valid."""
_CLOSE = 1e-10
"""The relative gap at which a sum of costs counts as the minimum."""


@dataclass(frozen=True)
class GroupOutcome:
    """The engine's result for one group: cells (None without a pair) and a lower bound; `empty` is True if no pair exists."""

    cells: Int32Array | None
    bound: float
    closed: bool
    empty: bool


class IncrementalSearch:
    """One compiled question, which is solved repeatedly with different costs and cells of one point.

    If the compiler finds a contradiction, `decided` is the answer and no search is needed.
    """

    def __init__(
        self,
        query: Query,
        point: int,
        features: Sequence[int],
        *,
        hints: Int32Array | None = None,
        seed: int = 0,
        memory_limit: int | None = None,
        verify_each: bool = False,
    ) -> None:
        grid = query.space.grid
        # Every cell has a different cost, so that no pass may merge two cells.
        steps = tuple(CellCost(point, f, frozen(np.arange(grid[f].n_cells, dtype=np.int64)), 0) for f in features)
        self.query = replace(query, objective=Objective(LinearForm(costs=steps), False, "distance l1"))
        self.compilation = compile_query(self.query, "native", verify_each=verify_each)
        self.decided = decide_at_compile_time(self.compilation)
        self.backend = NativeBackend()
        self.seed, self.memory_limit = seed, memory_limit
        self.point = point
        module = self.compilation.module
        if any(True for _ in module.ops_of(Equal)):
            raise BackendError("a repeated search needs merged copies of a feature")
        orders = [block for block in module.blocks if isinstance(block, Order)]
        self.variable = {b.feature: (i, b.cells) for i, b in enumerate(orders) if point in b.points}
        self.artifact = NativeArtifact("native", "", 0, has_objective=False)
        if self.decided is None and module.variables:
            artifact = self.backend.emit(module, hints=hints)
            assert isinstance(artifact, NativeArtifact)
            self.artifact = artifact

    def solve(
        self,
        costs: dict[int, FloatArray] | None,
        most: float,
        seconds: float,
        stop: StopEvent | None,
        *,
        optimize: bool = True,
    ) -> GroupOutcome:
        """The least sum of costs (float64[n_cells] per feature) over cells whose cost is at most `most`.

        Without costs, or with `optimize=False`, any pair suffices, and the bound is 0.
        """
        adapted = self.artifact.adapted
        if adapted is None:
            # Every feature has one cell left and the compiler has found no contradiction, so this is the only pair.
            compiled = self.compilation.compiled
            cells = compiled.source.cells(compiled.recover(np.zeros(0, bool)))
            paid = [float(of_cell[cells[self.point, f]]) for f, of_cell in (costs or {}).items()]
            if any(cost > most for cost in paid):
                return GroupOutcome(None, math.inf, True, True)
            return GroupOutcome(cells, max(0.0, math.fsum(paid) * (1 - 1e-12)) if optimize else 0.0, True, False)
        problem = adapted.problem
        objective = problem.constraints
        kept = problem.unary_row != objective
        start = np.concatenate(([0], np.cumsum(problem.size)))
        allowed = problem.allowed.copy()
        unary: list[tuple[Int64Array, int, Int64Array]] = []
        for f, of_cell in (costs or {}).items():
            if f not in self.variable:
                continue
            variable, cells = self.variable[f]
            cell_costs = of_cell[cells]
            allowed[start[variable] : start[variable + 1]] = cell_costs <= most
            if not (cell_costs <= most).any():
                return GroupOutcome(None, math.inf, True, True)
            units = -np.floor(np.where(np.isfinite(cell_costs), cell_costs, 0.0) * (1 << _SHIFT)).astype(np.int64)
            unary.append((np.flatnonzero(units), variable, units[units != 0]))
        changed = replace(
            problem,
            allowed=allowed,
            objective=optimize and costs is not None,
            unary_row=np.concatenate(
                [problem.unary_row[kept], *(np.full(len(c), objective, np.int32) for c, _, _ in unary)]
            ),
            unary_variable=np.concatenate(
                [problem.unary_variable[kept], *(np.full(len(c), v, np.int32) for c, v, _ in unary)]
            ),
            unary_cell=np.concatenate([problem.unary_cell[kept], *(c.astype(np.int32) for c, _, _ in unary)]),
            unary_value=np.concatenate([problem.unary_value[kept], *(u for _, _, u in unary)]),
        )
        with_costs = replace(
            adapted, problem=changed, objective_shift=_SHIFT, objective_constant=0, objective_dropped=0
        )
        limits = Limits(seconds, self.memory_limit, 1, self.seed, Tolerance(_CLOSE))
        outcome = self.backend.solve(replace(self.artifact, adapted=with_costs), limits, stop=stop)
        if outcome.termination is Termination.INFEASIBLE:
            return GroupOutcome(None, math.inf, True, True)
        found = None
        if outcome.assignment is not None:
            compiled = self.compilation.compiled
            found = compiled.source.cells(compiled.recover(outcome.assignment))
        closed = outcome.termination in {Termination.OPTIMAL, Termination.SATISFIED}
        bound = 0.0 if outcome.bound is None or costs is None or not optimize else max(0.0, -outcome.bound)
        return GroupOutcome(found, bound, closed, False)
