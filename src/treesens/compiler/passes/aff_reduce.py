"""aff-reduce (Aff-bin, Aff-multi): adds the sum of two opposed gap rows; unaffected leaves cancel in this sum.

    sum over affected leaves of (l_n(1) - l_n(2)) n.val >= 2 delta                               (Aff-bin)

and for classes c1, c2 the same sum, with + on the trees of c1 and - on the trees of c2 (Aff-multi). Two rows are opposed if
every leaf's coefficient in one row is exactly the negative of the same leaf's coefficient, at the other point, in the other
row: S(a) >= delta and -S(b) >= delta, or S_c1(a) - S_c2(a) >= eta and S_c2(b) - S_c1(b) >= eta. The new row is implied by its
parents, and has far fewer terms. The pass identifies unaffected leaves itself (the module need not equate their indicators).
Because these leaves cancel, the linear relaxation of the new row is stronger than the relaxation of its parents.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from treesens.compiler.base.arrays import Int64Array, distinct
from treesens.compiler.ir import TRUE, ExactlyOne, Linear, Module
from treesens.compiler.ir.rewrite import Substitution, fold_terms
from treesens.compiler.passes.base import PassResult, Relation, guard_classes, smallest_of_class
from treesens.compiler.passes.remarks import Remark
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
            return PassResult(module, statistics={"aff rows": 0, "aff terms": 0}, remarks=lambda: _missed(module))
        known = guard_classes(module)
        same = smallest_of_class(module.variables, *(known[side] for side in unaffected_pairs(module)))
        merge = Substitution((same[known] * 2).astype(np.int32), module.variables)
        reduced = []
        for row in rows:
            variables, coefficients, constant = fold_terms(row.variables, row.coefficients, merge)
            reduced.append(Linear(row.name, variables, coefficients, row.bound - constant, row.shift, implied=True))
        # A row without terms, 0 >= bound, is left to score-bounds and the backends.
        terms = sum(len(row.variables) for row in reduced)
        statistics = {"aff rows": len(reduced), "aff terms": terms}
        return PassResult(module.with_ops(*reduced), statistics=statistics, remarks=lambda: _missed(module))


def opposed_rows(module: Module) -> list[tuple[Linear, Linear]]:
    """Pairs of unconditional rows over the leaves of two points, such that the coefficients of every leaf are opposite."""
    leaf_key, point_of = _leaf_identity(module)
    rows = []
    for row in module.ops_of(Linear):
        if _unfit(row, leaf_key, point_of):
            continue
        points = distinct(point_of[row.variables])
        order = np.argsort(leaf_key[row.variables], kind="stable")
        rows.append((row, leaf_key[row.variables][order], row.coefficients[order], tuple(points[points >= 0].tolist())))
    pairs = []
    for i, (left, left_key, left_values, left_points) in enumerate(rows):
        for right, right_key, right_values, right_points in rows[i + 1 :]:
            if left_points == right_points or left.shift != right.shift:
                continue
            if np.array_equal(left_key, right_key) and np.array_equal(left_values, -right_values):
                pairs.append((left, right))
    return pairs


def _unfit(row: Linear, leaf_key: Int64Array, point_of: Int64Array) -> str:
    """Why no row can be opposed to this one; empty if one can."""
    if row.when != TRUE:
        return "it is conditional"
    if row.implied:
        return "other rows imply it"
    if len(row.variables) == 0 or np.any(leaf_key[row.variables] < 0):
        return "it has terms other than leaves, or none"
    # Rows over leaves that two points share are already reduced, or belong to several points.
    points = distinct(point_of[row.variables])
    return "its leaves belong to several points" if np.count_nonzero(points >= 0) > 1 else ""


def _missed(module: Module) -> Iterator[Remark]:
    leaf_key, point_of = _leaf_identity(module)
    used = {id(row) for pair in opposed_rows(module) for row in pair}
    for row in module.ops_of(Linear):
        if id(row) not in used:
            why = _unfit(row, leaf_key, point_of) or "no row of another point has the opposite coefficients"
            yield Remark(
                "missed", f"terms of a row without an opposed row: {why}", len(row.variables), f"row {row.name}"
            )


def add_rows(left: Linear, right: Linear, *, name: str) -> Linear:
    """The sum of two rows with the same shift."""
    variables, inverse = np.unique(np.concatenate((left.variables, right.variables)), return_inverse=True)
    wide = object in (left.coefficients.dtype, right.coefficients.dtype)
    sums = np.zeros(len(variables), object if wide else np.int64)
    np.add.at(sums, inverse, np.concatenate((left.coefficients, right.coefficients)))
    keep = sums != 0
    return Linear(name, variables[keep].astype(np.int32), sums[keep], left.bound + right.bound, left.shift)


def _leaf_identity(module: Module) -> tuple[Int64Array, Int64Array]:
    """For every variable: the number of its (model, leaf), or -1 if none; and its point, or -1 if it has several points."""
    key = np.full(module.variables, -1, np.int64)
    point = np.full(module.variables, -2, np.int64)
    for block in module.blocks_of(ExactlyOne):
        key[block.variables] = (np.int64(block.model) << 40) | block.leaf
        here = block.points[0] if len(block.points) == 1 else -1
        seen = point[block.variables]
        point[block.variables] = np.where(seen == -2, here, np.where(seen == here, here, -1))
    return key, point
