"""Exact evaluation of a module, and the brute-force oracle over cells. Deliberately slow and simple."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import assert_never

import numpy as np

from treesens.compiler.base.arrays import BoolArray, Int32Array, IntegerArray, row_of
from treesens.compiler.ir.module import TRUE, Block, Bool, ExactlyOne, Module, Order, leaf_implications, literal_values
from treesens.compiler.ir.ops import Clauses, Equal, Facts, LeafImplies, LeafSum, Linear, Membership, Objective, Op
from treesens.errors import UsageError

_CHUNK = 4096
"""Number of assignments that are extended to leaves at once."""
_MOST_CHOICES = 4096
"""Maximum number of ways to choose leaves for the same cells."""


def satisfies(module: Module, assignments: BoolArray) -> BoolArray:
    """Marks the assignments bool[N, variables] that satisfy every block and every op; bool[N]."""
    result = np.ones(len(assignments), bool)
    for block in module.blocks:
        result &= _block_holds(block, assignments)
    for op in module.ops:
        result &= op_holds(module, op, assignments)
    return result


def violations(module: Module, assignment: BoolArray) -> list[str]:
    """Names of the blocks and ops that one assignment bool[variables] violates."""
    row = assignment[None, :]
    broken = [f"block {i} ({type(b).__name__})" for i, b in enumerate(module.blocks) if not _block_holds(b, row)[0]]
    broken += [
        f"op {i} ({op.name if isinstance(op, Linear) else type(op).__name__})"
        for i, op in enumerate(module.ops)
        if not op_holds(module, op, row)[0]
    ]
    return broken


def linear_value(variables: IntegerArray, coefficients: IntegerArray, assignments: BoolArray) -> IntegerArray:
    """Exact values of a linear form under assignments bool[N, variables]; integers [N]."""
    if coefficients.dtype == object:
        return np.array([sum(coefficients[row[variables]].tolist()) for row in assignments], dtype=object)
    chosen: IntegerArray = assignments[:, variables] @ coefficients
    return chosen


def objective_value(objective: Objective, assignment: BoolArray) -> int:
    """The objective's value in units of 2**-shift."""
    value = linear_value(objective.variables, objective.coefficients, assignment[None, :])[0]
    return int(value) + objective.constant


def _block_holds(block: Block, x: BoolArray) -> BoolArray:
    match block:
        case Order():
            chain = x[:, block.variables]
            return np.asarray(np.all(chain[:, :-1] <= chain[:, 1:], axis=1))
        case ExactlyOne():
            if len(block.tree) == 0:
                return np.ones(len(x), bool)
            reached = np.add.reduceat(x[:, block.variables].astype(np.int64), block.offset[:-1], axis=1)
            return np.asarray(np.all(reached == 1, axis=1))
        case Bool():
            return np.ones(len(x), bool)
        case _:
            assert_never(block)


def _row_sums(values: BoolArray, indptr: IntegerArray) -> IntegerArray:
    rows = row_of(indptr)
    sums = np.zeros((len(indptr) - 1, len(values)), np.int64)
    np.add.at(sums, rows, values.T.astype(np.int64))
    return sums.T


def op_holds(module: Module, op: Op, x: BoolArray) -> BoolArray:
    """Marks the assignments bool[N, variables] that satisfy one op; bool[N]."""
    match op:
        case LeafImplies():
            return np.asarray(np.all(~x[:, op.leaves] | literal_values(op.literals, x), axis=1))
        case LeafSum():
            sums = _row_sums(x[:, op.leaves], op.indptr)
            limit = literal_values(op.literals, x).astype(np.int64)
            return np.asarray(np.all(np.where(op.equality, sums == limit, sums <= limit), axis=1))
        case Equal():
            return np.asarray(np.all(literal_values(op.left, x) == literal_values(op.right, x), axis=1))
        case Clauses():
            return np.asarray(np.all(_row_sums(literal_values(op.literals, x), op.indptr) >= 1, axis=1))
        case Linear():
            holds = np.asarray(linear_value(op.variables, op.coefficients, x) >= op.bound, bool)
            if op.when != TRUE:
                holds |= ~literal_values(np.array([op.when], np.int32), x)[:, 0]
            return holds
        case Membership():
            return _table_holds(module, op, x)
        case Facts():
            return np.asarray(np.all(literal_values(op.literals, x), axis=1))
        case _:
            assert_never(op)


