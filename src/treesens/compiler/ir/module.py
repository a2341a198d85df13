"""The module: a solver-independent form of a question.

All variables of a module are Booleans 0 .. n-1; blocks are typed views of them. Order and exactly-one blocks are constraints by
type: a backend must enforce a block's type (the chain, or exactly one), and passes may rely on it.

A literal is a variable or its negation, encoded as one integer, so that whole arrays of literals can be rewritten: `2 * v` is
the variable v, and `2 * v + 1` is its negation (as in SAT solvers). Rewrites also use two constants.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np

from treesens.compiler.base.arrays import ArrayRecord, BoolArray, Int32Array, Int64Array, distinct, row_of
from treesens.compiler.ir.ops import Clauses, Facts, LeafImplies, LeafSum, Objective, Op, Start

Kind = TypeVar("Kind")


@dataclass(frozen=True)
class FeatureInfo:
    """The name of a feature, and its number of cells in the question's grid."""

    name: str
    cells: int


@dataclass(frozen=True)
class Module:
    """A frozen constraint module over Boolean variables 0 .. variables-1.

    `provenance` lists the steps that made the module: the lowering, then every pass with its options.
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
        """The order block of a feature for a point; None if the feature has only one cell, and therefore no variable."""
        for block in self.blocks_of(Order):
            if block.feature == feature and point in block.points:
                return block
        return None

    def with_ops(self, *ops: Op, **changes: Any) -> Module:
        """This module with further ops (and other changed fields)."""
        return replace(self, ops=self.ops + ops, **changes)

    @property
    def optimises(self) -> bool:
        """True if the module has an objective to optimise, not only an objective that guides the search."""
        return self.objective is not None and not self.objective.surrogate

    @property
    def contradictory(self) -> bool:
        """True if the module contains an empty clause, and therefore has no solution."""
        return any(bool(np.any(np.diff(op.indptr) == 0)) for op in self.ops_of(Clauses))

    def cells(self, assignment: BoolArray) -> Int32Array:
        """The cell of every feature for every point [points, features] under an assignment bool[variables].

        A feature without a block has a single remaining cell: cell 0 of its grid, unless a pass recorded another cell in an
        order block without variables.
        """
        result = np.zeros((len(self.points), len(self.features)), np.int32)
        for block in self.blocks_of(Order):
            position = len(block.variables) - int(np.count_nonzero(assignment[block.variables]))
            result[list(block.points), block.feature] = block.cells[position]
        return result

    def leaf_variables(self) -> BoolArray:
        """Marks the leaf indicators, bool[variables]."""
        mask = np.zeros(self.variables, bool)
        for block in self.blocks_of(ExactlyOne):
            mask[block.variables] = True
        return mask

    def denied(self) -> BoolArray:
        """Marks the variables that a fact makes false, bool[variables]."""
        mask = np.zeros(self.variables, bool)
        for op in self.ops_of(Facts):
            mask[op.literals[is_negative(op.literals)] >> 1] = True
        return mask


@dataclass(frozen=True)
class ModuleSize:
    """The numbers of variables, rows and non-zeros of a module."""

    variables: int = 0
    rows: int = 0
    nonzeros: int = 0

    def to_dict(self) -> dict[str, int]:
        """The sizes for records; empty for a question that was not compiled."""
        return asdict(self) if self.variables or self.rows else {}


@dataclass(frozen=True, eq=False)
class Order(ArrayRecord):
    """The cell of one feature for one or more points, as predicates "cell <= k" (eq. predicate_consistency of the paper).

    `cells`, int32[m], are the remaining cells in ascending order, numbered as in the question's grid. variables[i] is true iff
    the cell is at most cells[i]; so `variables`, int32[m-1], are monotone by type: variables[i] <= variables[i+1].
    """

    feature: int
    points: tuple[int, ...]
    cells: Int32Array
    variables: Int32Array


@dataclass(frozen=True, eq=False)
class ExactlyOne(ArrayRecord):
    """Leaf indicators of trees for one or more points: exactly one per tree by type (eq. leaf_consistency_1).

    `tree`, int32[T], holds the numbers of the trees in model `model`. `offset`, int64[T+1], delimits the leaves of each tree;
    `leaf`, int32[L], holds the leaves' numbers in the ensemble, and `variables`, int32[L], their indicators. A variable that
    indicates one leaf for two points may be in two exactly-one blocks.
    """

    model: int
    points: tuple[int, ...]
    tree: Int32Array
    offset: Int64Array
    leaf: Int32Array
    variables: Int32Array


@dataclass(frozen=True, eq=False)
class Bool(ArrayRecord):
    """Booleans without structure, e.g. members of tables, and reified parts of a formula."""

    name: str
    variables: Int32Array


Block: TypeAlias = Order | ExactlyOne | Bool


FALSE: Final = -2
TRUE: Final = -1
"""Constant literals; `literal ^ 1` also negates these constants (-2 ^ 1 == -1)."""


def positive(variables: Any) -> Int32Array:
    return np.asarray(variables, np.int32) * np.int32(2)


def negative(variables: Any) -> Int32Array:
    return np.asarray(variables, np.int32) * np.int32(2) + np.int32(1)


def variable_of(literals: Int32Array) -> Int32Array:
    return np.asarray(literals >> 1, np.int32)


def is_negative(literals: Int32Array) -> BoolArray:
    return (literals & 1).astype(bool)


def literal_values(literals: Int32Array, assignment: BoolArray) -> BoolArray:
    """The truth of each literal (or constant) under `assignment` [..., variables]; shape [..., literals]."""
    constant = literals < 0
    variable = np.where(constant, 0, literals >> 1)
    if assignment.shape[-1] == 0:
        values = np.zeros((*assignment.shape[:-1], len(literals)), bool)
    else:
        values = assignment[..., variable] ^ (literals & 1).astype(bool)
    return np.where(constant, literals == TRUE, values)


def leaf_implications(module: Module) -> tuple[Int32Array, Int32Array]:
    """All pairs (leaf variable, implied literal) of the module, from `LeafImplies` and `LeafSum`, without duplicates.

    A row "leaf sum <= literal" means that each leaf in the sum implies the literal. The converse direction of an equality needs
    no pair, because another row implies the negation for all other leaves of the tree.
    """
    leaves = [op.leaves for op in module.ops_of(LeafImplies)]
    literals = [op.literals for op in module.ops_of(LeafImplies)]
    for op in module.ops_of(LeafSum):
        leaves.append(op.leaves)
        literals.append(op.literals[row_of(op.indptr)])
    if not leaves:
        return np.zeros(0, np.int32), np.zeros(0, np.int32)
    key = distinct(np.concatenate(leaves).astype(np.int64) << 32 | np.concatenate(literals).astype(np.int64))
    return (key >> 32).astype(np.int32), (key & 0xFFFFFFFF).astype(np.int32)
