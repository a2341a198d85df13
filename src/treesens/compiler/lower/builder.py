"""A module under construction: the builder numbers variables, collects rows, and makes literals for statements about cells."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from treesens.compiler.base.arrays import BoolArray, Int32Array, distinct, indptr_of, runs_of
from treesens.compiler.ir import (
    FALSE,
    TRUE,
    Block,
    Bool,
    Clauses,
    Equal,
    ExactlyOne,
    Facts,
    Linear,
    Membership,
    Op,
    Order,
)
from treesens.compiler.query.forest import Forest
from treesens.compiler.query.query import Query
from treesens.compiler.query.values import Place


@dataclass
class Builder:
    """The class through which lowering adds all variables and rows of a module."""

    query: Query
    variables: int = 0
    blocks: list[Block] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    units: dict[int, ExactlyOne] = field(default_factory=dict)
    forest_units: dict[tuple[int, Forest], ExactlyOne] = field(default_factory=dict)
    """The leaves of a forest at a point, created when first used."""
    roots: dict[Place, Place] | None = None
    """The first feature in each group of equal features, computed on demand (`lower/sums.py`)."""
    several: dict[int, BoolArray] = field(default_factory=dict)
    """The cells of a feature that contain several legal values, computed on demand (`lower/differences.py`)."""
    _orders: dict[tuple[int, int], int] = field(default_factory=dict)
    _members: dict[tuple[int, int, bytes], int] = field(default_factory=dict)
    _tables: list[tuple[int, int, BoolArray]] = field(default_factory=list)
    _clauses: list[list[int]] = field(default_factory=list)
    _facts: list[int] = field(default_factory=list)
    _equal: list[tuple[Int32Array, Int32Array]] = field(default_factory=list)
    _reified: list[int] = field(default_factory=list)

    def fresh(self, count: int) -> Int32Array:
        """Returns new variables."""
        first = self.variables
        self.variables += count
        return np.arange(first, first + count, dtype=np.int32)

    def declare_orders(self) -> None:
        """Adds an order block per feature and point, restricted to the feature's domain."""
        for point in range(len(self.query.points)):
            for feature, grid in enumerate(self.query.space.grid.features):
                cells = np.arange(grid.n_cells, dtype=np.int32)
                self._orders[feature, point] = len(self.blocks)
                self.blocks.append(Order(feature, (point,), cells, self.fresh(grid.n_cells - 1)))
                self.require_cells(point, feature, self.query.space.legal[feature])

    def order(self, feature: int, point: int) -> Order:
        block = self.blocks[self._orders[feature, point]]
        assert isinstance(block, Order)
        return block

    def at_most(self, point: int, feature: int, cell: int) -> int:
        """The literal "cell <= `cell`", or a constant if `cell` is outside the grid."""
        block = self.order(feature, point)
        if cell < 0:
            return FALSE
        return TRUE if cell >= len(block.variables) else int(block.variables[cell]) * 2

    def inside(self, point: int, feature: int, mask: BoolArray) -> int:
        """A literal that is true iff the cell is in the mask: an order predicate, its negation, or a table member."""
        low, high = runs_of(mask)
        if len(low) == 0:
            return FALSE
        last = len(mask) - 1
        if len(low) == 1 and low[0] == 0:
            return self.at_most(point, feature, int(high[0]))
        if len(low) == 1 and high[0] == last:
            return self.at_most(point, feature, int(low[0]) - 1) ^ 1
        if len(low) == 2 and low[0] == 0 and high[1] == last:
            return self.inside(point, feature, ~mask) ^ 1
        key = (feature, point, mask.tobytes())
        if key not in self._members:
            self._members[key] = int(self.fresh(1)[0])
            self._tables.append((self._members[key], self._orders[feature, point], mask))
        return self._members[key] * 2

    def require_cells(self, point: int, feature: int, mask: BoolArray) -> None:
        """Restricts the cell to the mask: facts at the ends, and a clause for each hole."""
        low, high = runs_of(mask)
        if len(low) == 0:
            self.clause([])
            return
        self.fact(self.at_most(point, feature, int(low[0]) - 1) ^ 1)
        self.fact(self.at_most(point, feature, int(high[-1])))
        for end, start in zip(high[:-1], low[1:], strict=True):
            self.clause([self.at_most(point, feature, int(end)), self.at_most(point, feature, int(start) - 1) ^ 1])

    def clause(self, literals: list[int]) -> None:
        """Adds a disjunction; constants are folded."""
        if TRUE in literals:
            return
        row = sorted({x for x in literals if x != FALSE})
        if len(row) == 1:
            self._facts.append(row[0])
        else:
            self._clauses.append(row)

    def fact(self, literal: int) -> None:
        self.clause([literal])

    def equal(self, left: Int32Array, right: Int32Array) -> None:
        self._equal.append((left, right))

    def reified(self) -> int:
        """A fresh positive literal that represents a part of a formula."""
        variable = int(self.fresh(1)[0])
        self._reified.append(variable)
        return variable * 2

    def linear(self, row: Linear) -> None:
        self.ops.append(row)

    def finished_blocks(self) -> tuple[Block, ...]:
        blocks = list(self.blocks)
        blocks.extend(self.units.values())
        blocks.extend(self.forest_units.values())
        if self._tables:
            blocks.append(Bool("member", np.array([t[0] for t in self._tables], np.int32)))
        if self._reified:
            blocks.append(Bool("formula", np.array(self._reified, np.int32)))
        return tuple(blocks)

    def finished_ops(self) -> tuple[Op, ...]:
        ops = list(self.ops)
        if self._tables:
            runs = [runs_of(mask) for _, _, mask in self._tables]
            ops.append(
                Membership(
                    np.array([t[0] for t in self._tables], np.int32),
                    np.array([t[1] for t in self._tables], np.int32),
                    indptr_of([len(low) for low, _ in runs]),
                    np.concatenate([low for low, _ in runs]),
                    np.concatenate([high for _, high in runs]),
                )
            )
        if self._facts:
            ops.append(Facts(distinct(np.array(self._facts, np.int32))))
        if self._clauses:
            ops.append(
                Clauses(
                    indptr_of([len(c) for c in self._clauses]),
                    np.array([x for c in self._clauses for x in c], np.int32),
                )
            )
        if self._equal:
            left = np.concatenate([pair[0] for pair in self._equal])
            right = np.concatenate([pair[1] for pair in self._equal])
            ops.append(Equal(left, right))
        return tuple(ops)
