"""warm-start: a solution that the native engine's local search has met becomes the start of the solver.

Source: a module. Target: the module with a `start`, the variables that are true in a solution; solvers that take a start
look at it first. The search is the engine's first turn of local search, counted in work and not in time, so that a module
has the same start on every machine. It says nothing about the module: without a start nothing is lost but time, and an
answer is verified wherever it came from. Put it last: passes that renumber variables drop it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from treesens.backends.native.adapter import adapt
from treesens.backends.native.problem import Mode
from treesens.backends.native.solver import HELP_BYTES, Solver
from treesens.compiler.base.arrays import BoolArray
from treesens.compiler.ir import Module, Start
from treesens.compiler.ir.evaluate import satisfies
from treesens.compiler.ir.module import leaf_implications, literal_values
from treesens.compiler.passes.base import PassResult, Relation
from treesens.errors import BackendError


@dataclass(frozen=True)
class WarmStart:
    seed: int = 0

    name: ClassVar[str] = "warm-start"
    relation: ClassVar[Relation] = Relation.EQUIVALENT

    def run(self, module: Module) -> PassResult:
        if module.variables == 0 or module.contradictory:
            return PassResult(module)
        try:
            adapted = adapt(module)
            mode: Mode = "objective" if adapted.problem.objective else "decide"
            result = Solver(adapted.problem, mode=mode, seed=self.seed, max_bytes=HELP_BYTES).run(node_limit=0)
        except (BackendError, ValueError, MemoryError):
            return PassResult(module, statistics={"declined": 1})
        if result.assignment is None or not result.is_witness:
            return PassResult(module, statistics={"starts": 0})
        point = with_leaves(module, adapted.assignment(result.assignment, module.variables))
        if not satisfies(module, point[None, :])[0]:
            # Rows that had to be rounded for the engine, or leaves that a pass has dropped with a fact of its own.
            return PassResult(module, statistics={"starts": 0})
        start = Start(np.flatnonzero(point).astype(np.int32))
        return PassResult(replace(module, warm_start=start), statistics={"starts": 1})


def with_leaves(module: Module, point: BoolArray) -> BoolArray:
    """Values of all variables from those of all but the leaves: a leaf is reached if all its guards are true."""
    leaves, literals = leaf_implications(module)
    reached = module.leaf_variables()
    reached[leaves[~literal_values(literals, point)]] = False
    return point | reached
