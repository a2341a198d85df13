"""Regions: the widest box of cells around a witness in which every pair is one.

The paper measures how far a counterexample is from the data by its region, not by a point of it (section 6): a connected set on
which all trees keep their leaves. Here the box of those leaves is the start, and every side then moves outwards as long as

    sum over trees of the smallest (largest) leaf value that the box can reach

still satisfies every score constraint. That sum bounds the score of each point of the box, so the guarantee is proved.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from treesens.compiler.base.arrays import BoolArray, Int32Array, Int64Array, distinct
from treesens.compiler.model.cells import CellEnsemble, LeafBoxes
from treesens.compiler.query.query import AllOf, AnyOf, AtLeast, AvoidBoxes, CellSet, Constraint, Query, SameExcept
from treesens.compiler.result import Masks, Region
from treesens.data.flips import base_units, leaf_values


class ScoreRange:
    """Bounds on the score of a model over boxes of cells, in units of 2**-shift.

    Boxes of one search differ in few features: what a feature rules out is kept until its cells change.
    """

    def __init__(self, model: CellEnsemble, output: int) -> None:
        self.values, self.shift, self.slack = leaf_values(model, output)
        self.base = base_units(model, output, self.shift)
        self.boxes: LeafBoxes = model.leaf_boxes()
        self.first_leaf = np.searchsorted(model.ensemble.leaf_tree, np.arange(model.n_trees))
        boxes = self.boxes
        owner = np.repeat(np.arange(len(boxes.offset) - 1), np.diff(boxes.offset))
        asking = [np.flatnonzero(boxes.feature == f) for f in range(len(boxes.grid))]
        self.literals = [(literals, owner[literals]) for literals in asking]
        self.failed = np.zeros(len(boxes.offset) - 1, np.int32)  # per leaf: literals that no cell of the box meets
        self.misses: list[tuple[bytes, BoolArray]] = [(b"", np.zeros(len(x), bool)) for x in asking]

    def reached(self, box: Masks) -> BoolArray:
        """Leaves that some point of the box reaches, as far as single features can tell, bool[leaves]."""
        for f, mask in enumerate(box):
            known, before = self.misses[f]
            cells = mask.tobytes()
            if cells == known:
                continue
            literals, leaves = self.literals[f]
            misses = ~self._meets(f, literals, mask)
            # A leaf has at most one literal per feature, so no index stands here twice.
            self.failed[leaves] += misses.astype(np.int32) - before
            self.misses[f] = cells, misses
        return np.equal(self.failed, 0)

    def _meets(self, f: int, literals: Int64Array, mask: BoolArray) -> BoolArray:
        """Which literals of a feature allow a cell of `mask` bool[n_cells]."""
        boxes = self.boxes
        below = np.concatenate(([0], np.cumsum(mask)))
        low, high = boxes.lo[literals], boxes.hi[literals]
        meets: BoolArray = below[np.maximum(high + 1, low)] > below[low]
        feature = boxes.grid[f]
        if feature.missing and mask[feature.missing_cell]:
            meets |= boxes.missing[literals]
        for i in np.flatnonzero(boxes.mask[literals] >= 0):
            meets[i] = bool((boxes.allowed(int(literals[i])) & mask).any())
        return meets

    def range(self, box: Masks) -> tuple[int, int]:
        """No point of the box scores less than the first or more than the second."""
        reached = self.reached(box)
        low = np.where(reached, self.values, np.iinfo(np.int64).max)
        high = np.where(reached, self.values, np.iinfo(np.int64).min)
        least = int(np.minimum.reduceat(low, self.first_leaf).sum())
        most = int(np.maximum.reduceat(high, self.first_leaf).sum())
        return least + self.base, most + self.base + self.slack

    def leaf_box(self, cells: Int32Array) -> list[BoolArray]:
        """The cells of every feature that lead to the same leaf as `cells` int32[features] in every tree."""
        point = [np.zeros(feature.n_cells, bool) for feature in self.boxes.grid]
        for f, cell in enumerate(cells):
            point[f][cell] = True
        return box_of_leaves(self.boxes, np.flatnonzero(self.reached(tuple(point))))


def box_of_leaves(boxes: LeafBoxes, leaves: Iterable[int]) -> list[BoolArray]:
    """The cells that some leaves (one per tree) have in common, bool[n_cells] per feature."""
    box = [np.ones(feature.n_cells, bool) for feature in boxes.grid]
    for leaf in leaves:
        for literal in range(boxes.offset[leaf], boxes.offset[leaf + 1]):
            box[int(boxes.feature[literal])] &= boxes.allowed(literal)
    return box


class RegionFinder:
    """Regions of the witnesses of one question; None if a constraint is none that boxes can keep."""

    def __init__(self, query: Query) -> None:
        self.query = query
        self.rows: list[tuple[AtLeast, int, int]] = []  # constraint, shift, bound in its units
        self.cavities: list[AvoidBoxes] = []
        self.sets: list[CellSet] = []
        self.choices: list[tuple[CellSet, ...]] = []  # of each, one set has to hold
        self.supported = True
        same: list[SameExcept] = []
        self._sort(query.constraints, same)
        features = range(len(query.space.names))
        free = frozenset[int]().union(*(c.varied for c in same))
        self.supported &= len(query.points) == 1 or (len(query.points) == 2 and len(same) == 1)
        self.shared = frozenset(f for f in features if f not in free)
        keys = {(query.points[t.point].model, t.output) for row, _, _ in self.rows for t in row.form.scores}
        self.ranges = {key: ScoreRange(query.models[key[0]], key[1]) for key in keys} if self.supported else {}

    def _sort(self, constraints: Iterable[Constraint], same: list[SameExcept]) -> None:
        for constraint in constraints:
            match constraint:
                case SameExcept():
                    same.append(constraint)
                case AllOf():
                    self._sort(constraint.parts, same)
                case CellSet():
                    self.sets.append(constraint)
                case AnyOf() if sets := tuple(part for part in constraint.parts if isinstance(part, CellSet)):
                    self.choices.append(sets)
                    self.supported &= len(sets) == len(constraint.parts)
                case AvoidBoxes():
                    self.cavities.append(constraint)
                case AtLeast() if not (constraint.form.changes or constraint.form.pairs or constraint.form.levels):
                    shift = 64
                    self.rows.append((constraint, shift, constraint.bound.ceil(shift, strict=constraint.strict)))
                case _:
                    self.supported = False

    def leaf_region(self, cells: Int32Array) -> Region | None:
        """The region of the paper: the cells int32[points, features] may move while every tree keeps its leaves."""
        if not self.supported or not self.ranges:
            return None
        boxes = []
        for number, point in enumerate(self.query.points):
            box = [mask.copy() for mask in self.query.space.legal]
            for (model, _), found in self.ranges.items():
                if model == point.model:
                    box = [a & b for a, b in zip(box, found.leaf_box(cells[number]), strict=True)]
            for chosen in self.sets:
                if chosen.point == number:
                    box[chosen.feature] = box[chosen.feature] & chosen.mask
            boxes.append([_run_around(mask, int(cell)) for mask, cell in zip(box, cells[number], strict=True)])
        if len(boxes) > 1:
            for f in self.shared:
                boxes[0][f] = boxes[1][f] = _run_around(boxes[0][f] & boxes[1][f], int(cells[0, f]))
        region = Region(tuple(tuple(box) for box in boxes), self.shared)
        return region if self.holds(region) else self._single(cells)

    def _single(self, cells: Int32Array) -> Region | None:
        boxes = []
        for row in cells:
            box = [np.zeros(len(mask), bool) for mask in self.query.space.legal]
            for f, cell in enumerate(row):
                box[f][cell] = True
            boxes.append(tuple(box))
        region = Region(tuple(boxes), self.shared)
        return region if self.holds(region) else None

    def holds(self, region: Region) -> bool:
        """Whether every point (pair) of the region satisfies every constraint of the question, as far as bounds can tell."""
        if not all(_within(region, chosen) for chosen in self.sets):
            return False
        if not all(any(_within(region, chosen) for chosen in sets) for sets in self.choices):
            return False
        if any(_enters(cavity, region.boxes[cavity.point]) for cavity in self.cavities):
            return False
        ranges: dict[tuple[int, int], tuple[Fraction, Fraction]] = {}
        for row, shift, bound in self.rows:
            least = Fraction(0)
            for term in row.form.scores:
                key = (term.point, term.output)
                if key not in ranges:
                    found = self.ranges[self.query.points[term.point].model, term.output]
                    low, high = found.range(region.boxes[term.point])
                    unit = Fraction(1, 2**found.shift) if found.shift >= 0 else Fraction(2**-found.shift)
                    ranges[key] = low * unit, high * unit
                least += term.coefficient * ranges[key][0 if term.coefficient > 0 else 1]
            for cost in row.form.costs:
                costs = cost.costs[region.boxes[cost.point][cost.feature]]
                least += Fraction(int(costs.min()), 2**cost.shift)
            if least < Fraction(bound, 2**shift):
                return False
        return True

    def region(self, cells: Int32Array) -> Region | None:
        """The leaf region, every side moved outwards as far as the guarantee holds, cheap features first."""
        region = self.leaf_region(cells)
        if region is None:
            return None
        places = [(None, f) for f in sorted(self.shared)]
        free = [f for f in range(len(self.query.space.names)) if f not in self.shared]
        places += [(p, f) for p in range(len(self.query.points)) for f in free]  # type: ignore[misc]
        prices = [self._price(region, *place) for place in places]
        for i in np.argsort(prices, kind="stable"):
            point, f = places[i]
            region = self._widened(region, point, f, cells)
        return region

    def _price(self, region: Region, point: int | None, feature: int) -> float:
        """How many cells a feature lacks: those that nearly are whole come first."""
        mask = region.boxes[point or 0][feature]
        return float((self.query.space.legal[feature] & ~mask).sum())

    def _widened(self, region: Region, point: int | None, feature: int, cells: Int32Array) -> Region:
        legal = self.query.space.legal[feature]
        mask = region.boxes[point or 0][feature]
        whole = _with(region, point, feature, legal)
        if mask.sum() == legal.sum() or self.holds(whole):
            return whole
        grid = self.query.space.grid[feature]
        if grid.categories:
            for cell in np.flatnonzero(legal & ~mask):
                wider = mask.copy()
                wider[cell] = True
                if self.holds(_with(region, point, feature, wider)):
                    mask = wider
            return _with(region, point, feature, mask)
        if cells[point or 0, feature] == grid.missing_cell:
            return region
        here = np.flatnonzero(mask[: grid.present_cells])
        first, last = int(here[0]), int(here[-1])
        ends = [int(c) for c in np.flatnonzero(legal[: grid.present_cells])]
        last = self._furthest(region, point, feature, legal, first, [c for c in ends if c >= last], upwards=True)
        first = self._furthest(
            region, point, feature, legal, last, [c for c in ends if c <= first][::-1], upwards=False
        )
        return _with(region, point, feature, _run(legal, first, last, grid.missing_cell, mask))

    def _furthest(
        self,
        region: Region,
        point: int | None,
        feature: int,
        legal: BoolArray,
        fixed: int,
        ends: list[int],
        *,
        upwards: bool,
    ) -> int:
        """The furthest of `ends` (the first is where the side is now) to which a side can move: bisection, as boxes nest."""
        missing = self.query.space.grid[feature].missing_cell
        mask = region.boxes[point or 0][feature]
        good, bad = 0, len(ends)
        while bad - good > 1:
            middle = (good + bad) // 2
            low, high = (fixed, ends[middle]) if upwards else (ends[middle], fixed)
            if self.holds(_with(region, point, feature, _run(legal, low, high, missing, mask))):
                good = middle
            else:
                bad = middle
        return ends[good]


def _run(legal: BoolArray, low: int, high: int, missing: int, before: BoolArray) -> BoolArray:
    """Legal cells from low to high; the missing cell stays as it was."""
    result = np.zeros(len(legal), bool)
    result[low : high + 1] = legal[low : high + 1]
    if missing >= 0:
        result[missing] = before[missing]
    return result


def _run_around(mask: BoolArray, cell: int) -> BoolArray:
    """The connected part of a set of cells that holds `cell`."""
    result = np.zeros(len(mask), bool)
    gaps = np.flatnonzero(~mask)
    before, after = gaps[gaps < cell], gaps[gaps > cell]
    result[(int(before[-1]) + 1 if len(before) else 0) : (int(after[0]) if len(after) else len(mask))] = True
    return result


def _with(region: Region, point: int | None, feature: int, mask: BoolArray) -> Region:
    """The region with other cells of a feature, at one point or (None) at all of them."""
    boxes = tuple(
        tuple(mask if f == feature and point in (None, p) else old for f, old in enumerate(box))
        for p, box in enumerate(region.boxes)
    )
    return Region(boxes, region.shared)


def _within(region: Region, chosen: CellSet) -> bool:
    """Whether every point of the region lies in a set of cells."""
    return not (region.boxes[chosen.point][chosen.feature] & ~chosen.mask).any()


def _enters(cavities: AvoidBoxes, box: Masks) -> bool:
    """Whether some cavity and the box have a point in common."""
    low, high = cavities.low, cavities.high
    inside = np.zeros(len(low), bool)
    for f in distinct(cavities.feature):
        mine = cavities.feature == f
        below: Int64Array = np.concatenate(([0], np.cumsum(box[int(f)])))
        inside[mine] = below[high[mine] + 1] > below[low[mine]]
    missed = np.concatenate(([0], np.cumsum(~inside)))
    return bool((missed[cavities.indptr[1:]] == missed[cavities.indptr[:-1]]).any())
