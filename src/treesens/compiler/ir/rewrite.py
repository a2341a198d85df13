"""Substitution of variables, used by all passes that merge or fix variables.

A substitution maps each old variable to a literal over the new variables, or to a constant. `recover` is the inverse: it
derives the value of every old variable from an assignment of the new variables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import assert_never

import numpy as np

from treesens.compiler.base.arrays import (
    ArrayRecord,
    BoolArray,
    Int32Array,
    IntegerArray,
    concatenated_ranges,
    distinct,
    first_equal_rows,
    indptr_of,
    row_of,
)
from treesens.compiler.base.budget import steadily
from treesens.compiler.ir.module import (
    FALSE,
    TRUE,
    Block,
    Bool,
    ExactlyOne,
    Module,
    Order,
    is_negative,
    literal_values,
    variable_of,
)
from treesens.compiler.ir.ops import (
    Clauses,
    Equal,
    Facts,
    LeafImplies,
    LeafSum,
    Linear,
    Membership,
    Objective,
    Op,
    Start,
)
from treesens.errors import InternalError


@dataclass(frozen=True, eq=False)
class Substitution(ArrayRecord):
    """`target`, int32[old variables], maps each old variable to a literal over the new variables, or to TRUE or FALSE."""

    target: Int32Array
    variables: int

    def recover(self, assignment: BoolArray) -> BoolArray:
        """The assignment of the old variables [..., old] for an assignment of the new variables [..., new]."""
        return literal_values(self.target, assignment)

    def literal(self, literals: Int32Array) -> Int32Array:
        """The images of literals."""
        image = self.target[variable_of(literals)]
        return np.asarray(image ^ is_negative(literals).astype(np.int32), np.int32)

    @staticmethod
    def identity(variables: int) -> Substitution:
        return Substitution(np.arange(variables, dtype=np.int32) * 2, variables)

    @staticmethod
    def compact(target: Int32Array) -> Substitution:
        """Renumbers the used variables and keeps their order; `target` refers to old variable numbers."""
        kept = np.zeros(len(target), bool)
        kept[target[target >= 0] >> 1] = True
        number = (np.cumsum(kept) - 1).astype(np.int32)
        renumbered = np.where(target < 0, target, (number[np.maximum(target, 0) >> 1] << 1) | (target & 1))
        return Substitution(renumbered.astype(np.int32), int(kept.sum()))

    @property
    def changes_nothing(self) -> bool:
        """True if every variable is mapped to itself."""
        return self.variables == len(self.target) and bool(np.all(self.target == 2 * np.arange(len(self.target))))


def substitute(module: Module, by: Substitution) -> Module:
    """The module over the new variables. Order blocks keep their meaning, constants are folded, and duplicates are removed."""
    extra: list[Int32Array] = []  # literals that have become true during the rewrite
    made = [_block(block, by) for block in module.blocks]
    blocks = tuple(b for part in made for b in part)
    # The new index of every old block: blocks may vanish.
    kept = indptr_of([len(part) for part in made])[:-1].astype(np.int32)
    ops: list[Op] = []
    for op in module.ops:
        ops.extend(_op(op, by, kept, extra))
    for block in module.blocks_of(ExactlyOne):
        ops.extend(_fixed_trees(block, by, extra))
    if extra:
        literals = distinct(np.concatenate(extra))
        if np.any(literals == FALSE):
            ops.append(contradiction())
        literals = literals[literals >= 0]
        if len(literals):
            ops.append(Facts(literals.astype(np.int32)))
    objective = None if module.objective is None else _objective(module.objective, by)
    start = None if module.warm_start is None else _start(module.warm_start, by)
    return replace(module, variables=by.variables, blocks=blocks, ops=tuple(ops), objective=objective, warm_start=start)


def contradiction() -> Clauses:
    """The empty clause."""
    return Clauses(np.zeros(2, np.int64), np.zeros(0, np.int32))


def _block(block: Block, by: Substitution) -> tuple[Block, ...]:
    match block:
        case Order():
            return (_order(block, by),)
        case ExactlyOne():
            return _unit(block, by)
        case Bool():
            target = by.target[block.variables]
            left = distinct(target[target >= 0] >> 1).astype(np.int32)
            return (replace(block, variables=left),) if len(left) else ()
        case _:
            assert_never(block)


def _order(block: Order, by: Substitution) -> Order:
    """Drops cells that have become impossible, and merges cells that are no longer separated by a predicate.

    If two predicates have become the same variable, the cell between them is dropped.
    """
    target = by.target[block.variables]
    if np.any((target >= 0) & (target & 1 == 1)):
        raise InternalError("an order predicate must not be replaced by a negation")
    if len(target) == 0:
        return block
    padded = np.concatenate(([FALSE], target, [TRUE]))
    # Cell i lies between predicates i-1 and i: it is possible if they differ.
    possible = padded[:-1] != padded[1:]
    cells = block.cells[possible]
    variables = padded[1:][possible][:-1] >> 1
    return replace(block, cells=cells.astype(np.int32), variables=variables.astype(np.int32))


def _unit(block: ExactlyOne, by: Substitution) -> tuple[ExactlyOne, ...]:
    target = by.target[block.variables]
    keep = target >= 0
    # A tree with a leaf that is always reached constrains nothing any more.
    tree_row = row_of(block.offset)
    decided = np.zeros(len(block.tree), bool)
    decided[tree_row[target == TRUE]] = True
    keep &= ~decided[tree_row]
    counts = np.bincount(tree_row[keep], minlength=len(block.tree))
    live = ~decided & (counts > 0)
    if not live.any():
        return ()
    return (
        ExactlyOne(
            block.model,
            block.points,
            block.tree[live],
            indptr_of(counts[live]),
            block.leaf[keep],
            (target[keep] >> 1).astype(np.int32),
        ),
    )


def _fixed_trees(block: ExactlyOne, by: Substitution, extra: list[Int32Array]) -> list[Op]:
    """Exactly-one for trees with fixed leaves: if one leaf is true, all others are false; a leafless tree is infeasible."""
    target = by.target[block.variables]
    tree_row = row_of(block.offset)
    decided = np.zeros(len(block.tree), np.int64)
    np.add.at(decided, tree_row[target == TRUE], 1)
    if np.any(decided > 1):
        return [contradiction()]
    others = (decided[tree_row] == 1) & (target >= 0)
    if others.any():
        extra.append((target[others] ^ 1).astype(np.int32))
    alive = np.bincount(tree_row[target != FALSE], minlength=len(block.tree))
    return [contradiction()] if np.any(alive == 0) else []


def _op(op: Op, by: Substitution, kept: Int32Array, extra: list[Int32Array]) -> list[Op]:
    match op:
        case LeafImplies():
            return _path(op, by, extra)
        case LeafSum():
            return _leaf_sum(op, by, extra)
        case Equal():
            return _equal(op, by, extra)
        case Clauses():
            return _clause(op, by)
        case Linear():
            return _linear(op, by)
        case Membership():
            return _table(op, by, kept)
        case Facts():
            extra.append(_without_true(by.literal(op.literals)))
            return []
        case _:
            assert_never(op)


def _without_true(literals: Int32Array) -> Int32Array:
    kept: Int32Array = literals[literals != TRUE]
    return kept


def _path(op: LeafImplies, by: Substitution, extra: list[Int32Array]) -> list[Op]:
    leaves, literals = by.literal(op.leaves * np.int32(2)), by.literal(op.literals)
    extra.append(_without_true(literals[leaves == TRUE]))
    extra.append(leaves[(leaves >= 0) & (literals == FALSE)] ^ np.int32(1))
    keep = (leaves >= 0) & (literals >= 0)
    if not keep.any():
        return []
    key = distinct(leaves[keep].astype(np.int64) << 32 | literals[keep])
    return [LeafImplies((key >> 33).astype(np.int32), (key & 0xFFFFFFFF).astype(np.int32))]


def _leaf_sum(op: LeafSum, by: Substitution, extra: list[Int32Array]) -> list[Op]:
    rows = row_of(op.indptr)
    leaves, literals = by.literal(op.leaves * np.int32(2)), by.literal(op.literals)
    count = len(literals)
    has_true = np.zeros(count, bool)
    has_true[rows[leaves == TRUE]] = True
    keep_leaf = leaves >= 0
    alive = np.bincount(rows[keep_leaf], minlength=count)
    # A leaf that is always reached makes its literal true; a false literal makes its leaves false; an equality
    # without remaining leaves makes its literal false.
    extra.append(_without_true(literals[has_true]))
    extra.append(leaves[keep_leaf & (literals[rows] == FALSE)] ^ np.int32(1))
    empty_equality = op.equality & (alive == 0) & ~has_true
    extra.append(_without_true(literals[empty_equality] ^ np.int32(1)))
    # An equality whose literal has become true needs no row: its twin over the root's other leaves, with the negated literal,
    # makes these leaves false, and exactly-one implies the rest.
    keep_row = (alive > 0) & ~has_true & (literals >= 0)
    if not keep_row.any():
        return []
    return [dedupe_leaf_sums(rows, leaves >> 1, literals, op.equality, keep_row, keep_leaf)]


def dedupe_leaf_sums(
    rows: IntegerArray,
    leaves: Int32Array,
    literals: Int32Array,
    equality: BoolArray,
    keep_row: BoolArray,
    keep_leaf: BoolArray,
) -> LeafSum:
    """A `LeafSum` of the kept rows and leaves; equal rows (with the same leaves, literal and kind) are merged."""
    select = keep_leaf & keep_row[rows]
    key = rows[select].astype(np.int64) << 32 | leaves[select]
    if not np.all(key[1:] > key[:-1]):  # substitutions mostly preserve the order
        key = distinct(key)
    row, leaf = key >> 32, (key & 0xFFFFFFFF).astype(np.int32)
    numbers = np.flatnonzero(keep_row)
    counts = np.bincount(row, minlength=len(keep_row))[numbers]
    starts = indptr_of(counts)
    unique = first_equal_rows(starts, leaf, literals[numbers], equality[numbers]) == np.arange(len(numbers))
    index = concatenated_ranges(starts[:-1][unique], counts[unique])
    return LeafSum(
        indptr_of(counts[unique]),
        leaf[index],
        literals[numbers[unique]].astype(np.int32),
        equality[numbers[unique]],
    )


def _equal(op: Equal, by: Substitution, extra: list[Int32Array]) -> list[Op]:
    left, right = by.literal(op.left), by.literal(op.right)
    differ = left != right
    left, right = left[differ], right[differ]
    for constant, other in ((left, right), (right, left)):
        extra.append(other[constant == TRUE])
        extra.append((other ^ np.int32(1))[constant == FALSE])
    extra.append(np.full(int(np.any(left == (right ^ 1))), FALSE, np.int32))
    keep = (left >= 0) & (right >= 0)
    return [Equal(left[keep], right[keep])] if keep.any() else []


def _clause(op: Clauses, by: Substitution) -> list[Op]:
    rows = row_of(op.indptr)
    literals = by.literal(op.literals)
    satisfied = np.zeros(len(op.indptr) - 1, bool)
    satisfied[rows[literals == TRUE]] = True
    seen: dict[tuple[int, ...], None] = {}
    bounds = op.indptr
    for r in steadily(np.flatnonzero(~satisfied)):
        row = literals[bounds[r] : bounds[r + 1]]
        row = distinct(row[row != FALSE])
        if len(row) > 1 and np.any((row[:-1] ^ 1) == row[1:]):
            continue  # contains a literal and its negation
        seen[tuple(row.tolist())] = None
    if not seen:
        return []
    return [
        Clauses(indptr_of([len(k) for k in seen]), np.array([x for k in seen for x in k], np.int32)),
    ]


def fold_terms(
    variables: Int32Array, coefficients: IntegerArray, by: Substitution
) -> tuple[Int32Array, IntegerArray, int]:
    """A linear form over the new variables: distinct variables, their non-zero coefficients, and the resulting constant."""
    target = by.target[variables]
    constant = int(coefficients[target == TRUE].sum()) if len(target) else 0
    live = target >= 0
    negated = live & (target & 1 == 1)
    constant += int(coefficients[negated].sum()) if negated.any() else 0
    signed = np.where(negated, -coefficients, coefficients)[live]
    unique, inverse = np.unique(target[live] >> 1, return_inverse=True)
    sums = np.zeros(len(unique), coefficients.dtype)
    np.add.at(sums, inverse, signed)
    nonzero = sums != 0
    return unique[nonzero].astype(np.int32), sums[nonzero], constant


def _linear(op: Linear, by: Substitution) -> list[Op]:
    when = op.when if op.when == TRUE else int(by.literal(np.array([op.when], np.int32))[0])
    if when == FALSE:
        return []
    variables, coefficients, constant = fold_terms(op.variables, op.coefficients, by)
    bound = op.bound - constant
    if len(variables) == 0:
        if bound <= 0:
            return []
        if when == TRUE:
            return [contradiction()]
        return [Facts(np.array([when ^ 1], np.int32))]
    return [replace(op, variables=variables, coefficients=coefficients, bound=bound, when=when)]


def _objective(objective: Objective, by: Substitution) -> Objective:
    variables, coefficients, constant = fold_terms(objective.variables, objective.coefficients, by)
    return replace(objective, variables=variables, coefficients=coefficients, constant=objective.constant + constant)


def _start(start: Start, by: Substitution) -> Start:
    """The same point in terms of the new variables. If several old variables become one, the value of the first variable is
    used: an unused predicate takes the value of its left neighbour.
    """
    point = np.zeros(len(by.target), bool)
    point[start.variables] = True
    kept = by.target >= 0
    moved = np.zeros(by.variables, bool)
    # Assigned backwards, so that the first variable wins.
    moved[(by.target[kept] >> 1)[::-1]] = (point[kept] ^ is_negative(by.target[kept]))[::-1]
    return Start(np.flatnonzero(moved).astype(np.int32))


def _table(op: Membership, by: Substitution, kept: Int32Array) -> list[Op]:
    members = by.literal(op.members * np.int32(2))
    if np.any((members >= 0) & is_negative(members)):
        raise InternalError("a table member must not be replaced by a negation")
    if np.any(members < 0):
        raise InternalError("a table member must not be fixed while its table exists: drop the row first")
    return [replace(op, members=members >> 1, orders=kept[op.orders])]


def rearranged(module: Module, blocks: Sequence[Block], position: Sequence[int] | IntegerArray) -> Module:
    """The module with other blocks. `position`, by old number of an order block, is its new number, which tables contain."""
    moved = np.asarray(position, np.int32)
    ops = (replace(op, orders=moved[op.orders]) if isinstance(op, Membership) else op for op in module.ops)
    return replace(module, blocks=tuple(blocks), ops=tuple(ops))
