"""Finds regions: a region is a wide box of cells around a witness, in which every pair is a witness.

The paper measures a counterexample's distance from the data by its region, not by a point (section 6): a connected set on which
all trees keep their leaves. Here, a region starts as the box of these leaves, and every side is extended outwards as long as

    sum over trees of the smallest (largest) leaf value that the box can reach

still satisfies every score constraint. That sum bounds the score of each point of the box, so the guarantee is proved. The
engine visits only trees that split on the feature of the moving side (`engine/regions/region_grower.hpp`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from math import lcm
from typing import TypeAlias

import numpy as np

from treesens._engine import RegionGrower, ValueTrees
from treesens.compiler.base.arrays import BoolArray, Int32Array, Int64Array
from treesens.compiler.base.dyadic import Unit
from treesens.compiler.model.cells import CellEnsemble, LeafBoxes
from treesens.compiler.model.scores import BEYOND, base_units, leaf_values
from treesens.compiler.query.query import AllOf, AnyOf, AtLeast, AvoidBoxes, CellSet, Constraint, Query, SameExcept
from treesens.compiler.result import Region
from treesens.runtime.kept import Kept

_WEIGHT_BITS = 60
_ROW_BITS = 124
"""The engine requires weights below 2**_WEIGHT_BITS, and rows whose terms sum to less than 2**_ROW_BITS."""

EngineRow: TypeAlias = tuple[list[tuple[int, int]], list[tuple[int, int, Int64Array]], int, int]
"""The weights of scores, the weights and costs of places, and the bound in two parts, as `RegionGrower` expects."""


_BYTES_PER_NODE = 40
"""Memory per node that the engine uses for a tree with its values."""
_VALUE_TREES: Kept[tuple[ValueTrees, int, int]] = Kept(8, lambda made: _BYTES_PER_NODE * made[2])


def value_trees(model: CellEnsemble, output: int) -> tuple[ValueTrees, int]:
    """The trees of a model in the engine's form, with the leaf values of one output, and the shift of these values."""
    trees, shift, _ = _VALUE_TREES.of((model,), output, lambda: _value_trees(model, output))
    return trees, shift


def _value_trees(model: CellEnsemble, output: int) -> tuple[ValueTrees, int, int]:
    values, shift, slack = leaf_values(model, output)
    base = base_units(model, output, shift)
    return ValueTrees(trees=model.engine, leaf_value=values, base=base, slack=slack), shift, len(model.feature)


def box_of_leaves(boxes: LeafBoxes, leaves: Iterable[int]) -> list[BoolArray]:
    """The cells that all the given leaves (one per tree) share, bool[n_cells] per feature."""
    box = [np.ones(feature.n_cells, bool) for feature in boxes.grid]
    for leaf in leaves:
        for literal in range(boxes.offset[leaf], boxes.offset[leaf + 1]):
            box[int(boxes.feature[literal])] &= boxes.allowed(literal)
    return box


