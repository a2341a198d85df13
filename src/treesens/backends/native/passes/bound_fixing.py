"""bound-fixing: excludes cells and leaves that no solution uses (reduced-cost fixing by max-marginals).

The native engine bounds the least slack of all score rows from above by messages between trees and features:

    bound = sum over trees of the value of the best leaf plus its messages >= slack of every point.

With a cell or a leaf fixed, the same messages give bound - (best - chosen); if this is negative, no solution uses the cell or
leaf. Source: a module. Target: the module with the facts "the feature is not in this cell" (p[k] false or true at the ends of a
domain, p[k-1] or not p[k] inside) and "this leaf is not reached"; the empty clause if nothing remains. merge-guards and
drop-dead remove the facts.

The engine computes in integers rounded upwards (engine/problem/rounding.hpp), so each fact is proved if the engine is correct:
a `none` after this pass depends on both the engine and the solver, and reports both. The objective is ignored, so optimal
solutions remain. Modules that the engine does not support (unmerged copies, leaves that must be reached) are left unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from treesens.backends.native.adapter import Adapted, adapt
from treesens.backends.native.solver import HELP_BYTES, Solver
from treesens.compiler.base.arrays import BoolArray, Int32Array, distinct, indptr_of, runs_of
from treesens.compiler.ir import Bool, Clauses, Facts, Membership, Module, Op, Order
from treesens.compiler.ir.rewrite import contradiction
from treesens.compiler.passes.base import PassResult, Relation
from treesens.compiler.passes.remarks import Remark
from treesens.errors import BackendError

PREMISE = "bounds of the native engine (exact)"


@dataclass(frozen=True)
class BoundFixing:
    work: int = 400_000_000
    """Maximum number of entries that the engine may read; each takes about a nanosecond."""
    probe: bool = True
    """Whether to also try runs of cells at the ends of every domain."""

    name: ClassVar[str] = "bound-fixing"
    relation: ClassVar[Relation] = Relation.EQUIVALENT
    statistics_names: ClassVar[Mapping[str, str]] = {
        "a start is known": "1 if the module has a start, so that nothing is bounded",
        "declined": "1 if the engine does not accept the module",
        "refuted": "1 if no solution remains",
        "cells out of reach": "cells that no solution uses",
        "leaves out of reach": "leaves that no solution reaches",
    }

    def run(self, module: Module) -> PassResult:
        if module.variables == 0 or module.contradictory:
            return PassResult(module)
        decides = not module.optimises
        if decides and module.warm_start is not None:
            return _unchanged(module, "a start is known", "a start is known, and one solution is enough")
        try:
            adapted = adapt(module)
            fixing = Solver(adapted.problem, max_bytes=HELP_BYTES).fix(self.work, probe=self.probe)
        except (BackendError, ValueError, MemoryError) as error:
            # The engine does not accept the module, rejects it after checking, or runs out of memory.
            return _unchanged(module, "declined", f"the engine declines the module: {str(error).partition(chr(10))[0]}")
        if fixing.infeasible:
            return PassResult(
                module.with_ops(contradiction()), statistics={"refuted": 1}, proof_dependencies=(PREMISE,)
            )
        cells = _facts_of_cells(module, adapted, fixing.cells)
        leaves = distinct(adapted.leaf_variable[~fixing.leaves]) * 2 + 1
        literals = np.concatenate([cells.literals, leaves]).astype(np.int32)
        known = np.concatenate([np.zeros(0, np.int32), *(op.literals for op in module.ops_of(Facts))])
        literals = literals[~np.isin(literals, known)]
        ops: list[Op] = [Facts(literals)] if len(literals) else []
        if cells.holes:
            ops.append(Clauses(indptr_of([2] * len(cells.holes)), np.array(cells.holes, np.int32).ravel()))
        statistics = {"cells out of reach": cells.count, "leaves out of reach": len(leaves)}
        return PassResult(module.with_ops(*ops), statistics=statistics, proof_dependencies=(PREMISE,) if ops else ())


def _unchanged(module: Module, statistic: str, why: str) -> PassResult:
    remark = Remark("missed", f"variables not bounded: {why}", module.variables, "module")
    return PassResult(module, statistics={statistic: 1}, remarks=lambda: [remark])


@dataclass(frozen=True)
class _Facts:
    literals: Int32Array
    holes: list[tuple[int, int]]
    count: int


def _facts_of_cells(module: Module, adapted: Adapted, allowed: BoolArray) -> _Facts:
    """Facts for the module from `allowed`, bool[cells], which marks allowed cells, variable by variable."""
    start = indptr_of(adapted.problem.size)
    literals: list[int] = []
    holes: list[tuple[int, int]] = []
    members = np.zeros(module.variables, bool)
    for table in module.ops_of(Membership):
        members[table.members] = True  # members represent cells of a feature, whose facts determine them
    for block in module.blocks:
        if isinstance(block, Order) and len(block.variables):
            engine = int(adapted.places.variable[block.variables[0]])
            allowed_cells = allowed[start[engine] : start[engine + 1]]
            p = block.variables
            for low, high in zip(*(x.tolist() for x in runs_of(~allowed_cells)), strict=True):
                if low == 0:
                    literals.append(int(p[high]) * 2 + 1)
                elif high == len(allowed_cells) - 1:
                    literals.append(int(p[low - 1]) * 2)
                else:
                    holes.append((int(p[low - 1]) * 2, int(p[high]) * 2 + 1))
        elif isinstance(block, Bool):
            for v in block.variables.tolist():
                engine = int(adapted.places.variable[v])
                if not members[v]:
                    can_be_false, can_be_true = allowed[start[engine] : start[engine + 1]]
                    if not can_be_false:
                        literals.append(v * 2)
                    if not can_be_true:
                        literals.append(v * 2 + 1)
    return _Facts(np.array(literals, np.int32), _new(module, holes), int(np.count_nonzero(~allowed)))


def _new(module: Module, holes: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Excluded cells for which the module has no clause yet."""
    known = {
        tuple(sorted(op.literals[a:b].tolist()))
        for op in module.ops_of(Clauses)
        for a, b in zip(op.indptr[:-1], op.indptr[1:], strict=True)
    }
    return [hole for hole in holes if tuple(sorted(hole)) not in known]
