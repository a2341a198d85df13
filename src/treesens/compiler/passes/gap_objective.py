"""gap-objective (Obj-bin, Obj-multi): guides a solver towards the gap if the question has no objective.

    max sum over all leaves of (l_n(1) - l_n(2)) n.val                                           (Obj-bin)

The objective is the sum of the left-hand sides of two opposed gap rows, and is marked as a guide: its value has no meaning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from treesens.compiler.ir import Module, Objective
from treesens.compiler.ir.rewrite import Substitution, fold_terms
from treesens.compiler.passes.aff_reduce import add_rows, opposed_rows
from treesens.compiler.passes.base import PassResult, Relation, guard_classes


@dataclass(frozen=True)
class GapObjective:
    name: ClassVar[str] = "gap-objective"
    relation: ClassVar[Relation] = Relation.EQUIVALENT
    statistics_names: ClassVar[Mapping[str, str]] = {"guides": "objectives that only guide the search"}

    def run(self, module: Module) -> PassResult:
        pairs = opposed_rows(module) if module.objective is None else []
        if not pairs:
            return PassResult(module, statistics={"guides": 0})
        left, right = pairs[0]
        total = add_rows(left, right, name="guide")
        merge = Substitution((guard_classes(module) * 2).astype(np.int32), module.variables)
        variables, coefficients, constant = fold_terms(total.variables, total.coefficients, merge)
        guide = Objective(variables, coefficients, constant, total.shift, surrogate=True)
        return PassResult(replace(module, objective=guide), statistics={"guides": 1})
