"""share-copies: merges copies of predicates and leaves that cannot differ between the points.

Source: two copies with `Equal` ops (eq. same, and UnAff if `unaffected-leaves` ran before). Target: one variable per class of
equal variables. Equal order blocks are merged, trees whose leaves are all shared are moved to one exactly-one block for both
points, and repeated rows are dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from treesens.compiler.base.arrays import Int32Array, concatenated_ranges, distinct, indptr_of, row_of
from treesens.compiler.ir import Block, ExactlyOne, LeafImplies, LeafSum, Membership, Module, Op, Order
from treesens.compiler.ir.rewrite import Substitution, dedupe_leaf_sums, rearranged, substitute
from treesens.compiler.passes.base import PassResult, Relation, guard_classes
from treesens.compiler.passes.remarks import Places, Remark
from treesens.compiler.passes.unaffected_leaves import copies


@dataclass(frozen=True)
class ShareCopies:
    name: ClassVar[str] = "share-copies"
    relation: ClassVar[Relation] = Relation.EQUIVALENT
    statistics_names: ClassVar[Mapping[str, str]] = {"variables shared": "variables that became another one"}

    def run(self, module: Module) -> PassResult:
        representative = guard_classes(module)
        by = Substitution.compact((representative * 2).astype(np.int32))
        merged = _merge_units(_merge_orders(substitute(module, by)))
        merged = _merge_tables(_merge_rows(merged))
        statistics = {"variables shared": module.variables - by.variables}
        return PassResult(merged, by, statistics, remarks=lambda: _missed(merged))


def _missed(module: Module) -> Iterator[Remark]:
    places = Places(module)
    copied: dict[int, list[Int32Array]] = {}
    for block in module.blocks_of(Order):
        copied.setdefault(block.feature, []).append(block.variables)
    for first, *others in copied.values():
        for variables in others:
            differ = np.setdiff1d(variables, first)
            yield from places.remarks("missed", "not shared: they may differ between the points", differ)
    for left, right in copies(module):
        differ = left[left != right]
        yield from places.remarks("missed", "not shared: no row equates the indicators of the points", differ)


def _merge_orders(module: Module) -> Module:
    """Merges order blocks of different points if the blocks share predicates and cells."""
    first: dict[tuple[int, bytes, bytes], int] = {}
    blocks: list[Block] = []
    moved: list[int] = []
    for block in module.blocks:
        if isinstance(block, Order):
            # Blocks without predicates are merged, too: the feature has one cell left for all of these points.
            key = (block.feature, block.variables.tobytes(), block.cells.tobytes())
            if key in first:
                known = blocks[first[key]]
                assert isinstance(known, Order)
                blocks[first[key]] = replace(known, points=tuple(sorted({*known.points, *block.points})))
                moved.append(first[key])
                continue
            first[key] = len(blocks)
        moved.append(len(blocks))
        blocks.append(block)
    return rearranged(module, blocks, moved)


def _merge_units(module: Module) -> Module:
    """If a tree's leaves are the same variables for several points, moves the tree to one block for these points."""
    trees: dict[tuple[int, int, bytes], tuple[set[int], Int32Array, Int32Array]] = {}
    rest: list[Block] = []
    for block in module.blocks:
        if not isinstance(block, ExactlyOne):
            rest.append(block)
            continue
        for t in range(len(block.tree)):
            leaves = slice(block.offset[t], block.offset[t + 1])
            key = (block.model, int(block.tree[t]), block.variables[leaves].tobytes())
            entry = trees.setdefault(key, (set(), block.leaf[leaves], block.variables[leaves]))
            entry[0].update(block.points)
    groups: dict[tuple[int, tuple[int, ...]], list[tuple[int, Int32Array, Int32Array]]] = {}
    for (model, tree, _), (points, leaf, variables) in trees.items():
        groups.setdefault((model, tuple(sorted(points))), []).append((tree, leaf, variables))
    units = [
        ExactlyOne(
            model,
            points,
            np.array([tree for tree, _, _ in members], np.int32),
            indptr_of([len(leaf) for _, leaf, _ in members]),
            np.concatenate([leaf for _, leaf, _ in members]).astype(np.int32),
            np.concatenate([variables for _, _, variables in members]).astype(np.int32),
        )
        for (model, points), members in groups.items()
    ]
    orders = [b for b in rest if isinstance(b, Order)]
    others = [b for b in rest if not isinstance(b, Order)]
    position = np.cumsum([isinstance(b, Order) for b in module.blocks]) - 1
    return rearranged(module, (*orders, *units, *others), position)


def _merge_rows(module: Module) -> Module:
    """Collects all leaf sums in one op and all paths in another, and drops repeated rows."""
    sums = list(module.ops_of(LeafSum))
    paths = list(module.ops_of(LeafImplies))
    ops: list[Op] = [op for op in module.ops if not isinstance(op, LeafSum | LeafImplies)]
    if sums:
        counts = np.concatenate([np.diff(op.indptr) for op in sums])
        indptr = indptr_of(counts)
        rows = row_of(indptr)
        every = np.ones(len(counts), bool)
        ops.insert(
            0,
            dedupe_leaf_sums(
                rows,
                np.concatenate([op.leaves for op in sums]),
                np.concatenate([op.literals for op in sums]),
                np.concatenate([op.equality for op in sums]),
                every,
                np.ones(len(rows), bool),
            ),
        )
    if paths:
        leaves = np.concatenate([op.leaves for op in paths]).astype(np.int64)
        key = distinct(leaves << 32 | np.concatenate([op.literals for op in paths]))
        ops.insert(0, LeafImplies((key >> 32).astype(np.int32), (key & 0xFFFFFFFF).astype(np.int32)))
    return replace(module, ops=tuple(ops))


def _merge_tables(module: Module) -> Module:
    """Keeps one of several equal rows of a table: their members have become one variable (`guard_classes`)."""
    seen: set[int] = set()
    ops: list[Op] = []
    for op in module.ops:
        if not isinstance(op, Membership):
            ops.append(op)
            continue
        _, first = np.unique(op.members, return_index=True)
        keep = [int(i) for i in np.sort(first) if int(op.members[i]) not in seen]
        seen.update(op.members.tolist())
        counts = np.diff(op.indptr)[keep]
        index = concatenated_ranges(op.indptr[:-1][keep], counts)
        ops.append(Membership(op.members[keep], op.orders[keep], indptr_of(counts), op.low[index], op.high[index]))
    return replace(module, ops=tuple(ops))
