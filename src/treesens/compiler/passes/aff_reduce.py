"""aff-reduce (Aff-bin, Aff-multi): adds the sum of two opposed gap rows; unaffected leaves cancel in this sum.

    sum over affected leaves of (l_n(1) - l_n(2)) n.val >= 2 delta                               (Aff-bin)

and for classes c1, c2 the same sum, with + on the trees of c1 and - on the trees of c2 (Aff-multi). Two rows are opposed if
every leaf's coefficient in one row is exactly the negative of the same leaf's coefficient, at the other point, in the other
row: S(a) >= delta and -S(b) >= delta, or S_c1(a) - S_c2(a) >= eta and S_c2(b) - S_c1(b) >= eta. The new row is implied by its
parents, and has far fewer terms. The pass identifies unaffected leaves itself (the module need not equate their indicators).
Because these leaves cancel, the linear relaxation of the new row is stronger than that of its parents.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from treesens.compiler.base.arrays import Int64Array, distinct
from treesens.compiler.ir import TRUE, ExactlyOne, Linear, Module
from treesens.compiler.ir.rewrite import Substitution, fold_terms
from treesens.compiler.passes.base import PassResult, Relation, guard_classes, smallest_of_class
from treesens.compiler.passes.unaffected_leaves import unaffected_pairs


@dataclass(frozen=True)
class AffReduce:
    name: ClassVar[str] = "aff-reduce"
    relation: ClassVar[Relation] = Relation.EQUIVALENT
    statistics_names: ClassVar[Mapping[str, str]] = {
        "aff rows": "sums of two opposed rows",
        "aff terms": "terms in these sums",
    }

    def run(self, module: Module) -> PassResult:
        rows = [add_rows(left, right, name=f"aff.{left.name}.{right.name}") for left, right in opposed_rows(module)]
        if not rows:
            return PassResult(module, statistics={"aff rows": 0, "aff terms": 0})
        known = guard_classes(module)
        same = smallest_of_class(module.variables, *(known[side] for side in unaffected_pairs(module)))
        merge = Substitution((same[known] * 2).astype(np.int32), module.variables)
        reduced = []
        for row in rows:
            variables, coefficients, constant = fold_terms(row.variables, row.coefficients, merge)
            reduced.append(Linear(row.name, variables, coefficients, row.bound - constant, row.shift, implied=True))
        # A row without terms, 0 >= bound, is left to score-bounds and the backends.
        terms = sum(len(row.variables) for row in reduced)
        return PassResult(module.with_ops(*reduced), statistics={"aff rows": len(reduced), "aff terms": terms})


def opposed_rows(module: Module) -> list[tuple[Linear, Linear]]:
    """Pairs of unconditional rows over the leaves of two points, such that the coefficients of every leaf are opposite."""
    leaf_key, point_of = _leaf_identity(module)
    rows = []
    for row in module.ops_of(Linear):
        if row.when != TRUE or row.implied or len(row.variables) == 0 or np.any(leaf_key[row.variables] < 0):
            continue
        points = distinct(point_of[row.variables])
        # Rows over leaves that two points share are already reduced, or belong to several points.
        exclusive = points[points >= 0]
        if len(exclusive) <= 1:
            order = np.argsort(leaf_key[row.variables], kind="stable")
            rows.append((row, leaf_key[row.variables][order], row.coefficients[order], tuple(exclusive.tolist())))
    pairs = []
    for i, (left, left_key, left_values, left_points) in enumerate(rows):
        for right, right_key, right_values, right_points in rows[i + 1 :]:
            if left_points == right_points or left.shift != right.shift:
                continue
            if np.array_equal(left_key, right_key) and np.array_equal(left_values, -right_values):
                pairs.append((left, right))
    return pairs


def add_rows(left: Linear, right: Linear, *, name: str) -> Linear:
    """The sum of two rows with the same shift."""
    variables, inverse = np.unique(np.concatenate((left.variables, right.variables)), return_inverse=True)
    wide = object in (left.coefficients.dtype, right.coefficients.dtype)
    sums = np.zeros(len(variables), object if wide else np.int64)
    np.add.at(sums, inverse, np.concatenate((left.coefficients, right.coefficients)))
    keep = sums != 0
    return Linear(name, variables[keep].astype(np.int32), sums[keep], left.bound + right.bound, left.shift)


def _leaf_identity(module: Module) -> tuple[Int64Array, Int64Array]:
    """For every variable: the number of its (model, leaf), or -1 if none; and its point, or -1 if several share it."""
    key = np.full(module.variables, -1, np.int64)
    point = np.full(module.variables, -2, np.int64)
    for block in module.blocks_of(ExactlyOne):
        key[block.variables] = (np.int64(block.model) << 40) | block.leaf
        here = block.points[0] if len(block.points) == 1 else -1
        seen = point[block.variables]
        point[block.variables] = np.where(seen == -2, here, np.where(seen == here, here, -1))
    return key, point
