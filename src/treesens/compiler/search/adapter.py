"""From the IR to the flat arrays of the native engine, and back.

order block, free Boolean   a variable (its cells; {0, 1})
unit block                  a group per tree; copies of a tree carry one tree number and are joined by the engine
Path, LeafSum               the boxes of the leaves
Table                       the runs of a leaf's box; several runs make several boxes
Linear                      a constraint; predicates become terms per cell; `when` w adds M (1 - w)
Clause, Const               clauses over ranges of cells, allowed cells
Objective                   the objective row, unless it only guides
Equal                       merged beforehand (share-copies)
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from typing import Any, assert_never

import numpy as np

from treesens.compiler.base.arrays import (
    BoolArray,
    Int32Array,
    Int64Array,
    IntegerArray,
    concatenated_ranges,
    groups_of,
    indptr_of,
    runs_of,
)
from treesens.compiler.ir import TRUE, Bool, Clause, Const, Equal, LeafSum, Linear, Module, Order, Path, Table, Unit
from treesens.compiler.ir.implications import leaf_implications
from treesens.compiler.legalise.rounding import Rounded, round_row
from treesens.compiler.search.problem import SearchProblem
from treesens.errors import BackendError

_BITS = 61
MAX_BOXES = 4096
"""Boxes of one leaf; more than that (many categorical guards on one path) is declined."""


@dataclass
class Places:
    """Where the variables of a module are in the problem: order predicates, members of tables and free Booleans."""

    variable: Int32Array
    """int32[module variables]: engine variable of a predicate, member or free Boolean; -1 for leaves."""
    position: Int32Array
    """int32[module variables]: position of a predicate in its order block."""
    member: dict[int, BoolArray]
    """Of every member: which positions of its engine variable make it true."""
    size: list[int] = field(default_factory=list)
    feature: list[int] = field(default_factory=list)

    def ranges(self, literal: int) -> tuple[int, list[tuple[int, int]]]:
        """The engine variable of a literal and the runs of positions where it is true."""
        v = literal >> 1
        variable = int(self.variable[v])
        if variable < 0:
            raise BackendError("the native engine takes no clauses over leaf indicators")
        size = self.size[variable]
        mask = np.zeros(size, bool)
        if v in self.member:
            mask |= self.member[v]
        else:
            mask[: int(self.position[v]) + 1] = True
        if literal & 1:
            mask = ~mask
        low, high = runs_of(mask)
        return variable, list(zip(low.tolist(), high.tolist(), strict=True))


@dataclass(frozen=True)
class Adapted:
    """A problem with the way back, and whether any row was rounded outward (a witness must then be replayed)."""

    problem: SearchProblem
    places: Places
    relaxed: bool
    objective_shift: int
    objective_constant: int
    gap_shift: int
    leaf_variable: Int32Array
    """int32[L]: the module variable of every leaf of the problem."""
    objective_dropped: int = 0
    """Bits by which the objective was rounded up: its values count 2**objective_dropped units each."""

    def assignment(self, cells: Int32Array, variables: int) -> BoolArray:
        """Values of the module's predicates, members and free Booleans; leaf indicators stay false (nothing reads them)."""
        result = np.zeros(variables, bool)
        known = np.flatnonzero(self.places.variable >= 0)
        result[known] = cells[self.places.variable[known]] <= self.places.position[known]
        for v, mask in self.places.member.items():
            result[v] = bool(mask[cells[self.places.variable[v]]])
        return result


def adapt(module: Module, hints: Int32Array | None = None) -> Adapted:
    """The problem of a module without `Equal` ops. `hints` int32[H, points, features] are cells of promising inputs."""
    places = _places(module)
    groups = _groups(module)
    boxes = _boxes(module, places, groups.leaf_variable)
    rows = _Rows(module, places, groups)
    clauses = _clauses(module, places, boxes)
    problem = SearchProblem(
        size=np.array(places.size, np.int32),
        feature=np.array(places.feature, np.int32),
        # Facts are clauses of one literal; every cell that an order block still has may be used.
        allowed=np.ones(sum(places.size), np.uint8),
        group_tree=groups.tree,
        group_offset=groups.offset,
        leaf_offset=boxes.leaf_offset,
        box_offset=boxes.box_offset,
        literal_variable=boxes.variable,
        literal_low=boxes.low,
        literal_high=boxes.high,
        **rows.arrays(),
        **clauses,
        hints=_hints(module, places, hints),
    )
    objective = module.objective
    return Adapted(
        problem,
        places,
        rows.relaxed,
        0 if objective is None else objective.shift,
        0 if objective is None else objective.constant,
        max((row.shift for row in module.ops_of(Linear)), default=0),
        groups.leaf_variable,
        rows.objective_dropped,
    )