class RegionFinder:
    """Finds the regions of one question's witnesses; a region is None if a box cannot guarantee some constraint."""

    def __init__(self, query: Query) -> None:
        self.query = query
        self.rows: list[AtLeast] = []
        self.cavities: list[AvoidBoxes] = []
        self.sets: list[tuple[CellSet, ...]] = []  # of each tuple, at least one set must contain its point
        self.supported = True
        same: list[SameExcept] = []
        self._sort(query.constraints, same)
        features = range(len(query.space.names))
        free = frozenset[int]().union(*(c.varied for c in same))
        self.supported &= len(query.points) == 1 or (len(query.points) == 2 and len(same) == 1)
        self.shared = frozenset(f for f in features if f not in free)
        self.keys = sorted({(t.point, t.output) for row in self.rows for t in row.form.scores})
        self.forests = list(dict.fromkeys(replace(t, coefficient=1) for row in self.rows for t in row.form.forests))

    def _sort(self, constraints: Iterable[Constraint], same: list[SameExcept]) -> None:
        for constraint in constraints:
            match constraint:
                case SameExcept():
                    same.append(constraint)
                case AllOf():
                    self._sort(constraint.parts, same)
                case CellSet():
                    self.sets.append((constraint,))
                case AnyOf() if sets := tuple(part for part in constraint.parts if isinstance(part, CellSet)):
                    self.sets.append(sets)
                    self.supported &= len(sets) == len(constraint.parts)
                case AvoidBoxes():
                    self.cavities.append(constraint)
                case AtLeast(form=form, values=()) if not (form.changes or form.pairs or form.levels):
                    self.rows.append(constraint)
                case _:
                    self.supported = False

    def leaf_region(self, cells: Int32Array) -> Region | None:
        """The paper's region: the cells int32[points, features] that a point may have while every tree keeps its leaf."""
        return None if self._grower is None else self._region(self._grower.leaf_region(_as_cells(cells)))

    def region(self, cells: Int32Array) -> Region | None:
        """The leaf region with every side extended outwards while the guarantee holds, cheap features first."""
        return None if self._grower is None else self._region(self._grower.region(_as_cells(cells)))

    def _region(self, found: bytes) -> Region | None:
        if not found:
            return None
        counts = self.query.space.grid.n_cells
        flags = np.frombuffer(found, np.uint8).astype(bool).reshape(len(self.query.points), -1)
        ends = np.cumsum(counts)[:-1]
        return Region(tuple(tuple(np.split(box, ends)) for box in flags), self.shared)

    @cached_property
    def _grower(self) -> RegionGrower | None:
        """The engine's grower; None if no score needs a guarantee, or boxes cannot guarantee some constraint."""
        if not self.supported or not (self.keys or self.forests):
            return None
        space, points = self.query.space, self.query.points
        scores = [value_trees(self.query.models[points[p].model], output) for p, output in self.keys]
        scores += [value_trees(term.trees, 0) for term in self.forests]
        found = [self._row(row, [shift for _, shift in scores]) for row in self.rows]
        rows = [row for row in found if row is not None]
        if len(rows) < len(found):
            return None
        features = len(space.names)
        return RegionGrower(
            scores=[trees for trees, _ in scores],
            score_point=np.array([*(p for p, _ in self.keys), *(term.point for term in self.forests)], np.int32),
            points=len(points),
            shared=np.array([f in self.shared for f in range(features)], np.uint8),
            ordered=np.array([not grid.categories for grid in space.grid], np.uint8),
            legal=np.concatenate(space.legal).astype(np.uint8),
            rows=rows,
            sets=[[(s.point * features + s.feature, s.mask.astype(np.uint8)) for s in choice] for choice in self.sets],
            avoided=[(c.point, c.indptr, c.feature, c.low, c.high) for c in self.cavities],
            cells=space.grid.n_cells,
            missing_cell=space.grid.missing_cells,
        )

    def _row(self, row: AtLeast, shifts: Sequence[int]) -> EngineRow | None:
        """A constraint in integers: weights of scores, weights and costs of places, and bound; None if any overflows."""
        features = len(self.query.space.names)
        terms = [(self.keys.index((t.point, t.output)), t.coefficient) for t in row.form.scores]
        terms += [
            (len(self.keys) + self.forests.index(replace(t, coefficient=1)), Fraction(t.coefficient))
            for t in row.form.forests
        ]
        # A distance from a row whose features are all fixed is a constant and has no weights.
        unit = Unit(max([*(shifts[i] for i, _ in terms), *(cost.shift for cost in row.form.costs)], default=0))
        whole = lcm(*(c.denominator for _, c in terms))
        scores = [(i, int(unit.count(c * whole * Unit(shifts[i]).size))) for i, c in terms]
        most = sum(abs(weight) * 4 * BEYOND for _, weight in scores)
        costs: list[tuple[int, int, Int64Array]] = []
        for cost in row.form.costs:
            if cost.costs.dtype == object:
                return None
            place, weight = cost.point * features + cost.feature, int(unit.count(whole * Unit(cost.shift).size))
            costs.append((place, weight, np.ascontiguousarray(cost.costs, np.int64)))
            most += weight * max(int(cost.costs.max(initial=0)), -int(cost.costs.min(initial=0)))
        weights = [*(weight for _, weight in scores), *(weight for _, weight, _ in costs)]
        if most >= 1 << _ROW_BITS or any(abs(weight).bit_length() > _WEIGHT_BITS for weight in weights):
            return None
        # Sums are integers, so the bound can be rounded up to the least integer that meets it.
        bound = (row.bound * Fraction(whole)).ceil(unit.shift, strict=row.strict)
        bound = min(max(bound, -1 << _ROW_BITS), 1 << _ROW_BITS)
        return scores, costs, bound >> 62, bound & ((1 << 62) - 1)


def _as_cells(cells: Int32Array) -> Int32Array:
    return np.ascontiguousarray(cells, np.int32)
