"""The native engine's search for the share of a measure that is affected (docs/measures.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from treesens._engine import ShareSearch as EngineSearch
from treesens.compiler.base.arrays import FloatArray, Int32Array, Int64Array
from treesens.compiler.model.cell_trees import CellTrees
from treesens.extensions.measure.measure import Measure
from treesens.extensions.measure.proposal import Tilt
from treesens.extensions.measure.sides import Row, Sides

NONE, CONCERNED = 0, 2
"""The states of an input; the third state, 1, is open, and occurs only if scores are rounded."""

_ROUNDINGS = 2.0**-50
_FEW = 8
"""Maximum number of features without mass underflow: each feature adds two factors of at least 2^-62 (table and cells)."""


@dataclass(frozen=True)
class Masses:
    """Proved shares: a share between `lower` and `upper` of the measure is affected. `open` is the share of open boxes."""

    lower: float
    upper: float
    open: float
    nodes: int
    open_boxes: int
    full_boxes: int


@dataclass(frozen=True, eq=False)
class Draws:
    """Draws from the open boxes: `concerned` and `maybe`, float64, hold the masses of affected and of possibly affected inputs.
    `hits`, int32[hits, features], holds some of the affected inputs, with the weights `hit_weights`.
    """

    drawn: int
    concerned: FloatArray
    maybe: FloatArray
    hits: Int32Array
    hit_weights: FloatArray


class ShareSearch:
    """Branch and bound over boxes of cells of one model; inputs are drawn from the open boxes.

    Cells are cells of `trees`: `onehot` groups are folded (groups.py), both in boxes and in draws.
    """

    def __init__(self, trees: CellTrees, sides: Sides, measure: Measure) -> None:
        self.measure, self.features = measure, len(trees.grid)
        self.varied = frozenset(sides.varied.tolist())
        self._cells = trees.grid.n_cells
        none = np.zeros(0, np.uint8)
        self._engine = EngineSearch(
            trees=trees.engine,
            values=sides.values, base=sides.base, varied=sides.varied, choices=sides.choices,
            first=_matrix(sides.first), second=_matrix(sides.second), compared=np.array(sides.compared, np.int32),
            apart_counts=sides.apart_counts, apart=np.array(sides.apart, np.int64),
            allowed=none if sides.allowed is None else sides.allowed.astype(np.uint8).ravel(),
            bin=np.concatenate(measure.bins), weight=np.concatenate(measure.weights), parent=measure.parent,
            order=measure.order, table=np.concatenate([t.ravel() for t in measure.tables]),
        )  # fmt: skip

    def run(
        self, seconds: float, *, enough: float = 0.0, most_boxes: int = 1_000_000, most_nodes: int = 1 << 60
    ) -> None:
        """Continues until `seconds` or `most_nodes` are used up, or at most `enough` of the measure is open."""
        self._engine.run(enough, most_boxes, most_nodes, seconds)

    def masses(self) -> Masses:
        """The proved shares so far, rounded outwards."""
        p = self._engine.progress()
        lower, upper = self.outward(p["full"], p["full"] + p["open"])
        return Masses(lower, upper, p["open"], p["nodes"], p["open_boxes"], p["full_boxes"])

    def full_mass(self) -> float:
        """The mass of boxes in which every input is affected, not rounded outwards."""
        return float(self._engine.progress()["full"])

    def outward(self, low: float, high: float) -> tuple[float, float]:
        """Converts two sums of box masses to shares, rounded such that they enclose the true shares."""
        p = self._engine.progress()
        boxes = p["open_boxes"] + p["full_boxes"]
        relative = p["relative_error"] + (boxes + 64) * _ROUNDINGS
        # A mass with many factors may have underflowed to 0.
        lost = 0.0 if self.features <= _FEW else (p["nodes"] + 64) * 1e-290
        lower = low * (1 - relative) - self.measure.error
        upper = high * (1 + relative) + self.measure.error + lost
        return max(0.0, lower), min(1.0, upper)

    def propose(self, tilts: Sequence[Tilt]) -> None:
        """Sets the distributions from which inputs are drawn; they also determine the order in which boxes are split."""
        if not tilts:
            return
        stacked = [
            np.array([np.concatenate(t.weights) for t in tilts]),
            np.array([np.concatenate(t.ratios) for t in tilts]),
        ]
        tables = np.array([np.concatenate([table.ravel() for table in t.tables]) for t in tilts])
        self._engine.propose(
            part=np.array([t.part for t in tilts]), cell_count=self._cells, bin=np.concatenate(self.measure.bins),
            weight=stacked[0], parent=self.measure.parent, order=self.measure.order, table=tables, ratio=stacked[1],
        )  # fmt: skip

    def heaviest(self) -> float:
        """The greatest mass of a single draw, times the number of draws."""
        return float(self._engine.heaviest())

    def sample(self, count: int, seed: int, most_hits: int = 0) -> Draws:
        """Draws `count` inputs from the open boxes, one from each of `count` strata of equal expectation."""
        drawn, concerned, maybe, hits, weights = self._engine.sample(count, most_hits, seed)
        return Draws(drawn, concerned, maybe, self._rows(hits), weights)

    def draw_full(self, count: int, seed: int) -> Int32Array:
        """Inputs from boxes in which every input is affected, int32[count, features]; empty if there are no such boxes."""
        return self._rows(self._engine.draw_full(count, seed))

    def largest_full(self, count: int) -> list[tuple[Int32Array, Int32Array, float]]:
        """Boxes in which every input is affected, the largest first: first and last cells of all features, and the mass."""
        found = self._engine.largest_full(count)
        return [(np.array(low, np.int32), np.array(high, np.int32), mass) for low, high, mass in found]

    def answers(self, cells: Int32Array) -> NDArray[np.uint8]:
        """For every row of cells, NONE, CONCERNED or 1 (open), uint8[rows]."""
        out = np.empty(len(cells), np.uint8)
        self._engine.answers(np.ascontiguousarray(cells, np.int32), self._cells, out)
        return out

    def shortfalls(self, cells: Int32Array) -> FloatArray:
        """The distance of each row's scores from the scores of an affected input, in units of the tables, float64[rows]."""
        out = np.empty(len(cells))
        self._engine.shortfalls(np.ascontiguousarray(cells, np.int32), self._cells, out)
        return out

    def mass(self, low: Int32Array, high: Int32Array) -> float:
        """The mass of a box, not rounded outwards."""
        return float(self._engine.mass(low, high, self._cells))

    def _rows(self, flat: ArrayLike) -> Int32Array:
        return np.array(flat, np.int32).reshape(-1, self.features)


def _matrix(rows: list[Row]) -> Int64Array:
    return np.array([[r.table, r.sign, r.possible, r.certain] for r in rows], np.int64).reshape(-1, 4)
