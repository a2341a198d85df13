"""leaf-rows: one leaf-sum row per tree and predicate; with `intervals`, the row includes the leaves with tighter predicates.

Source: one row per node (eqs. root_const, non_root_const), so that a predicate is repeated for several nodes of a tree. Target:
for every tree and every predicate p[k] of a feature that the tree uses,

    sum of leaves that need the cell to be at most j <= k   <=  p[k]
    sum of leaves that need the cell to be above j >= k     <=  1 - p[k].

These leaves exclude each other, so a single row replaces several rows and is stronger than they are: by monotonicity, a leaf
that requires p[j] also requires every p[k] with k >= j. For a single tree and feature, the rows describe the convex hull.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from treesens.compiler.base.arrays import Int32Array, Int64Array, concatenated_ranges, distinct
from treesens.compiler.ir import ExactlyOne, LeafImplies, LeafSum, Module, Op, Order
from treesens.compiler.ir.module import leaf_implications
from treesens.compiler.passes.base import PassResult, Relation
from treesens.compiler.passes.remarks import Places, Remark


@dataclass(frozen=True)
class LeafRows:
    intervals: bool = True

    name: ClassVar[str] = "leaf-rows"
    relation: ClassVar[Relation] = Relation.EQUIVALENT
    statistics_names: ClassVar[Mapping[str, str]] = {
        "rows before": "leaf-sum rows of the input",
        "rows": "leaf-sum rows of the output",
    }

    def run(self, module: Module) -> PassResult:
        leaves, literals = leaf_implications(module)
        if len(leaves) == 0:
            return PassResult(module, statistics={"rows": 0})
        rows = _aggregate(module, leaves, literals, self.intervals)
        ops: list[Op] = [op for op in module.ops if not isinstance(op, LeafSum | LeafImplies)]
        before = sum(len(op.literals) for op in module.ops_of(LeafSum))
        statistics = {"rows before": before, "rows": len(rows.literals)}
        return PassResult(replace(module, ops=(rows, *ops)), statistics=statistics, remarks=lambda: _missed(module))


def _missed(module: Module) -> list[Remark]:
    _, block_of = _positions(module)
    _, literals = leaf_implications(module)
    guards = literals >> 1
    why = "without order: their rows have no leaves with tighter predicates"
    return Places(module).remarks("missed", why, guards[block_of[guards] < 0])


def _tree_of(module: Module) -> list[Int64Array]:
    """For every exactly-one block, the number of each variable's tree (or -1), counted across blocks.

    A leaf that two points share belongs to a tree in the block of each point, and may occur in the rows of both points.
    """
    result = []
    offset = 0
    for block in module.blocks_of(ExactlyOne):
        tree = np.full(module.variables, -1, np.int64)
        tree[block.variables] = np.repeat(np.arange(len(block.tree)), np.diff(block.offset)) + offset
        offset += len(block.tree)
        result.append(tree)
    return result


def _aggregate(module: Module, leaves: Int32Array, literals: Int32Array, intervals: bool) -> LeafSum:
    tight_leaves, tight_literals = _tightest(module, leaves, literals) if intervals else (leaves, literals)
    row_keys, row_leaves = [], []
    for tree in _tree_of(module):
        mine = tree[leaves] >= 0
        keys = distinct(tree[leaves[mine]] << 32 | literals[mine])
        expand = _Expansion(module, keys)
        here = tree[tight_leaves] >= 0
        key, leaf = expand.rows(tree[tight_leaves[here]], tight_literals[here], tight_leaves[here], intervals)
        row_keys.append(key)
        row_leaves.append(leaf)
    key, leaf = np.concatenate(row_keys), np.concatenate(row_leaves)
    order = np.lexsort((leaf, key))
    key, leaf = key[order], leaf[order]
    unique, start = np.unique(key, return_index=True)
    indptr = np.concatenate((start, [len(key)])).astype(np.int64)
    literal = (unique & 0xFFFFFFFF).astype(np.int32)
    return LeafSum(indptr, leaf.astype(np.int32), literal, np.zeros(len(unique), bool))


def _positions(module: Module) -> tuple[Int64Array, Int64Array]:
    """For every variable, a global position (consecutive within order blocks), and the index of its block (or -1)."""
    position = np.full(module.variables, -1, np.int64)
    block_of = np.full(module.variables, -1, np.int64)
    offset = 0
    for number, block in enumerate(module.blocks_of(Order)):
        position[block.variables] = offset + np.arange(len(block.variables))
        block_of[block.variables] = number
        offset += len(block.variables) + 1
    return position, block_of


def _tightest(module: Module, leaves: Int32Array, literals: Int32Array) -> tuple[Int32Array, Int32Array]:
    """The tightest literal per leaf, feature and direction: the chain of predicates implies all other literals."""
    position, block_of = _positions(module)
    variable = literals >> 1
    sign = literals & 1
    place = np.where(sign == 0, position[variable], -position[variable])
    group = np.where(block_of[variable] >= 0, block_of[variable] * 2 + sign, (1 << 40) + literals.astype(np.int64))
    order = np.lexsort((place, group, leaves))
    first = np.ones(len(order), bool)
    first[1:] = (leaves[order][1:] != leaves[order][:-1]) | (group[order][1:] != group[order][:-1])
    return leaves[order][first], literals[order][first]


class _Expansion:
    """Finds the rows (tree, literal) of a leaf: for its tightest literal, and for all weaker literals used by the tree."""

    def __init__(self, module: Module, keys: Int64Array) -> None:
        position, block_of = _positions(module)
        literal = keys & 0xFFFFFFFF
        variable = literal >> 1
        sign = literal & 1
        ordered = block_of[variable] >= 0
        # Sorted so that within (tree, block, sign) the rows run from the tightest literal to the weakest.
        self.group = np.where(ordered, (keys >> 32 << 20 | block_of[variable]) * 2 + sign, -1 - np.arange(len(keys)))
        place = np.where(sign == 0, position[variable], -position[variable])
        order = np.lexsort((place, self.group))
        self.keys, self.group = keys[order], self.group[order]
        self.sorter = np.argsort(self.keys)
        starts = np.concatenate(([True], self.group[1:] != self.group[:-1])) if len(keys) else np.zeros(0, bool)
        ends = np.flatnonzero(np.concatenate((starts[1:], [True]))) if len(keys) else np.zeros(0, np.int64)
        self.end = ends[np.cumsum(starts) - 1] + 1 if len(keys) else np.zeros(0, np.int64)

    def rows(
        self, tree: Int64Array, literals: Int32Array, leaves: Int32Array, intervals: bool
    ) -> tuple[Int64Array, Int32Array]:
        """The row key and the leaf of every membership."""
        key = tree << 32 | literals
        if not intervals:
            return key, leaves
        at = self.sorter[np.searchsorted(self.keys, key, sorter=self.sorter)]
        counts = self.end[at] - at
        return self.keys[concatenated_ranges(at, counts)], np.repeat(leaves, counts)
