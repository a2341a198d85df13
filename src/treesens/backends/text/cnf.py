"""DIMACS CNF, and WCNF in the format of 2022 (hard clauses begin with `h`), for modules that consist of clauses.

Source: any module whose linear rows are clauses: at least one literal, all literals, or all but one. Target: clauses over the
variables 1, 2, … without auxiliary variables. A member of a table becomes one clause per run of cells with equal values.
Rows that only help are omitted, and so are guiding objectives.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, pairwise
from typing import assert_never

import numpy as np

from treesens.backends.base import Artifact
from treesens.backends.text.smt2 import guards_of, overlapping
from treesens.backends.text.value import told
from treesens.compiler.base.budget import check_in, steadily
from treesens.compiler.ir import TRUE, Clauses, Equal, ExactlyOne, Facts, LeafImplies, LeafSum, Linear, Module, Order
from treesens.compiler.ir.module import leaf_implications
from treesens.compiler.ir.ops import Membership
from treesens.errors import UsageError

_OTHERS = "lp, mps, smt2, opb and cpsat can"
_MOST_WEIGHT = 1 << 62
_MOST_PAIRS = 1_000_000

Clause = list[int]
"""Literals as in the IR: 2 * v, or 2 * v + 1 for a negation."""


def write_cnf(module: Module, *, precision: int = 0) -> Artifact:
    """The module as CNF; `precision` has no effect. Raises UsageError for an objective, or for a row that is not a clause."""
    del precision
    if module.optimises:
        raise UsageError("cnf has no objective", remedy=f"wcnf, {_OTHERS} write it")
    clauses = [_numbers(clause) for clause in steadily(clauses_of(module))]
    head = f"c {told(module)}\np cnf {module.variables} {len(clauses)}\n"
    return Artifact("cnf", head + "".join(f"{line}\n" for line in clauses), module.variables)


def write_wcnf(module: Module, *, precision: int = 0) -> Artifact:
    """The module as WCNF, whose cost is the sum of all positive coefficients minus the objective (without its constant)."""
    del precision
    lines = [f"c {told(module)}", *(f"h {_numbers(clause)}" for clause in steadily(clauses_of(module)))]
    if module.objective is not None and module.optimises:
        goal = module.objective
        weights = [
            (2 * v + (c < 0), abs(c)) for v, c in zip(goal.variables.tolist(), goal.coefficients.tolist(), strict=True)
        ]
        if sum(weight for _, weight in weights) >= _MOST_WEIGHT:
            raise UsageError("the weights of the objective exceed 62 bits", remedy=f"wcnf cannot hold them; {_OTHERS}")
        lines += [f"{weight} {_numbers([literal])}" for literal, weight in weights if weight]
    return Artifact("wcnf", "\n".join(lines) + "\n", module.variables, has_objective=module.optimises)


def _numbers(clause: Clause) -> str:
    return " ".join([*(str(-(x >> 1) - 1 if x & 1 else (x >> 1) + 1) for x in clause), "0"])


def clauses_of(module: Module) -> Iterator[Clause]:
    """The clauses of a module; variables may appear twice in a clause. Raises UsageError for a row that is not a clause."""
    guards = guards_of(module)
    for block in module.blocks:
        if isinstance(block, Order):
            yield from ([2 * a + 1, 2 * b] for a, b in pairwise(block.variables.tolist()))
        elif isinstance(block, ExactlyOne):
            for start, end in pairwise(block.offset.tolist()):
                leaves = block.variables[start:end].tolist()
                yield [2 * leaf for leaf in leaves]
                yield from ([2 * a + 1, 2 * b + 1] for a, b in overlapping(leaves, guards))
    leaves, literals = leaf_implications(module)
    yield from ([2 * a + 1, b] for a, b in zip(leaves.tolist(), literals.tolist(), strict=True))
    for op in module.ops:
        check_in()
        match op:
            case LeafImplies():
                pass  # implied above
            case LeafSum():
                for i in np.flatnonzero(op.equality).tolist():
                    yield [int(op.literals[i]) ^ 1, *(2 * op.leaves[op.indptr[i] : op.indptr[i + 1]]).tolist()]
            case Equal():
                for a, b in zip(op.left.tolist(), op.right.tolist(), strict=True):
                    yield from ([a, b ^ 1], [a ^ 1, b])
            case Clauses():
                yield from (op.literals[start:end].tolist() for start, end in pairwise(op.indptr.tolist()))
            case Facts():
                yield from ([literal] for literal in op.literals.tolist())
            case Membership():
                for i in range(len(op.members)):
                    yield from _member(module, op, i)
            case Linear():
                if not op.implied:
                    yield from _row(op)
            case _:
                assert_never(op)


def _member(module: Module, op: Membership, i: int) -> Iterator[Clause]:
    """Per run of cells with equal values: the cell is outside the run, or the member has the run's value."""
    block = module.blocks[op.orders[i]]
    assert isinstance(block, Order)
    runs = slice(op.indptr[i], op.indptr[i + 1])
    inside = np.any((block.cells[:, None] >= op.low[runs]) & (block.cells[:, None] <= op.high[runs]), axis=1)
    starts = [0, *(np.flatnonzero(np.diff(inside)) + 1).tolist(), len(inside)]
    for first, end in pairwise(starts):
        below = [] if first == 0 else [2 * int(block.variables[first - 1])]
        above = [] if end == len(inside) else [2 * int(block.variables[end - 1]) + 1]
        yield [*below, *above, 2 * int(op.members[i]) + (not inside[first])]


def _row(op: Linear) -> Iterator[Clause]:
    """The clauses of a row: at least `bound` of its literals' weights, of which one, all, or all but one are needed."""
    terms = [
        (2 * v + (c < 0), abs(c)) for v, c in zip(op.variables.tolist(), op.coefficients.tolist(), strict=True) if c
    ]
    weights = [weight for _, weight in terms]
    bound = op.bound - sum(c for c in op.coefficients.tolist() if c < 0)
    literals, spare = [literal for literal, _ in terms], sum(weights) - bound
    unless = [] if op.when == TRUE else [op.when ^ 1]
    least = sorted(weights)[:2]
    if bound <= 0:
        return
    if spare < 0:
        yield unless
    elif least[0] >= bound:
        yield [*unless, *literals]
    elif least[0] > spare:
        yield from ([*unless, literal] for literal in literals)
    elif max(weights) <= spare < sum(least) and len(literals) ** 2 <= 2 * _MOST_PAIRS:
        yield from ([*unless, a, b] for a, b in combinations(literals, 2))
    else:
        raise UsageError(f"the row `{op.name}` is not a clause", remedy=f"cnf and wcnf cannot hold it; {_OTHERS}")
