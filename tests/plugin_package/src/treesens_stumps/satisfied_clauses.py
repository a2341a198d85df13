"""satisfied-clauses: a clause that holds a fact says nothing.

Source: facts l (Facts) and clauses l or m or … that hold one of them.
Target: the same facts, without these clauses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar

import numpy as np

from treesens.compiler.base.arrays import indptr_of
from treesens.compiler.ir import Clauses, Facts, Module, Op
from treesens.compiler.passes.base import PassResult, Relation


@dataclass(frozen=True)
class SatisfiedClauses:
    name: ClassVar[str] = "satisfied-clauses"
    relation: ClassVar[Relation] = Relation.EQUIVALENT
    statistics_names: ClassVar[Mapping[str, str]] = {"clauses dropped": "clauses that hold a fact"}

    def run(self, module: Module) -> PassResult:
        facts = np.unique(np.concatenate([np.zeros(0, np.int32), *(op.literals for op in module.ops_of(Facts))]))
        dropped = 0
        ops: list[Op] = []
        for op in module.ops:
            if not isinstance(op, Clauses):
                ops.append(op)
                continue
            rows = [op.literals[start:end] for start, end in pairwise(op.indptr)]
            kept = [row for row in rows if not np.isin(row, facts).any()]
            dropped += len(rows) - len(kept)
            if kept:
                ops.append(Clauses(indptr_of([len(row) for row in kept]), np.concatenate(kept)))
        return PassResult(replace(module, ops=tuple(ops)), statistics={"clauses dropped": dropped})
