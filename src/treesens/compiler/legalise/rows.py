"""Every block and op as integer rows: the legalisation that all linear backends share (LP, MPS, OPB, CP-SAT).

Source: any module. Target: rows low <= sum c_i x_i <= high over 0/1 variables with exact integer coefficients.

    order block         p[i] - p[i+1] <= 0
    exactly-one block   sum of the leaves of a tree = 1
    LeafImplies         l - g <= 0
    LeafSum             sum l - g <= 0 (= 0 at a root)
    Equal               a - b = 0
    Clauses             sum g >= 1
    Linear              sum c x >= b; with `when` literal w: sum c x >= b - M (1 - w), M = b - least value of the sum
    Membership          per run of cells one 0/1 difference of predicates: m - sum (p[high] - p[low-1]) = 0
    Facts               g = 1

A negated literal `not v` is written as 1 - v throughout.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import assert_never

import numpy as np

from treesens.compiler.base.arrays import (
    ArrayRecord,
    Int32Array,
    Int64Array,
    IntegerArray,
    concatenated_ranges,
    indptr_of,
    row_of,
)
from treesens.compiler.base.budget import check_in, steadily
from treesens.compiler.ir import (
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
    Op,
    Order,
)


@dataclass(frozen=True, eq=False)
class RowBlock(ArrayRecord):
    """Rows with a common origin, in CSR form. Coefficients and the bounds `low` and `high` are integers in units of 2**-shift;
    `has_low` and `has_high` mark the rows with such a bound.
    """

    origin: str
    indptr: Int64Array
    variables: Int32Array
    coefficients: IntegerArray
    low: IntegerArray
    high: IntegerArray
    has_low: np.ndarray
    has_high: np.ndarray
    shift: int = 0

    @property
    def count(self) -> int:
        return len(self.indptr) - 1


@dataclass(frozen=True)
class Rows:
    """A module as rows. `binary[v]` is True if variable v must be declared integral. Leaf indicators need no declaration,
    because their predicates determine them (the paper declares them continuous, 0 <= l_n <= 1).
    """

    variables: int
    blocks: tuple[RowBlock, ...]
    binary: np.ndarray
    names: tuple[str, ...] = field(default=(), repr=False)


def to_rows(module: Module, known: Collection[int] = ()) -> Rows:
    """All rows of a module, blocks first, without the blocks and ops whose `id` is in `known`."""
    blocks: list[RowBlock] = []
    for block in module.blocks:
        if id(block) in known:
            continue
        if isinstance(block, Order) and len(block.variables) > 1:
            blocks.append(_chain(block))
        elif isinstance(block, ExactlyOne) and len(block.tree):
            ones = np.ones(len(block.tree), np.int64)
            blocks.append(_block("unit", block.offset, block.variables, _ones(block.variables), ones, ones))
    for op in module.ops:
        check_in()
        if id(op) not in known:
            blocks.extend(op_rows(module, op))
    return Rows(module.variables, tuple(blocks), ~module.leaf_variables())


def count_rows(module: Module) -> tuple[int, int]:
    """The numbers of rows and of non-zeros, computed without building the rows."""
    rows = entries = 0
    for block in module.blocks:
        if isinstance(block, Order) and len(block.variables) > 1:
            rows += len(block.variables) - 1
            entries += 2 * (len(block.variables) - 1)
        elif isinstance(block, ExactlyOne):
            rows += len(block.tree)
            entries += len(block.variables)
    for op in module.ops:
        match op:
            case LeafImplies():
                rows, entries = rows + len(op.leaves), entries + 2 * len(op.leaves)
            case LeafSum():
                rows, entries = rows + len(op.literals), entries + len(op.leaves) + len(op.literals)
            case Equal():
                rows, entries = rows + len(op.left), entries + 2 * len(op.left)
            case Clauses():
                rows, entries = rows + len(op.indptr) - 1, entries + len(op.literals)
            case Linear():
                rows, entries = rows + 1, entries + len(op.variables)
            case Membership():
                rows, entries = rows + len(op.members), entries + len(op.members) + 2 * len(op.low)
            case Facts():
                rows, entries = rows + len(op.literals), entries + len(op.literals)
            case _:
                assert_never(op)
    return rows, entries


def _ones(like: Int32Array) -> Int64Array:
    return np.ones(len(like), np.int64)


def _block(
    origin: str,
    indptr: Int64Array,
    variables: Int32Array,
    coefficients: IntegerArray,
    low: IntegerArray | None,
    high: IntegerArray | None,
    shift: int = 0,
) -> RowBlock:
    count = len(indptr) - 1
    none = np.zeros(count, np.int64)
    return RowBlock(
        origin,
        indptr,
        variables,
        coefficients,
        none if low is None else low,
        none if high is None else high,
        np.full(count, low is not None),
        np.full(count, high is not None),
        shift,
    )


def _chain(block: Order) -> RowBlock:
    pairs = np.stack((block.variables[:-1], block.variables[1:]), axis=1)
    count = len(pairs)
    signs = np.tile(np.array([1, -1], np.int64), count)
    return _block("chain", np.arange(count + 1) * 2, pairs.ravel(), signs, None, np.zeros(count, np.int64))


def sign_literals(literals: Int32Array) -> tuple[Int32Array, Int64Array, Int64Array]:
    """Literals as linear terms: variable, coefficient (1 or -1) and constant (0 or 1) of each literal."""
    negative = (literals & 1).astype(np.int64)
    return (literals >> 1).astype(np.int32), 1 - 2 * negative, negative


def op_rows(module: Module, op: Op) -> list[RowBlock]:
    """The rows of one op."""
    match op:
        case LeafImplies():
            variable, sign, constant = sign_literals(op.literals)
            pairs = np.stack((op.leaves, variable), axis=1).ravel().astype(np.int32)
            signs = np.stack((_ones(op.leaves), -sign), axis=1).ravel()
            return [_block("path", np.arange(len(op.leaves) + 1) * 2, pairs, signs, None, constant)]
        case LeafSum():
            return [_leaf_sums(op)]
        case Equal():
            left, a, c = sign_literals(op.left)
            right, b, d = sign_literals(op.right)
            pairs = np.stack((left, right), axis=1).ravel().astype(np.int32)
            signs = np.stack((a, -b), axis=1).ravel()
            value = d - c
            return [_block("equal", np.arange(len(left) + 1) * 2, pairs, signs, value, value)]
        case Clauses():
            variable, sign, constant = sign_literals(op.literals)
            fixed = np.zeros(len(op.indptr) - 1, np.int64)
            np.add.at(fixed, row_of(op.indptr), constant)
            return [_block("clause", op.indptr, variable, sign, 1 - fixed, None)]
        case Linear():
            return [_linear(op)]
        case Membership():
            return [_table(module, op)]
        case Facts():
            variable, sign, constant = sign_literals(op.literals)
            value = sign * (1 - constant)  # v = 1, or -v = 0 as -v between 0 and 0
            return [_block("const", np.arange(len(variable) + 1), variable, sign, value, value)]
        case _:
            assert_never(op)


def _leaf_sums(op: LeafSum) -> RowBlock:
    variable, sign, constant = sign_literals(op.literals)
    counts = np.diff(op.indptr)
    indptr = indptr_of(counts + 1)
    variables = np.empty(int(indptr[-1]), np.int32)
    coefficients = np.ones(int(indptr[-1]), np.int64)
    variables[concatenated_ranges(indptr[:-1], counts)] = op.leaves
    variables[indptr[1:] - 1] = variable
    coefficients[indptr[1:] - 1] = -sign
    low = np.where(op.equality, constant, 0)
    high = np.ones(len(counts), bool)
    return RowBlock("leaf-sum", indptr, variables, coefficients, low, constant, op.equality, high)


def _linear(op: Linear) -> RowBlock:
    variables, coefficients, bound = op.variables, op.coefficients, op.bound
    if op.when != TRUE:
        least = int(coefficients[coefficients < 0].sum()) if len(coefficients) else 0
        slack = max(0, bound - least)
        # sum >= bound - slack * (1 - w): for w = v the row gains -slack * v and bound - slack; for w = not v, +slack * v.
        step = -slack if op.when & 1 == 0 else slack
        fits = coefficients.dtype != object and abs(step) < 2**61
        coefficients = coefficients if fits else coefficients.astype(object)
        known = np.flatnonzero(variables == op.when >> 1)
        if len(known):  # readers of MPS and LP treat a variable that appears twice in a row differently
            coefficients = coefficients.copy()
            coefficients[known[0]] += step
        else:
            variables = np.append(variables, np.int32(op.when >> 1))
            coefficients = np.append(coefficients, step)
        bound = bound - slack if op.when & 1 == 0 else bound
    low = np.array([bound], dtype=np.int64 if abs(bound) < 2**62 else object)
    indptr = np.array([0, len(variables)], np.int64)
    return _block(op.name, indptr, variables.astype(np.int32), coefficients, low, None, op.shift)


def _table(module: Module, op: Membership) -> RowBlock:
    variables: list[int] = []
    coefficients: list[int] = []
    counts, value = [], []
    for i, member in steadily(enumerate(op.members)):
        block = module.blocks[op.orders[i]]
        assert isinstance(block, Order)
        # A predicate may end one run and start the next if the cells between both have been dropped.
        terms = {int(member): 1}
        constant = 0
        for run in range(op.indptr[i], op.indptr[i + 1]):
            # [low <= cell <= high] = [cell <= high] - [cell <= low - 1], over the remaining cells.
            for end, sign in ((int(op.high[run]), -1), (int(op.low[run]) - 1, 1)):
                position = int(np.searchsorted(block.cells, end, side="right")) - 1
                if position >= len(block.variables):
                    constant += sign
                elif position >= 0:
                    variable = int(block.variables[position])
                    terms[variable] = terms.get(variable, 0) + sign
        terms = {variable: sign for variable, sign in terms.items() if sign}
        variables += terms.keys()
        coefficients += terms.values()
        counts.append(len(terms))
        value.append(-constant)
    levels = np.array(value, np.int64)
    return _block(
        "table", indptr_of(counts), np.array(variables, np.int32), np.array(coefficients, np.int64), levels, levels
    )
