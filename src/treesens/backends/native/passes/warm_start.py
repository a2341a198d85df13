"""warm-start: a solution found by the native engine's local search becomes the solver's start.

Source: a module. Target: the module with a `start`, the variables that are true in a solution; solvers with warm starts try it
first. The search is the engine's first round of local search, limited by work instead of time, so that a module gets the same
start on every machine. The start proves nothing about the module: a missing start costs only time, and every answer is
verified. Run warm-start last: passes that renumber variables discard the start.
"""

from __future__ import annotations

from collections.abc import Mapping
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
    statistics_names: ClassVar[Mapping[str, str]] = {
        "starts": "solutions found",
        "declined": "1 if the engine does not accept the module",
    }

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
            # Rows were rounded for the engine, or a pass has dropped leaves through facts that the engine does not have.
            return PassResult(module, statistics={"starts": 0})
        start = Start(np.flatnonzero(point).astype(np.int32))
        return PassResult(replace(module, warm_start=start), statistics={"starts": 1})


def with_leaves(module: Module, point: BoolArray) -> BoolArray:
    """Derives the values of leaves from the values of all other variables: a leaf is reached if all its guards are true."""
    leaves, literals = leaf_implications(module)
    reached = module.leaf_variables()
    reached[leaves[~literal_values(literals, point)]] = False
    return point | reached