def _places(module: Module) -> Places:
    places = Places(np.full(module.variables, -1, np.int32), np.zeros(module.variables, np.int32), {})
    of_block: dict[int, int] = {}
    for number, block in enumerate(module.blocks):
        if isinstance(block, Order):
            of_block[number] = len(places.size)
            places.variable[block.variables] = len(places.size)
            places.position[block.variables] = np.arange(len(block.variables))
            places.size.append(len(block.cells))
            places.feature.append(block.feature)
    for table in module.ops_of(Table):
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


@dataclass(frozen=True)
class _Groups:
    tree: Int32Array
    offset: Int64Array
    leaf_variable: Int32Array
    """The module variable of every leaf of the problem."""
    counted: BoolArray
    """False for a leaf whose variable stands in an earlier group too: its weight counts there."""


def _groups(module: Module) -> _Groups:
    numbers: dict[tuple[int, int], int] = {}
    tree: list[int] = []
    counts: list[int] = []
    leaves: list[Int32Array] = []
    for block in module.blocks_of(Unit):
        tree += [numbers.setdefault((block.model, int(t)), len(numbers)) for t in block.tree]
        counts += np.diff(block.offset).tolist()
        leaves.append(block.variables)
    variable = np.concatenate(leaves) if leaves else np.zeros(0, np.int32)
    counted = np.zeros(len(variable), bool)
    counted[np.unique(variable, return_index=True)[1]] = True
    return _Groups(np.array(tree, np.int32), indptr_of(counts), variable, counted)


@dataclass(frozen=True)
class _Boxes:
    leaf_offset: Int64Array
    box_offset: Int64Array
    variable: Int32Array
    low: Int32Array
    high: Int32Array
    of: Int64Array
    """int64[module variables, 2]: the range of boxes of a leaf variable."""


