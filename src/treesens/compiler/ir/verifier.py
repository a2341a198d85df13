"""The validity rules of the IR as a table: each rule has a number, a sentence and a check."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np

from treesens.compiler.base.arrays import BoolArray, Int32Array, Int64Array, concatenated_ranges, distinct, row_of
from treesens.compiler.ir.module import Bool, ExactlyOne, Module, Order, leaf_implications
from treesens.compiler.ir.ops import Clauses, Equal, Facts, LeafImplies, LeafSum, Linear, Membership
from treesens.errors import IRError

Check = Callable[[Module], Iterator[str]]
INT64_SAFE = 2**62
_MOST_MODELS = 1 << 20


def _variables_in_range(module: Module) -> Iterator[str]:
    for i, block in enumerate(module.blocks):
        if len(block.variables) and not (block.variables.min() >= 0 and block.variables.max() < module.variables):
            yield f"block {i}"
    for i, op in enumerate(module.ops):
        for literals in _literals_of(module, i):
            if len(literals) and not (literals.min() >= 0 and literals.max() < 2 * module.variables):
                yield f"op {i} ({type(op).__name__})"
    goal = None if module.objective is None else module.objective.variables
    if goal is not None and len(goal) and not (goal.min() >= 0 and goal.max() < module.variables):
        yield "the objective"
    start = None if module.warm_start is None else module.warm_start.variables
    if start is not None and len(start) and not (start.min() >= 0 and start.max() < module.variables):
        yield "the start"


def _literals_of(module: Module, index: int) -> list[Int32Array]:
    op = module.ops[index]
    match op:
        case LeafImplies():
            return [op.leaves * np.int32(2), op.literals]
        case LeafSum():
            return [op.leaves * np.int32(2), op.literals]
        case Equal():
            return [op.left, op.right]
        case Clauses() | Facts():
            return [op.literals]
        case Linear():
            when = np.zeros(0, np.int32) if op.when == -1 else np.array([op.when], np.int32)
            return [op.variables * np.int32(2), when]
        case Membership():
            return [op.members * np.int32(2)]


def _every_variable_typed(module: Module) -> Iterator[str]:
    if module.variables > sum(len(block.variables) for block in module.blocks):
        yield f"most of {module.variables:,} variables are in no block"
        return
    seen = np.zeros(module.variables, np.int64)
    for block in module.blocks:
        seen[distinct(block.variables)] += 1
    if np.any(seen == 0):
        yield f"variable {int(np.flatnonzero(seen == 0)[0])} is in no block"


def _order_blocks(module: Module) -> Iterator[str]:
    taken: set[tuple[int, int]] = set()
    used = np.zeros(module.variables, bool)
    for i, block in enumerate(module.blocks):
        if not isinstance(block, Order):
            continue
        limit = module.features[block.feature].cells if 0 <= block.feature < len(module.features) else -1
        if limit < 0 or not all(0 <= p < len(module.points) for p in block.points) or not block.points:
            yield f"block {i}: unknown feature or point"
        elif len(block.cells) != len(block.variables) + 1 or np.any(np.diff(block.cells) <= 0):
            yield f"block {i}: cells must ascend, and there must be one cell more than predicates"
        elif block.cells[0] < 0 or block.cells[-1] >= limit:
            yield f"block {i}: a cell outside the grid"
        for p in block.points:
            if (block.feature, p) in taken:
                yield f"block {i}: feature {block.feature} of point {p} has two order blocks"
            taken.add((block.feature, p))
        if np.any(used[block.variables]):
            yield f"block {i}: a predicate is in two order blocks"
        used[block.variables] = True


def _unit_blocks(module: Module) -> Iterator[str]:
    order = np.zeros(module.variables, bool)
    for chain in module.blocks_of(Order):
        order[chain.variables] = True
    for i, block in enumerate(module.blocks):
        if not isinstance(block, ExactlyOne):
            continue
        bad = (
            len(block.offset) != len(block.tree) + 1
            or block.offset[0] != 0
            or np.any(np.diff(block.offset) < 1)
            or block.offset[-1] != len(block.variables)
            or len(block.leaf) != len(block.variables)
        )
        if bad:
            yield f"block {i}: offsets do not delimit the leaves"
        elif not 0 <= block.model < _MOST_MODELS or not all(0 <= p < len(module.points) for p in block.points):
            yield f"block {i}: unknown model or point"
        elif any(len(distinct(ids)) != len(ids) for ids in (block.variables, block.leaf)):
            yield f"block {i}: a leaf or its indicator appears twice"
        elif np.any(order[block.variables]):
            yield f"block {i}: a predicate used as a leaf indicator"


def _ragged(module: Module) -> Iterator[str]:
    for i, op in enumerate(module.ops):
        match op:
            case LeafSum():
                good = len(op.indptr) == len(op.literals) + 1 and op.indptr[-1] == len(op.leaves)
                good = good and len(op.equality) == len(op.literals)
            case Clauses():
                good = bool(len(op.indptr) and op.indptr[-1] == len(op.literals))
            case Membership():
                good = len(op.indptr) == len(op.members) + 1 and op.indptr[-1] == len(op.low) == len(op.high)
                good = good and len(op.orders) == len(op.members)
            case _:
                continue
        if not good or op.indptr[0] != 0 or np.any(np.diff(op.indptr) < 0):
            yield f"op {i} ({type(op).__name__})"


def _pairs(module: Module) -> Iterator[str]:
    for i, op in enumerate(module.ops):
        if (isinstance(op, LeafImplies) and len(op.leaves) != len(op.literals)) or (
            isinstance(op, Equal) and len(op.left) != len(op.right)
        ):
            yield f"op {i} ({type(op).__name__})"


def _leaves_are_leaves(module: Module) -> Iterator[str]:
    leaf = module.leaf_variables()
    for i, op in enumerate(module.ops):
        if isinstance(op, LeafImplies | LeafSum) and not np.all(leaf[op.leaves]):
            yield f"op {i} ({type(op).__name__})"
        elif isinstance(op, LeafSum) and not np.all(_in_one_tree(module, op)):
            yield f"op {i} ({type(op).__name__}): a row with leaves of several trees"


def _in_one_tree(module: Module, op: LeafSum) -> BoolArray:
    """Marks the rows whose leaves belong to one tree for one point, bool[rows]."""
    filled = np.diff(op.indptr) > 0
    starts, found = op.indptr[:-1][filled], ~filled
    for block in module.blocks_of(ExactlyOne) if len(starts) else ():
        tree = np.full(module.variables, -1)
        tree[block.variables] = row_of(block.offset)
        trees = tree[op.leaves]
        least = np.minimum.reduceat(trees, starts)
        found[filled] |= (least >= 0) & (least == np.maximum.reduceat(trees, starts))
    return found


def _linear_rows(module: Module) -> Iterator[str]:
    for i, op in enumerate(module.ops):
        if not isinstance(op, Linear):
            continue
        if len(op.variables) != len(op.coefficients) or len(distinct(op.variables)) != len(op.variables):
            yield f"op {i} ({op.name}): distinct variables, one coefficient each"
        elif op.coefficients.dtype not in (object, np.int64):
            yield f"op {i} ({op.name}): coefficients must be int64 or Python integers"
        elif op.coefficients.dtype == np.int64 and np.abs(op.coefficients.astype(float)).sum() >= INT64_SAFE:
            yield f"op {i} ({op.name}): the sum of int64 coefficients may overflow"
    goal = module.objective
    if goal is not None:
        if len(goal.variables) != len(goal.coefficients) or len(distinct(goal.variables)) != len(goal.variables):
            yield "the objective: distinct variables, one coefficient each"
        elif goal.coefficients.dtype not in (object, np.int64):
            yield "the objective: coefficients must be int64 or Python integers"


def _free_booleans(module: Module) -> Iterator[str]:
    typed = module.leaf_variables()
    for chain in module.blocks_of(Order):
        typed[chain.variables] = True
    for i, block in enumerate(module.blocks):
        if isinstance(block, Bool) and np.any(typed[block.variables]):
            yield f"block {i}: a predicate or a leaf indicator"
    members = np.concatenate([np.zeros(0, np.int32), *(op.members for op in module.ops_of(Membership))])
    if np.any(typed[members]) or len(distinct(members)) != len(members):
        yield "a table member is a predicate, a leaf indicator, or a member of another row"


def _leaves_exclude_each_other(module: Module) -> Iterator[str]:
    """Splits the leaves of every tree by guards until each part is one leaf, as the tree does. Denied leaves do not count."""
    denied = module.denied()
    chain, position = np.full(module.variables, -1), np.zeros(module.variables, np.int64)
    for number, order in enumerate(module.blocks_of(Order)):
        chain[order.variables], position[order.variables] = number, np.arange(len(order.variables))
    chain = np.where(chain < 0, module.variables + np.arange(module.variables), chain)
    leaves, literals = leaf_implications(module)
    first = np.searchsorted(leaves, np.arange(module.variables + 1))
    for i, block in enumerate(module.blocks):
        if not isinstance(block, ExactlyOne):
            continue
        for start, end in pairwise(block.offset.tolist()):
            mine = block.variables[start:end]
            guards = concatenated_ranges(first[mine], first[mine + 1] - first[mine])
            row = np.repeat(np.arange(len(mine)), first[mine + 1] - first[mine])
            keys, column = np.unique(chain[literals[guards] >> 1], return_inverse=True)
            at, negative = position[literals[guards] >> 1], (literals[guards] & 1).astype(bool)
            low = np.zeros((len(mine), len(keys)), np.int64)
            high = np.full((len(mine), len(keys)), module.variables, np.int64)
            np.maximum.at(low, (row[negative], column[negative]), at[negative] + 1)
            np.minimum.at(high, (row[~negative], column[~negative]), at[~negative])
            possible = np.all(low <= high, axis=1) & ~denied[mine]
            if not _separable(low[possible], high[possible]):
                yield f"block {i}: leaves {int(block.leaf[start])} to {int(block.leaf[end - 1])}"


def _separable(low: Int64Array, high: Int64Array) -> bool:
    """True if cuts of one coordinate after the other separate all boxes [low, high], int64[boxes, coordinates]."""
    parts = [np.arange(len(low))]
    while parts:
        part = parts.pop()
        if len(part) < 2:
            continue
        order = np.argsort(low[part], axis=0, kind="stable")
        reached = np.maximum.accumulate(np.take_along_axis(high[part], order, 0), axis=0)
        cuts = np.argwhere(reached[:-1] < np.take_along_axis(low[part], order, 0)[1:])
        if len(cuts) == 0:
            return False
        at, coordinate = cuts[np.argmin(np.abs(2 * cuts[:, 0] + 2 - len(part)))]
        parts += [part[order[: at + 1, coordinate]], part[order[at + 1 :, coordinate]]]
    return True


def _tables(module: Module) -> Iterator[str]:
    for i, op in enumerate(module.ops):
        if isinstance(op, Membership):
            for order in op.orders:
                if not (0 <= order < len(module.blocks)) or not isinstance(module.blocks[order], Order):
                    yield f"op {i}: block {order} is not an order block"


RULES: tuple[tuple[str, str, Check], ...] = (
    ("R1", "literals and variables lie within the module", _variables_in_range),
    ("R2", "every variable is in a block", _every_variable_typed),
    ("R3", "order blocks: one per feature and point, cells ascending and inside the grid", _order_blocks),
    ("R4", "exactly-one blocks: offsets delimit distinct leaf indicators", _unit_blocks),
    ("R5", "row pointers start at 0, never decrease, and end at the number of their entries", _ragged),
    ("R6", "leaf implications and equalities have two sides of equal length", _pairs),
    (
        "R7",
        "leaf implications and rows of leaf sums are over leaf indicators, a row over those of one tree",
        _leaves_are_leaves,
    ),
    ("R8", "linear rows: distinct variables, exact coefficients", _linear_rows),
    ("R9", "tables refer to order blocks", _tables),
    ("R10", "free Booleans have no other type, and a member has one row of a table", _free_booleans),
    ("R11", "guards separate the leaves of a tree", _leaves_exclude_each_other),
)


_GROUPS = ({"R1", "R5", "R6"}, {"R2", "R3", "R4", "R8", "R9"}, {"R7", "R10"}, {"R11"})
"""The order of checks: a rule indexes arrays by numbers that rules of earlier groups have checked."""


def verify(module: Module) -> None:
    """Raises `IRError` with the violated rules of the first group of `_GROUPS` that has any."""
    for names in _GROUPS:
        group = [rule for rule in RULES if rule[0] in names]
        broken = [f"{name} ({text}): {where}" for name, text, check in group for where in check(module)]
        if broken:
            made_by = " -> ".join(module.provenance) or "hand-written"
            raise IRError("the module breaks " + "; ".join(broken), place=f"module {module.name} ({made_by})")
