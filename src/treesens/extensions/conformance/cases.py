"""Small hand-built modules. Brute force can solve all modules, which together contain every kind of block and op.

The kits for passes and backends run on these modules; `shapes.py` lists them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from treesens.compiler.base.arrays import Int32Array, indptr_of
from treesens.compiler.ir import (
    TRUE,
    Block,
    Bool,
    Clauses,
    Equal,
    ExactlyOne,
    Facts,
    FeatureInfo,
    LeafImplies,
    LeafSum,
    Linear,
    Membership,
    Module,
    Objective,
    Op,
    Order,
)
from treesens.compiler.ir.module import negative, positive

BIG = 2**70
"""A number beyond int64, CP-SAT's limit 2**62, and the integers that doubles represent exactly."""


@dataclass(frozen=True)
class Case:
    """One module with its purpose."""

    name: str
    about: str
    module: Module


@dataclass
class Sketch:
    """A module under construction; each method returns the variables that it has added."""

    cells: tuple[int, ...] = (4, 3)
    points: tuple[str, ...] = ("a",)
    variables: int = 0
    blocks: list[Block] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    trees: int = 0

    def _fresh(self, count: int) -> Int32Array:
        self.variables += count
        return np.arange(self.variables - count, self.variables, dtype=np.int32)

    def order(self, feature: int, *points: int, cells: Sequence[int] | None = None) -> Int32Array:
        """Adds the predicates of a feature, over all its cells or over `cells`."""
        left = np.array(range(self.cells[feature]) if cells is None else cells, np.int32)
        made = self._fresh(len(left) - 1)
        self.blocks.append(Order(feature, points or (0,), left, made))
        return made

    def free(self, count: int) -> Int32Array:
        made = self._fresh(count)
        self.blocks.append(Bool("free", made))
        return made

    def stumps(self, guards: Sequence[int], *points: int, first: int = 0) -> list[Int32Array]:
        """Adds trees with one split each: the leaves to the left and right of a guard literal, with paths."""
        made = self._fresh(2 * len(guards))
        count = len(guards)
        tree = np.arange(first, first + count, dtype=np.int32)
        leaf = np.arange(2 * first, 2 * (first + count), dtype=np.int32)
        self.blocks.append(ExactlyOne(0, points or (0,), tree, np.arange(count + 1, dtype=np.int64) * 2, leaf, made))
        literals = np.array([x for g in guards for x in (g, g ^ 1)], np.int32)
        self.ops.append(LeafImplies(made, literals))
        return [made[2 * i : 2 * i + 2] for i in range(count)]

    def leaves(self, count: int, *points: int, tree: int = 0) -> Int32Array:
        """Adds the leaves of one tree; the caller adds the implications."""
        made = self._fresh(count)
        offset = np.array([0, count], np.int64)
        leaf = np.arange(10 * tree, 10 * tree + count, dtype=np.int32)
        self.blocks.append(ExactlyOne(0, points or (0,), np.array([tree], np.int32), offset, leaf, made))
        return made

    def linear(
        self,
        variables: Sequence[int] | Int32Array,
        coefficients: Sequence[int],
        bound: int,
        *,
        shift: int = 0,
        when: int = TRUE,
        implied: bool = False,
    ) -> None:
        values = np.array(coefficients, dtype=np.int64 if sum(map(abs, coefficients)) < 2**62 else object)
        name = f"row{len(self.ops)}"
        self.ops.append(Linear(name, np.array(variables, np.int32), values, bound, shift, when, implied))

    def clause(self, *rows: Sequence[int]) -> None:
        literals = np.array([x for row in rows for x in row], np.int32)
        self.ops.append(Clauses(indptr_of([len(row) for row in rows]), literals))

    def fact(self, *literals: int) -> None:
        self.ops.append(Facts(np.array(literals, np.int32)))

    def table(self, order: int, runs: Sequence[Sequence[tuple[int, int]]]) -> Int32Array:
        """Adds one member per row of `runs`, over the order block with the index `order`."""
        made = self._fresh(len(runs))
        self.blocks.append(Bool("member", made))
        flat = [run for row in runs for run in row]
        low, high = (np.array([run[end] for run in flat], np.int32) for end in (0, 1))
        orders = np.full(len(runs), order, np.int32)
        self.ops.append(Membership(made, orders, indptr_of([len(row) for row in runs]), low, high))
        return made

    def module(self, name: str, objective: Objective | None = None) -> Module:
        features = tuple(FeatureInfo(f"f{i}", cells) for i, cells in enumerate(self.cells))
        return Module(name, features, self.points, self.variables, tuple(self.blocks), tuple(self.ops), objective)


def maximise(
    variables: Sequence[int] | Int32Array,
    coefficients: Sequence[int],
    *,
    constant: int = 0,
    shift: int = 0,
    surrogate: bool = False,
) -> Objective:
    """An objective to maximise; objectives to minimise are negated, as in lowering."""
    values = np.array(coefficients, dtype=np.int64 if sum(map(abs, coefficients)) < 2**62 else object)
    return Objective(np.array(variables, np.int32), values, constant, shift, surrogate)


MAKERS: list[tuple[str, str, Callable[[Sketch], Objective | None]]] = []


def case(about: str) -> Callable[[Callable[[Sketch], Objective | None]], Callable[[Sketch], Objective | None]]:
    """Registers a function that fills a sketch; the function's name is the name of the case."""

    def register(make: Callable[[Sketch], Objective | None]) -> Callable[[Sketch], Objective | None]:
        MAKERS.append((make.__name__.replace("_", "-"), about, make))
        return make

    return register


def lits(variables: Int32Array) -> list[int]:
    """The positive literals of variables."""
    found: list[int] = positive(variables).tolist()
    return found


def nots(variables: Int32Array) -> list[int]:
    """The negative literals of variables."""
    found: list[int] = negative(variables).tolist()
    return found


def leaf_sum(rows: Sequence[tuple[Sequence[int], int, bool]]) -> LeafSum:
    """A leaf sum with rows (leaves, literal, equality)."""
    return LeafSum(
        indptr_of([len(leaves) for leaves, _, _ in rows]),
        np.array([leaf for leaves, _, _ in rows for leaf in leaves], np.int32),
        np.array([literal for _, literal, _ in rows], np.int32),
        np.array([equality for _, _, equality in rows], bool),
    )


def equal(left: Sequence[int], right: Sequence[int]) -> Equal:
    return Equal(np.array(left, np.int32), np.array(right, np.int32))


def hard_module(seed: int = 7, rows: int = 5, columns: int = 44) -> Module:
    """A market split problem with a planted solution: equalities with coefficients 0 .. 99, which no solver solves in a second.

    Source: Cornuejols and Dawande, "A class of hard small 0-1 programs" (1998). A solution exists by construction, so
    `infeasible` is always wrong.
    """
    random = np.random.default_rng(seed)
    weights = random.integers(0, 100, size=(rows, columns))
    planted = random.permutation(np.arange(columns) < columns // 2)
    sketch = Sketch(cells=(2,))
    sketch.order(0)
    free = sketch.free(columns)
    for row in weights:
        total = int(row[planted].sum())
        sketch.linear(free, row.tolist(), total)
        sketch.linear(free, (-row).tolist(), -total)
    return sketch.module("hard")
