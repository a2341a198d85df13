"""The native engine's input: one frozen record of flat arrays.

Find one cell per variable such that every constraint ``c`` holds,

    sum over groups of coefficient[c, leaf of x] + sum over variables of unary[c, v, x_v]  >=  bound[c],

and every clause is satisfied. A *group* is "exactly one leaf of tree T for these points" (eqs. 3-4 of the paper,
aggregated); its leaves are unions of boxes over cells, and the boxes of a group partition the space.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.base.arrays import BoolArray, Bytes, Int32Array, runs_of
from treesens.compiler.ir import Bool, Membership, Module, Order
from treesens.errors import BackendError

Mode = Literal["decide", "objective", "slack"]
Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]

_TYPES: dict[str, type[np.generic]] = {"Int32": np.int32, "Int64": np.int64, "Bytes": np.uint8}


def _empty32() -> Int32:
    return np.zeros(0, np.int32)


def _empty64() -> Int64:
    return np.zeros(0, np.int64)


def _no_rows() -> Int64:
    return np.zeros(1, np.int64)


@dataclass(frozen=True)
class SearchProblem:
    """All arrays are C-contiguous; V variables, G groups, L leaves, B boxes, C constraints, N cells in total.

    Attributes:
        size: [V] number of cells of each variable; its cells are 0 .. size-1.
        feature: [V] the feature of a variable; copies of one feature for several points have the same number.
            (Only used to recognise copies; any numbering will do.)
        allowed: [N] 1 where the cell of a variable may be used, variables one after the other.
        group_tree: [G] groups with the same number are the copies of one tree for several points and are joined.
        group_offset: [G+1] leaves of each group.
        leaf_offset: [L+1] boxes of each leaf.
        box_offset: [B+1] literals of each box; a box without literals is the whole space.
        literal_variable, literal_low, literal_high: inclusive ranges of cells; variables not named are free.
        coefficient_offset: [L+1] coefficients of each leaf; coefficient_row in 0..C-1, or C for the objective.
        bound: [C]; per row, the sum of the largest absolute terms and the absolute bound must stay below 2^62.
        slack_weight: [C] 1: the row counts in the minimum slack (mode "slack", near-miss); 0: it must be satisfied.
        objective: whether row C is an objective to be maximised (mode "objective").
        unary_row, unary_variable, unary_cell, unary_value: terms [x_v = k] of constraints, or of the objective (row C).
        clause_offset: [K+1] literals of each clause (a disjunction of "x_v in [low, high]").
        hints: [H, V] start assignments for local search, for example data rows; tried in this order.
    """

    size: Int32
    feature: Int32
    allowed: Bytes
    group_tree: Int32
    group_offset: Int64
    leaf_offset: Int64
    box_offset: Int64
    literal_variable: Int32
    literal_low: Int32
    literal_high: Int32
    coefficient_offset: Int64
    coefficient_row: Int32
    coefficient_value: Int64
    bound: Int64
    slack_weight: Bytes
    objective: bool = False
    unary_row: Int32 = dataclasses.field(default_factory=_empty32)
    unary_variable: Int32 = dataclasses.field(default_factory=_empty32)
    unary_cell: Int32 = dataclasses.field(default_factory=_empty32)
    unary_value: Int64 = dataclasses.field(default_factory=_empty64)
    clause_offset: Int64 = dataclasses.field(default_factory=_no_rows)
    clause_variable: Int32 = dataclasses.field(default_factory=_empty32)
    clause_low: Int32 = dataclasses.field(default_factory=_empty32)
    clause_high: Int32 = dataclasses.field(default_factory=_empty32)
    hints: Int32 = dataclasses.field(default_factory=lambda: np.zeros((0, 0), np.int32))

    def __post_init__(self) -> None:
        """Converts arrays to their type without loss and makes them read-only; the extension checks the contents."""
        for field in dataclasses.fields(self):
            wanted = _TYPES.get(str(field.type))
            if wanted is None:
                continue
            given = np.asarray(getattr(self, field.name))
            array: NDArray[Any] = np.ascontiguousarray(given, dtype=wanted)
            if array is not given and given.size and not np.array_equal(array, given):
                raise ValueError(f"{field.name} does not fit {np.dtype(wanted).name}")
            if array.ndim != (2 if field.name == "hints" else 1):
                raise ValueError(f"{field.name} has {array.ndim} dimensions")
            view = array.view()
            view.flags.writeable = False
            object.__setattr__(self, field.name, view)
        if self.slack_weight.shape != self.bound.shape:
            raise ValueError("slack_weight must have one entry per constraint")

    @property
    def variables(self) -> int:
        """The number of variables, V."""
        return len(self.size)

    @property
    def constraints(self) -> int:
        """The number of constraints, C."""
        return len(self.bound)

    @property
    def n_bytes(self) -> int:
        """The bytes of all arrays."""
        return sum(value.nbytes for value in self.arrays().values() if isinstance(value, np.ndarray))

    def arrays(self) -> dict[str, Any]:
        """The fields by name, for the extension's constructor."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}


@dataclass
class Places:
    """Positions of a module's variables in the problem: order predicates, members of tables and free Booleans."""

    variable: Int32Array
    """int32[module variables]: engine variable of a predicate, member or free Boolean; -1 for leaves."""
    position: Int32Array
    """int32[module variables]: position of a predicate in its order block."""
    member: dict[int, BoolArray]
    """Per member, the positions of its engine variable at which the member is true."""
    size: list[int] = dataclasses.field(default_factory=list)
    feature: list[int] = dataclasses.field(default_factory=list)

    def ranges(self, literal: int) -> tuple[int, list[tuple[int, int]]]:
        """The engine variable of a literal and the runs of positions at which the literal is true."""
        v = literal >> 1
        variable = int(self.variable[v])
        if variable < 0:
            raise BackendError("the native engine does not support clauses over leaf indicators")
        size = self.size[variable]
        if v not in self.member:  # true up to its position; a shortcut, as every cost of every row needs it
            position = int(self.position[v])
            first, last = (position + 1, size - 1) if literal & 1 else (0, position)
            return variable, [(first, last)] if first <= last else []
        mask = self.member[v]
        low, high = runs_of(~mask if literal & 1 else mask)
        return variable, list(zip(low.tolist(), high.tolist(), strict=True))


def places_of(module: Module) -> Places:
    places = Places(np.full(module.variables, -1, np.int32), np.zeros(module.variables, np.int32), {})
    of_block: dict[int, int] = {}
    for number, block in enumerate(module.blocks):
        if isinstance(block, Order):
            of_block[number] = len(places.size)
            places.variable[block.variables] = len(places.size)
            places.position[block.variables] = np.arange(len(block.variables))
            places.size.append(len(block.cells))
            places.feature.append(block.feature)
    for table in module.ops_of(Membership):
        for i, member in enumerate(table.members):
            order = module.blocks[table.orders[i]]
            assert isinstance(order, Order)
            runs = slice(table.indptr[i], table.indptr[i + 1])
            cells = order.cells[:, None]
            places.member[int(member)] = np.any((cells >= table.low[runs]) & (cells <= table.high[runs]), axis=1)
            places.variable[member] = of_block[int(table.orders[i])]
    for free in module.blocks_of(Bool):
        for v in free.variables:
            if int(v) not in places.member:
                places.variable[v] = len(places.size)
                places.member[int(v)] = np.array([False, True])
                places.size.append(2)
                places.feature.append(len(module.features) + len(places.size))
    return places
