"""Converts the IR to the flat arrays of the native engine, and back.

order block, free Boolean a variable (its cells; {0, 1}) exactly-one block a group per tree; copies of a tree have one tree
number and are joined by the engine LeafImplies, LeafSum the boxes of the leaves Membership the runs of a leaf's box; several
runs make several boxes Linear a constraint; predicates become terms per cell; `when` w adds M (1 - w) Clauses, Facts
clauses over ranges of cells, allowed cells Objective                   the objective row, unless it only guides Equal
merged beforehand (share-copies)
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, assert_never

import numpy as np

from treesens.backends.native.boxes import Boxes, boxes_of, tree_groups
from treesens.backends.native.problem import Places, SearchProblem, places_of
from treesens.backends.native.score_rows import Rows
from treesens.compiler.base.arrays import BoolArray, Int32Array, indptr_of
from treesens.compiler.ir import Clauses, Equal, Facts, LeafImplies, LeafSum, Linear, Membership, Module, Order
from treesens.errors import BackendError


@dataclass(frozen=True)
class Adapted:
    """A problem with the mapping back to the module. `relaxed` is True if rows were rounded outward: replay every witness."""

    problem: SearchProblem
    places: Places
    leaf_variable: Int32Array
    """int32[L]: the module variable of every leaf of the problem."""
    relaxed: bool
    objective_shift: int
    objective_constant: int
    gap_shift: int
    """The finest unit of score rows, shared or not, is 2**-gap_shift."""
    coarsest_shift: int
    """The coarsest unit of score rows, before rounding, is 2**-coarsest_shift."""
    objective_dropped: int = 0
    """Bits by which the objective was rounded up: its values are in steps of 2**objective_dropped units."""
    row_dropped: tuple[int, ...] = ()
    """Per row: one unit is 2**row_dropped units of the module's row, rounded outward if row_dropped > 0."""

    def assignment(self, cells: Int32Array, variables: int) -> BoolArray:
        """Values of the module's predicates, members and free Booleans; leaf indicators stay false (they are never read)."""
        result = np.zeros(variables, bool)
        known = np.flatnonzero(self.places.variable >= 0)
        result[known] = cells[self.places.variable[known]] <= self.places.position[known]
        for v, mask in self.places.member.items():
            result[v] = bool(mask[cells[self.places.variable[v]]])
        return result


def adapt(module: Module, hints: Int32Array | None = None, *, alike: bool = False) -> Adapted:
    """The problem of a module without `Equal` ops. `hints`, int32[H, points, features], holds the cells of promising inputs.

    With `alike`, the score rows have one common unit, so that their slacks can be compared.
    """
    places = places_of(module)
    groups = tree_groups(module)
    boxes = boxes_of(module, places, groups.leaf_variable)
    rows = Rows(module, places, groups, alike=alike)
    clauses = _clauses(module, places, boxes)
    problem = SearchProblem(
        size=np.array(places.size, np.int32),
        feature=np.array(places.feature, np.int32),
        # Facts are clauses of one literal; every remaining cell of an order block is allowed.
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
        groups.leaf_variable,
        rows.relaxed,
        0 if objective is None else objective.shift,
        0 if objective is None else objective.constant,
        rows.shift,
        rows.coarsest_shift,
        rows.objective_dropped,
        tuple(rows.row_dropped),
    )


def _clauses(module: Module, places: Places, boxes: Boxes) -> dict[str, Any]:
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
            case Clauses():
                for start, end in itertools.pairwise(op.indptr.tolist()):
                    add(op.literals[start:end].tolist())
            case Facts():
                for literal in op.literals.tolist():
                    if places.variable[literal >> 1] >= 0:
                        add([literal])
                    elif literal & 1:
                        _forbid_leaf(literal >> 1, places, boxes, out, counts)
                    else:
                        raise BackendError(
                            "the native engine does not support leaves that must be reached; run drop-dead first"
                        )
            case LeafImplies() | LeafSum() | Linear() | Membership():
                pass  # boxes, rows and members
            case Equal():
                raise BackendError("the native engine supports merged copies only; run share-copies first")
            case _:
                assert_never(op)
    flat = np.array(out, np.int32).reshape(-1, 3)
    return {
        "clause_offset": indptr_of(counts),
        "clause_variable": flat[:, 0],
        "clause_low": flat[:, 1],
        "clause_high": flat[:, 2],
    }


def _forbid_leaf(leaf: int, places: Places, boxes: Boxes, out: list[tuple[int, int, int]], counts: list[int]) -> None:
    """Adds clauses that forbid a leaf: for each box of the leaf, some variable is outside the box."""
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
    """Cells of inputs as positions; an input in a dropped cell is moved to the nearest remaining cell."""
    if hints is None or len(hints) == 0:
        return np.zeros((0, len(places.size)), np.int32)
    result = np.zeros((len(hints), len(places.size)), np.int32)
    for number, block in enumerate(module.blocks_of(Order)):
        wanted = hints[:, block.points[0], block.feature]
        result[:, number] = np.clip(np.searchsorted(block.cells, wanted), 0, len(block.cells) - 1)
    return result
