"""drop-dead: removes leaves and branches that cannot be reached.

A leaf that implies a false literal, or two contradictory literals (x <= 3 and x > 5), is never reached. A tree with only one
remaining leaf contributes a constant. An unused predicate loses its variable: the cells that the predicate separated are
merged, and the last of these cells represents them (`extensions/certify/proof_text.py` relies on this).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from treesens.compiler.base.arrays import BoolArray, Int64Array, groups_of
from treesens.compiler.ir import (
    FALSE,
    TRUE,
    Clauses,
    Equal,
    ExactlyOne,
    Facts,
    LeafImplies,
    LeafSum,
    Linear,
    Membership,
    Module,
    Order,
)
from treesens.compiler.ir.module import leaf_implications
from treesens.compiler.ir.rewrite import Substitution, substitute
from treesens.compiler.passes.base import Chain, PassResult, Relation
from treesens.compiler.passes.remarks import Places, Remark


@dataclass(frozen=True)
class DropDead:
    name: ClassVar[str] = "drop-dead"
    relation: ClassVar[Relation] = Relation.EQUISATISFIABLE
    statistics_names: ClassVar[Mapping[str, str]] = {
        "leaves dropped": "leaves that cannot be reached",
        "predicates dropped": "predicates that nothing uses",
    }

    def run(self, module: Module) -> PassResult:
        target = np.arange(module.variables, dtype=np.int32) * 2
        leaf = module.leaf_variables()
        for op in module.ops_of(Facts):
            # Facts about order predicates are left to merge-guards, which also removes the predicates from the chain.
            mine = op.literals[leaf[op.literals >> 1]]
            target[mine >> 1] = np.where(mine & 1 == 0, TRUE, FALSE)
        dead = _dead_leaves(module)
        target[dead & (target >= 0)] = FALSE
        _last_leaf_standing(module, target)
        by = Substitution.compact(target)
        reduced = module if by.changes_nothing else substitute(module, by)
        unused = _unused_predicates(reduced)
        second = Substitution.compact(_merge_unused(reduced, unused))
        final = reduced if second.changes_nothing else substitute(reduced, second)
        statistics = {"leaves dropped": int(dead.sum()), "predicates dropped": int(unused.sum())}
        return PassResult(final, Chain((by, second)), statistics, remarks=lambda: _missed(final))


def _positions(module: Module) -> tuple[Int64Array, Int64Array]:
    """For every variable: the index of its order block (or -1), and its position in the block."""
    block_of = np.full(module.variables, -1, np.int64)
    position = np.zeros(module.variables, np.int64)
    for number, block in enumerate(module.blocks):
        if isinstance(block, Order):
            block_of[block.variables] = number
            position[block.variables] = np.arange(len(block.variables))
    return block_of, position


def _dead_leaves(module: Module) -> BoolArray:
    """Marks leaves with an empty box: in some order block, they require cells both at or below a position and above it."""
    dead = np.zeros(module.variables, bool)
    leaves, literals = leaf_implications(module)
    block_of, position = _positions(module)
    variable = literals >> 1
    ordered = block_of[variable] >= 0
    literal, here = literals[ordered], variable[ordered]
    key = leaves[ordered].astype(np.int64) * (len(module.blocks) + 1) + block_of[here]
    boxes, order, starts = groups_of(key)
    if len(boxes):
        negative = literal & 1 == 1
        # The cell is at most the least position, and above the greatest negated one.
        below = np.minimum.reduceat(np.where(negative, len(position), position[here])[order], starts)
        above = np.maximum.reduceat(np.where(negative, position[here], -1)[order], starts)
        dead[boxes[below <= above] // (len(module.blocks) + 1)] = True
    # The same for contradictory members of a table.
    pairs, _, starts = groups_of(leaves[~ordered].astype(np.int64) << 32 | variable[~ordered])
    dead[pairs[np.diff(np.append(starts, np.count_nonzero(~ordered))) > 1] >> 32] = True
    return dead


def _last_leaf_standing(module: Module, target: np.ndarray) -> None:
    """Fixes leaves: a tree's last remaining leaf is always reached; such a leaf excludes all other leaves of the tree.

    This is repeated until nothing changes, since one leaf may belong to trees of two points.
    """
    before = -1
    while before != (fixed := int(np.count_nonzero(target < 0))):
        before = fixed
        for block in module.blocks_of(ExactlyOne):
            alive = target[block.variables] != FALSE
            counts = np.add.reduceat(alive.astype(np.int64), block.offset[:-1])
            reached = np.add.reduceat((target[block.variables] == TRUE).astype(np.int64), block.offset[:-1])
            for t in np.flatnonzero((counts == 1) | (reached > 0)):
                leaves = block.variables[block.offset[t] : block.offset[t + 1]]
                if reached[t]:
                    target[leaves[target[leaves] >= 0]] = FALSE
                else:
                    target[leaves[target[leaves] != FALSE]] = TRUE


def _missed(module: Module) -> list[Remark]:
    only_in_tables = np.flatnonzero(_unused_predicates(module, tables=False) & ~_unused_predicates(module))
    return Places(module).remarks("missed", "not dropped: a table uses all predicates of its feature", only_in_tables)


def _unused_predicates(module: Module, *, tables: bool = True) -> BoolArray:
    """Marks order predicates that neither an op nor the objective uses. Tables, unless they are ignored, use every predicate of
    their block.
    """
    used = np.zeros(module.variables, bool)
    for op in module.ops:
        match op:
            case LeafImplies() | LeafSum() | Clauses() | Facts():
                used[op.literals >> 1] = True
            case Equal():
                used[op.left >> 1] = True
                used[op.right >> 1] = True
            case Linear():
                used[op.variables] = True
                if op.when >= 0:
                    used[op.when >> 1] = True
            case Membership() if tables:
                for order in op.orders:
                    used[module.blocks[order].variables] = True
    if module.objective is not None:
        used[module.objective.variables] = True
    ordered = np.zeros(module.variables, bool)
    for block in module.blocks_of(Order):
        ordered[block.variables] = True
    return ordered & ~used


def _merge_unused(module: Module, unused: BoolArray) -> np.ndarray:
    """Gives unused predicates the value of their left neighbour (false at the left end): the cell between the two predicates
    disappears, and the cell above represents both cells."""
    target = np.arange(module.variables, dtype=np.int32) * 2
    for block in module.blocks_of(Order):
        before = np.int32(FALSE)
        for v in block.variables:
            if unused[v]:
                target[v] = before
            before = target[v]
    return target
