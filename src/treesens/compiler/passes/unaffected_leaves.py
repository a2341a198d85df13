"""unaffected-leaves (UnAff): a leaf's indicators are equal for two points if its guards cannot differ between the points.

    for every l_n in U: l_n(1) = l_n(2)                                                          (UnAff)

U is the set of leaves whose guards are all equal in both copies, by `Equal` ops or because the copies share variables. By
theorem thm:optimisations-are-sound of the paper, the solutions stay the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from treesens.compiler.base.arrays import Int32Array, Int64Array, begins_run, distinct, first_equal_rows
from treesens.compiler.ir import Equal, ExactlyOne, Module
from treesens.compiler.ir.module import leaf_implications
from treesens.compiler.passes.base import PassResult, Relation, guard_classes
from treesens.compiler.passes.remarks import Places, Remark


@dataclass(frozen=True)
class UnaffectedLeaves:
    name: ClassVar[str] = "unaffected-leaves"
    relation: ClassVar[Relation] = Relation.EQUIVALENT
    statistics_names: ClassVar[Mapping[str, str]] = {
        "unaffected leaves": "leaves whose indicators are equal for two points"
    }

    def run(self, module: Module) -> PassResult:
        left, right = unaffected_pairs(module)
        equal = Equal(left * np.int32(2), right * np.int32(2))
        after = module.with_ops(equal) if len(left) else module
        return PassResult(after, statistics={"unaffected leaves": len(left)}, remarks=lambda: _missed(module))


def _missed(module: Module) -> Iterator[Remark]:
    """A leaf that depends on several features is counted for each of them."""
    places = Places(module)
    leaves, literals = leaf_implications(module)
    image = guard_classes(module)[literals >> 1] << 1 | (literals & 1)
    for left, right in copies(module):
        copy, first = np.full((2, module.variables), -1, np.int64)
        copy[left], copy[right], first[left], first[right] = right, left, left, left
        guard = np.flatnonzero(copy[leaves] >= 0)
        known = leaves.astype(np.int64) << 32 | image
        guard = guard[~np.isin(copy[leaves[guard]] << 32 | image[guard], known)]
        for place, here in places.groups(literals[guard] >> 1):
            why = f"not equated: guards on {place} may differ between the points"
            yield from places.remarks("missed", why, first[leaves[guard[here]]])


def copies(module: Module) -> list[tuple[Int32Array, Int32Array]]:
    """For every two exactly-one blocks of one model, the variables of their common leaves."""
    units = list(module.blocks_of(ExactlyOne))
    result = []
    for i, left in enumerate(units):
        for right in units[i + 1 :]:
            if left.model == right.model:
                _, a, b = np.intersect1d(left.leaf, right.leaf, assume_unique=True, return_indices=True)
                result.append((left.variables[a], right.variables[b]))
    return result


def unaffected_pairs(module: Module) -> tuple[Int32Array, Int32Array]:
    """Pairs of different variables for the same leaf whose guards are equal in both copies."""
    signature, denied = _signatures(module), module.denied()
    left_parts, right_parts = [], []
    for left, right in copies(module):
        # Where a leaf is denied, its guards may hold without it.
        same = (signature[left] == signature[right]) & (left != right) & ~denied[left] & ~denied[right]
        left_parts.append(left[same])
        right_parts.append(right[same])
    if not left_parts:
        return np.zeros(0, np.int32), np.zeros(0, np.int32)
    return np.concatenate(left_parts).astype(np.int32), np.concatenate(right_parts).astype(np.int32)


def _signatures(module: Module) -> Int64Array:
    """A number per variable; two leaves have the same number iff they imply the same literals (up to equal variables)."""
    representative = guard_classes(module)
    leaves, literals = leaf_implications(module)
    image = representative[literals >> 1].astype(np.int64) << 1 | (literals & 1)
    key = distinct(leaves.astype(np.int64) << 32 | image)
    leaves, image = key >> 32, key & 0xFFFFFFFF
    starts = np.flatnonzero(begins_run(leaves))
    result = np.full(module.variables, -1, np.int64)
    result[leaves[starts]] = first_equal_rows(np.append(starts, len(leaves)), image)
    return result
