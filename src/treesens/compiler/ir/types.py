"""Typed blocks of Boolean variables.

All variables of a module are Booleans 0 .. n-1; blocks are typed views on them. Order and exactly-one blocks are constraints by
type: a backend that is given a block must enforce its type (the chain, exactly one), and passes may rely on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from treesens.compiler.base.arrays import ArrayRecord, Int32Array, Int64Array


@dataclass(frozen=True, eq=False)
class Order(ArrayRecord):
    """The cell of one feature for one or more points, by predicates "cell <= k" (eq. predicate_consistency of the paper).

    `cells` int32[m] are the cells that are left, ascending, as numbered in the grid of the question; `variables` int32[m-1]
    are monotone by type: variables[i] <= variables[i+1]. variables[i] is true where the cell is at most cells[i].
    """

    feature: int
    points: tuple[int, ...]
    cells: Int32Array
    variables: Int32Array


@dataclass(frozen=True, eq=False)
class ExactlyOne(ArrayRecord):
    """Leaf indicators of trees for one or more points: exactly one per tree by type (eq. leaf_consistency_1).

    `tree` int32[T] names the trees of model `model`, `offset` int64[T+1] delimits their leaves, `leaf` int32[L] are the
    leaf numbers in the ensemble and `variables` int32[L] their indicators. A variable that means the same leaf for two
    points may be in two exactly-one blocks.
    """

    model: int
    points: tuple[int, ...]
    tree: Int32Array
    offset: Int64Array
    leaf: Int32Array
    variables: Int32Array


@dataclass(frozen=True, eq=False)
class Bool(ArrayRecord):
    """Booleans without structure of their own, e.g. members of tables and reified parts of a formula."""

    name: str
    variables: Int32Array


Block: TypeAlias = Order | ExactlyOne | Bool