def _boxes(module: Module, places: Places, leaf_variable: Int32Array) -> _Boxes:
    """Boxes of every leaf: ranges from order literals, vectorised; runs from table members, one leaf at a time."""
    leaves, literals = leaf_implications(module)
    variable = literals >> 1
    is_member = np.isin(variable, np.fromiter(places.member, np.int64, len(places.member)))
    count = max(1, len(places.size))
    key = leaves[~is_member].astype(np.int64) * count + places.variable[variable[~is_member]]
    unique, order, starts = groups_of(key)
    size = np.array(places.size, np.int64) if places.size else np.ones(1, np.int64)
    low = np.zeros(len(unique), np.int64)
    high = size[unique % count] - 1
    if len(unique):
        position = places.position[variable[~is_member]].astype(np.int64)[order]
        negative = (literals[~is_member] & 1 == 1)[order]
        low = np.maximum.reduceat(np.where(negative, position + 1, 0), starts)
        high = np.minimum(high, np.minimum.reduceat(np.where(negative, np.iinfo(np.int64).max, position), starts))
    start = np.searchsorted(unique, np.arange(module.variables + 1, dtype=np.int64) * count)
    special: dict[int, list[int]] = {}
    for leaf, literal in zip(leaves[is_member].tolist(), literals[is_member].tolist(), strict=True):
        special.setdefault(leaf, []).append(literal)
    if not special:
        # A leaf whose box is empty has no box.
        empty = np.zeros(module.variables, bool)
        empty[unique[low > high] // count] = True
        alive = ~empty[leaf_variable]
        kept = leaf_variable[alive]
        first, lengths = start[kept], start[kept + 1] - start[kept]
        index = concatenated_ranges(first, lengths)
        box_of = indptr_of(alive)
        of = np.zeros((module.variables, 2), np.int64)
        of[leaf_variable] = np.stack((box_of[:-1], box_of[1:]), axis=1)
        return _Boxes(
            box_of,
            indptr_of(lengths),
            (unique[index] % count).astype(np.int32),
            low[index].astype(np.int32),
            high[index].astype(np.int32),
            of,
        )
    return _mixed_boxes(places, leaf_variable, special, unique % count, low, high, start)


def _mixed_boxes(
    places: Places,
    leaf_variable: Int32Array,
    special: dict[int, list[int]],
    variable: Int64Array,
    low: Int64Array,
    high: Int64Array,
    start: Int64Array,
) -> _Boxes:
    box_counts: list[int] = []
    literal_counts: list[int] = []
    out: list[tuple[int, int, int]] = []
    of = np.zeros((len(places.variable), 2), np.int64)
    for leaf in leaf_variable.tolist():
        masks: dict[int, BoolArray] = {}
        for i in range(start[leaf], start[leaf + 1]):
            mask = np.zeros(places.size[variable[i]], bool)
            mask[low[i] : high[i] + 1] = True
            masks[int(variable[i])] = mask
        for literal in special.get(leaf, ()):
            v = literal >> 1
            inside = ~places.member[v] if literal & 1 else places.member[v]
            at = int(places.variable[v])
            masks[at] = masks[at] & inside if at in masks else inside
        names = list(masks)
        runs = [list(zip(*(x.tolist() for x in runs_of(masks[v])), strict=True)) for v in names]
        number = int(np.prod([len(r) for r in runs], dtype=np.int64))
        if number > MAX_BOXES:
            raise BackendError(f"a leaf of this model is a union of {number:,} boxes, too many for the native engine")
        of[leaf] = (sum(box_counts), sum(box_counts) + number)
        box_counts.append(number)
        for box in itertools.product(*runs):
            literal_counts.append(len(box))
            out.extend((v, int(a), int(b)) for v, (a, b) in zip(names, box, strict=True))
    flat = np.array(out, np.int32).reshape(-1, 3)
    return _Boxes(indptr_of(box_counts), indptr_of(literal_counts), flat[:, 0], flat[:, 1], flat[:, 2], of)


class _Rows:
    """Constraints and the objective as coefficients of leaves and terms of cells."""

    def __init__(self, module: Module, places: Places, groups: _Groups) -> None:
        self.relaxed = False
        self.places = places
        self.leaf_of = np.full(module.variables, -1, np.int64)
        counted = np.flatnonzero(groups.counted)
        self.leaf_of[groups.leaf_variable[counted]] = counted
        self.leaves = len(groups.leaf_variable)
        self.bounds: list[int] = []
        self.weights: list[int] = []
        self.entries: list[tuple[Int64Array, int, Int64Array]] = []  # leaves, row, values
        self.unary: list[tuple[int, int, IntegerArray]] = []  # row, variable, value per cell
        for row in module.ops_of(Linear):
            if not row.implied:
                self._constraint(row)
        if not self.bounds:
            # The engine wants something to decide: 0 >= 0.
            self.bounds.append(0)
            self.weights.append(1)
        self.objective = module.objective is not None and not module.objective.guide
        self.objective_dropped = 0
        if self.objective:
            assert module.objective is not None
            rounded = self._narrow(module.objective.coefficients, 0)
            self.objective_dropped = rounded.dropped
            self._terms(len(self.bounds), module.objective.variables, rounded.coefficients)

    def _narrow(self, coefficients: IntegerArray, bound: int) -> Rounded:
        """int64 coefficients; rounded outward where they do not fit."""
        rounded = round_row(coefficients, bound, bits=_BITS)
        self.relaxed = self.relaxed or not rounded.exact
        return replace(rounded, coefficients=rounded.coefficients.astype(np.int64))

    def _constraint(self, row: Linear) -> None:
        rounded = self._narrow(row.coefficients, row.bound)
        coefficients, bound = rounded.coefficients, rounded.bound
        number = len(self.bounds)
        scores = bool(np.any(self.leaf_of[row.variables] >= 0))
        if row.when != TRUE:
            # sum + M * [when is false] >= bound, with M so large that nothing is asked then.
            least = int(coefficients[coefficients < 0].sum()) if len(coefficients) else 0
            release = max(0, bound - least)
            variable, runs = self.places.ranges(row.when ^ 1)
            values = np.zeros(self.places.size[variable], np.int64)
            for low, high in runs:
                values[low : high + 1] = release
            self.unary.append((number, variable, values))
        self._terms(number, row.variables, coefficients)
        self.bounds.append(bound)
        self.weights.append(int(scores and row.when == TRUE))

    def _terms(self, row: int, variables: Int32Array, coefficients: Int64Array) -> None:
        leaf = self.leaf_of[variables]
        self.entries.append((leaf[leaf >= 0], row, coefficients[leaf >= 0]))
        per_variable: dict[int, Int64Array] = {}
        for v, c in zip(variables[leaf < 0].tolist(), coefficients[leaf < 0].tolist(), strict=True):
            variable, runs = self.places.ranges(v * 2)
            values = per_variable.setdefault(variable, np.zeros(self.places.size[variable], np.int64))
            for low, high in runs:
                values[low : high + 1] += c
        self.unary += [(row, variable, values) for variable, values in per_variable.items()]

    def arrays(self) -> dict[str, Any]:
        leaf = np.concatenate([e[0] for e in self.entries]) if self.entries else np.zeros(0, np.int64)
        row = np.concatenate([np.full(len(e[0]), e[1], np.int32) for e in self.entries]) if self.entries else leaf
        value = np.concatenate([e[2] for e in self.entries]) if self.entries else leaf
        order = np.lexsort((row, leaf))
        merged: dict[tuple[int, int], IntegerArray] = {}
        for number, variable, values in self.unary:
            key = (number, variable)
            merged[key] = merged[key] + values if key in merged else values
        terms = [(r, v, int(k), int(x[k])) for (r, v), x in merged.items() for k in np.flatnonzero(x)]
        flat = np.array(terms, np.int64).reshape(-1, 4)
        return {
            "coefficient_offset": indptr_of(np.bincount(leaf, minlength=self.leaves)),
            "coefficient_row": row[order].astype(np.int32),
            "coefficient_value": value[order].astype(np.int64),
            "bound": np.array(self.bounds, np.int64),
            "slack_weight": np.array(self.weights, np.uint8),
            "objective": self.objective,
            "unary_row": flat[:, 0].astype(np.int32),
            "unary_variable": flat[:, 1].astype(np.int32),
            "unary_cell": flat[:, 2].astype(np.int32),
            "unary_value": flat[:, 3],
        }


def _clauses(module: Module, places: Places, boxes: _Boxes) -> dict[str, Any]:
    counts: list[int] = []
    out: list[tuple[int, int, int]] = []
    known: dict[int, list[tuple[int, int, int]]] = {}  # staircases name each literal hundreds of times

    def add(literals: list[int]) -> None:
        before = len(out)
        for literal in literals:
            if literal not in known:
                variable, runs = places.ranges(literal)
                known[literal] = [(variable, low, high) for low, high in runs]
            out.extend(known[literal])
        counts.append(len(out) - before)

    for op in module.ops:
        match op:
            case Clause():
                for start, end in itertools.pairwise(op.indptr.tolist()):
                    add(op.literals[start:end].tolist())
            case Const():
                for literal in op.literals.tolist():
                    if places.variable[literal >> 1] >= 0:
                        add([literal])
                    elif literal & 1:
                        _forbid_leaf(literal >> 1, places, boxes, out, counts)
                    else:
                        raise BackendError(
                            "the native engine takes no leaf that must be reached; run drop-dead before it"
                        )
            case Path() | LeafSum() | Linear() | Table():
                pass  # boxes, rows and members
            case Equal():
                raise BackendError("the native engine takes merged copies only; run share-copies before it")
            case _:
                assert_never(op)
    flat = np.array(out, np.int32).reshape(-1, 3)
    return {
        "clause_offset": indptr_of(counts),
        "clause_variable": flat[:, 0],
        "clause_low": flat[:, 1],
        "clause_high": flat[:, 2],
    }


def _forbid_leaf(leaf: int, places: Places, boxes: _Boxes, out: list[tuple[int, int, int]], counts: list[int]) -> None:
    """A leaf that may not be reached: outside each of its boxes in some variable."""
    for box in range(*boxes.of[leaf].tolist()):
        before = len(out)
        for i in range(boxes.box_offset[box], boxes.box_offset[box + 1]):
            variable, low, high = int(boxes.variable[i]), int(boxes.low[i]), int(boxes.high[i])
            if low > 0:
                out.append((variable, 0, low - 1))
            if high < places.size[variable] - 1:
                out.append((variable, high + 1, places.size[variable] - 1))
        counts.append(len(out) - before)


def _hints(module: Module, places: Places, hints: Int32Array | None) -> Int32Array:
    """Cells of inputs as positions; an input in a cell that was dropped is moved to the nearest one that is left."""
    if hints is None or len(hints) == 0:
        return np.zeros((0, len(places.size)), np.int32)
    result = np.zeros((len(hints), len(places.size)), np.int32)
    for number, block in enumerate(module.blocks_of(Order)):
        wanted = hints[:, block.points[0], block.feature]
        result[:, number] = np.clip(np.searchsorted(block.cells, wanted), 0, len(block.cells) - 1)
    return result
