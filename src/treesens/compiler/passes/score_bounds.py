"""score-bounds: decides rows that all inputs or no inputs satisfy, and drops leaves that no solution reaches.

For a row sum c_i x_i >= b the greatest value of the left-hand side is at most the sum over trees of their best leaf, plus
the best cell of every order block, plus the positive coefficients of other variables. Let slack be this bound minus b.
Source: a row. Target: nothing if the smallest value reaches b; a contradiction if slack < 0; otherwise a fact "leaf is
not reached" for every leaf that is worse than the best leaf of its tree by more than slack.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from treesens.compiler.base.arrays import BoolArray, IntegerArray
from treesens.compiler.ir import TRUE, ExactlyOne, Facts, Linear, Module, Op, Order
from treesens.compiler.ir.rewrite import contradiction
from treesens.compiler.passes.base import PassResult, Relation
from treesens.compiler.passes.remarks import Remark


@dataclass(frozen=True)
class ScoreBounds:
    name: ClassVar[str] = "score-bounds"
    relation: ClassVar[Relation] = Relation.EQUIVALENT
    statistics_names: ClassVar[Mapping[str, str]] = {
        "rows decided": "rows that all inputs or no inputs satisfy",
        "leaves out of reach": "leaves that no solution reaches",
    }

    def run(self, module: Module) -> PassResult:
        dead = np.zeros(module.variables, bool)
        ops: list[Op] = []
        decided = 0
        for op in module.ops:
            if not isinstance(op, Linear):
                ops.append(op)
                continue
            bounds = RowBounds(module, op)
            if bounds.smallest >= op.bound:
                decided += 1
                continue
            if bounds.greatest < op.bound:
                decided += 1
                ops.append(contradiction() if op.when == TRUE else Facts(np.array([op.when ^ 1], np.int32)))
                continue
            ops.append(op)
            if op.when == TRUE:
                dead |= bounds.hopeless(bounds.greatest - op.bound)
        if dead.any():
            ops.append(Facts((np.flatnonzero(dead) * 2 + 1).astype(np.int32)))
        statistics = {"rows decided": decided, "leaves out of reach": int(dead.sum())}
        return PassResult(replace(module, ops=tuple(ops)), statistics=statistics, remarks=lambda: _missed(module))


def _missed(module: Module) -> Iterator[Remark]:
    for row in module.ops_of(Linear):
        bounds = RowBounds(module, row)
        if bounds.smallest < row.bound <= bounds.greatest:
            more = "" if row.when == TRUE else ", and it excludes no leaves, because it is conditional"
            why = f"terms of an undecided row: its bound is between the extremes of its left-hand side{more}"
            yield Remark("missed", why, len(row.variables), f"row {row.name}")


class RowBounds:
    """The greatest and the smallest value of the left-hand side of a row over the typed blocks, as exact integers."""

    def __init__(self, module: Module, row: Linear) -> None:
        self.variables = module.variables
        dense: IntegerArray = np.zeros(module.variables, row.coefficients.dtype)
        dense[row.variables] = row.coefficients
        rest = np.zeros(module.variables, bool)
        rest[row.variables] = True
        self.greatest = self.smallest = 0
        self._trees: list[tuple[ExactlyOne, IntegerArray, IntegerArray, BoolArray]] = []
        for block in module.blocks:
            if isinstance(block, ExactlyOne):
                self._unit(block, dense, rest)
            elif isinstance(block, Order) and len(block.variables):
                # The value of cell i is the sum of the coefficients of the predicates from i on.
                tail = np.cumsum(dense[block.variables][::-1])
                self.greatest += max(0, int(tail.max()))
                self.smallest += min(0, int(tail.min()))
                rest[block.variables] = False
        left = dense[rest]
        self.greatest += int(left[left > 0].sum()) if len(left) else 0
        self.smallest += int(left[left < 0].sum()) if len(left) else 0

    def _unit(self, block: ExactlyOne, dense: IntegerArray, rest: BoolArray) -> None:
        """Adds the trees of a block one by one. A tree whose leaves were already counted for another point is counted once.

        If only some leaves of a tree are shared, the shared leaves are counted in the first block, and as zero in this block.
        """
        if len(block.tree) == 0:
            return
        values = np.where(rest[block.variables], dense[block.variables], 0)
        best = np.maximum.reduceat(values, block.offset[:-1])
        worst = np.minimum.reduceat(values, block.offset[:-1])
        self.greatest += int(best.sum())
        self.smallest += int(worst.sum())
        self._trees.append((block, values, best, rest[block.variables].copy()))
        rest[block.variables] = False

    def hopeless(self, slack: int) -> BoolArray:
        """Marks leaves that are worse than the best leaf of their tree by more than the slack."""
        dead = np.zeros(self.variables, bool)
        for block, values, best, fresh in self._trees:
            loss = np.repeat(best, np.diff(block.offset)) - values
            # A leaf that counts in an earlier block is tested with that block.
            dead[block.variables[np.asarray(loss > slack, bool) & fresh]] = True
        return dead