def _table_holds(module: Module, op: Membership, x: BoolArray) -> BoolArray:
    holds = np.ones(len(x), bool)
    for i in range(len(op.members)):
        holds &= x[:, op.members[i]] == _inside(module, op, i, x)
    return holds


@dataclass(frozen=True)
class BruteForceResult:
    """The solutions of a small module: their number, one example, and the best objective value."""

    solutions: int
    assignment: BoolArray | None
    objective: int | None


def brute_force(module: Module, limit: int = 2_000_000) -> BruteForceResult:
    """Tries every combination of cells (and of free Booleans).

    Raises `UsageError` if there are more than `limit` combinations.
    """
    best: BoolArray | None = None
    value: int | None = None
    solutions = 0
    for chunk in assignments_of(module, limit):
        good = chunk[satisfies(module, chunk)]
        solutions += len(good)
        if len(good) == 0:
            continue
        if module.objective is None:
            best = good[0] if best is None else best
            continue
        values = linear_value(module.objective.variables, module.objective.coefficients, good)
        top = int(np.argmax(values))
        total = int(values[top]) + module.objective.constant
        if value is None or total > value:
            best, value = good[top], total
    return BruteForceResult(solutions, best, value)


def assignments_of(module: Module, limit: int) -> Iterator[BoolArray]:
    """Chunks bool[N, variables] of all assignments that satisfy the order blocks, the leaves and the tables.

    Raises `UsageError` if there are more than `limit` combinations of cells and free Booleans.
    """
    orders = list(module.blocks_of(Order))
    tables = list(module.ops_of(Membership))
    members = {int(v) for t in tables for v in t.members}
    fixed = module.leaf_variables()
    for block in orders:
        fixed[block.variables] = True
    fixed[list(members)] = True
    choices: list[tuple[Int32Array, BoolArray]] = []
    for block in orders:
        m = len(block.variables)
        choices.append((block.variables, np.arange(m) >= np.arange(m + 1)[:, None]))
    both = np.array([[False], [True]])
    choices.extend((np.array([v], np.int32), both) for v in np.flatnonzero(~fixed))
    levels = [variables for variables, _ in choices]
    too_many = UsageError(
        f"brute force over more than {limit:,} combinations of cells",
        remedy="brute force is for small modules; use a backend",
    )
    if _combinations(module, levels, [len(values) for _, values in choices]) > limit:
        raise too_many
    checks = _early_checks(module, levels)
    leaves, literals = leaf_implications(module)
    visited = 0

    def descend(level: int, rows: BoolArray) -> Iterator[BoolArray]:
        """Yields assignments, which are extended level by level, in order of completion."""
        nonlocal visited
        if level == len(choices):
            yield rows
            return
        variables, values = choices[level]
        step = max(1, _CHUNK // len(values))
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            grown = np.repeat(part, len(values), axis=0)
            grown[:, variables] = np.tile(values, (len(part), 1))
            visited += len(grown)
            if visited > limit:
                raise too_many
            for clause in checks[level]:
                grown = grown[np.any(literal_values(clause, grown), axis=1)]
            if len(grown):
                yield from descend(level + 1, grown)

    for cells in descend(0, np.zeros((1, module.variables), bool)):
        _set_members(module, tables, cells)
        chosen = leaf_choices(module, cells, leaves, literals)
        if len(chosen):
            yield chosen


def _combinations(module: Module, levels: list[Int32Array], sizes: list[int]) -> int:
    """Counts the combinations. A level adds no choice if its variables equal variables of earlier levels."""
    level_of = np.full(module.variables, -1, np.int64)
    for level, variables in enumerate(levels):
        level_of[variables] = level
    tied = np.zeros(module.variables, bool)
    for op in module.ops_of(Equal):
        both = (op.left >= 0) & (op.right >= 0)  # no constants
        left, right = op.left[both] >> 1, op.right[both] >> 1
        for one, other in ((left, right), (right, left)):
            tied[one[(level_of[other] >= 0) & (level_of[other] < level_of[one])]] = True
    free = [size for variables, size in zip(levels, sizes, strict=True) if not tied[variables].all()]
    return math.prod(free)


def _early_checks(module: Module, levels: list[Int32Array]) -> list[list[Int32Array]]:
    """Clauses (two per equality), grouped by the level at which all of their variables have a value."""
    level_of = np.full(module.variables, -1, np.int64)
    for level, variables in enumerate(levels):
        level_of[variables] = level
    clauses: list[Int32Array] = []
    for op in module.ops:
        if isinstance(op, Clauses):
            clauses += [op.literals[a:b] for a, b in pairwise(op.indptr.tolist())]
        elif isinstance(op, Equal):
            clauses += [
                np.array(c, np.int32) for a, b in zip(op.left, op.right, strict=True) for c in ((a, b ^ 1), (a ^ 1, b))
            ]
    checks: list[list[Int32Array]] = [[] for _ in levels]
    for clause in clauses:
        at = level_of[clause >> 1]
        if len(at) and at.min() >= 0:
            checks[int(at.max())].append(clause)
    return checks


def _set_members(module: Module, tables: list[Membership], x: BoolArray) -> None:
    for op in tables:
        for i in range(len(op.members)):
            x[:, op.members[i]] = _inside(module, op, i, x)


def _inside(module: Module, op: Membership, i: int, x: BoolArray) -> BoolArray:
    """True where the cell of the feature is in the runs of member `i`, bool[N]."""
    block = module.blocks[op.orders[i]]
    assert isinstance(block, Order)
    cell = block.cells[len(block.variables) - np.count_nonzero(x[:, block.variables], axis=1)]
    runs = slice(op.indptr[i], op.indptr[i + 1])
    return np.asarray(np.any((cell[:, None] >= op.low[runs]) & (cell[:, None] <= op.high[runs]), axis=1))


def complete(module: Module, assignment: BoolArray) -> BoolArray | None:
    """The assignment bool[variables], completed to a solution; None if no completion satisfies the module.

    Backends may omit leaf indicators, because the predicates determine them.
    """
    if assignment.shape != (module.variables,):
        return None
    if satisfies(module, assignment[None, :])[0]:
        return assignment
    cleared = assignment.copy()
    cleared[module.leaf_variables()] = False
    try:
        ways = leaf_choices(module, cleared[None, :], *leaf_implications(module))
    except UsageError:
        return None
    right = np.flatnonzero(satisfies(module, ways))
    return ways[right[0]] if len(right) else None


def leaf_choices(module: Module, x: BoolArray, leaves: IntegerArray, literals: IntegerArray) -> BoolArray:
    """All ways to choose one leaf per tree among the leaves whose guards hold, for assignments x bool[N, variables] of cells.

    There is exactly one way per assignment unless a pass lost a guard.
    """
    open_leaf = np.tile(module.leaf_variables(), (len(x), 1))
    row, guard = np.nonzero(~literal_values(literals, x))
    open_leaf[row, leaves[guard]] = False
    origin = np.arange(len(x))
    for block in module.blocks_of(ExactlyOne):
        for t in range(len(block.tree)):
            variables = block.variables[block.offset[t] : block.offset[t + 1]]
            # A leaf shared with another point may have been chosen already.
            undecided: BoolArray = np.logical_not(np.any(x[:, variables], axis=1))
            row, leaf = np.nonzero(open_leaf[:, variables] & undecided[:, None])
            ways = np.where(undecided, np.bincount(row, minlength=len(x)), 1)
            kept = np.repeat(np.arange(len(x)), ways)
            x, open_leaf, origin = x[kept], open_leaf[kept], origin[kept]
            x[undecided[kept], variables[leaf]] = True
            if len(x) and np.bincount(origin).max() > _MOST_CHOICES:
                raise UsageError("brute force: the leaves of this module are not determined by its cells")
    return x
