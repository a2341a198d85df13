"""The module: everything a solver needs to know of a question, and nothing about solvers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeVar

import numpy as np

from treesens.compiler.base.arrays import BoolArray, Int32Array
from treesens.compiler.ir.ops import Clauses, Objective, Op, Start
from treesens.compiler.ir.types import Block, ExactlyOne, Order

Kind = TypeVar("Kind")


@dataclass(frozen=True)
class FeatureInfo:
    """Name of a feature and the number of its cells in the grid of the question."""

    name: str
    cells: int


@dataclass(frozen=True)
class Module:
    """A frozen constraint module over Boolean variables 0 .. variables-1.

    `provenance` names what made it: the lowering, then every pass with its options.
    """

    name: str
    features: tuple[FeatureInfo, ...]
    points: tuple[str, ...]
    variables: int
    blocks: tuple[Block, ...]
    ops: tuple[Op, ...]
    objective: Objective | None = None
    provenance: tuple[str, ...] = ()
    warm_start: Start | None = None

    def ops_of(self, kind: type[Kind]) -> Iterator[Kind]:
        return (op for op in self.ops if isinstance(op, kind))

    def blocks_of(self, kind: type[Kind]) -> Iterator[Kind]:
        return (block for block in self.blocks if isinstance(block, kind))

    def order(self, feature: int, point: int) -> Order | None:
        """The order block of a feature for a point; None if the feature has one cell only and needs no variable."""
        for block in self.blocks_of(Order):
            if block.feature == feature and point in block.points:
                return block
        return None

    def with_ops(self, *ops: Op, **changes: Any) -> Module:
        """This module with further ops (and other changed fields)."""
        return replace(self, ops=self.ops + ops, **changes)

    @property
    def optimises(self) -> bool:
        """Whether the best value of the objective is asked for; one that only guides asks for nothing."""
        return self.objective is not None and not self.objective.surrogate

    @property
    def contradictory(self) -> bool:
        """True where an empty clause is in the module: it has no solution."""
        return any(bool(np.any(np.diff(op.indptr) == 0)) for op in self.ops_of(Clauses))

    def cells(self, assignment: BoolArray) -> Int32Array:
        """The cell of every feature for every point [points, features] under an assignment bool[variables].

        A feature without a block has one cell left, number 0 of its grid unless a pass recorded another one by keeping
        an order block without variables.
        """
        result = np.zeros((len(self.points), len(self.features)), np.int32)
        for block in self.blocks_of(Order):
            position = len(block.variables) - int(np.count_nonzero(assignment[block.variables]))
            result[list(block.points), block.feature] = block.cells[position]
        return result

    def leaf_variables(self) -> BoolArray:
        """Mask bool[variables] of leaf indicators."""
        mask = np.zeros(self.variables, bool)
        for block in self.blocks_of(ExactlyOne):
            mask[block.variables] = True
        return mask


@dataclass(frozen=True)
class ModuleSize:
    """Variables, rows and non-zeros of a module."""

    variables: int = 0
    rows: int = 0
    nonzeros: int = 0

    def to_dict(self) -> dict[str, int]:
        """For records; nothing of a question that was never compiled."""
        return asdict(self) if self.variables or self.rows else {}
