"""Finds pairs near a row by single-feature moves, the first step of the search for the nearest pair.

From a row that is not a pair, insensitive features are moved one by one to the cell that brings the row closest to being a
pair, relative to the added distance; from a pair, features are moved back towards the row as long as a pair remains. Every step
is one compiled sweep over all cells of all features, in exact arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from treesens.compiler.base.arrays import BoolArray, FloatArray, Int32Array, Int64Array
from treesens.compiler.query.query import Query
from treesens.data.flips import FlipQuestion, Flips, flips
from treesens.extensions.answers.clusters import Rows

_MOVES = 8
"""Maximum number of features moved on the way to a pair."""

_PASSES = 4
_FREE = 1e-3
"""Minimum cost of a move when moves are compared, because free moves alone make no progress."""


class Neighbours:
    """Moves between cells that keep the sensitive features; `costs` below are float64[n_cells] per counted feature."""

    def __init__(self, query: Query, question: FlipQuestion, rows: Rows) -> None:
        self.query = query
        self.question = question
        self.rows = rows
        self.model = query.models[question.model]

    def costs(self, row: int) -> list[FloatArray]:
        """The costs of cells, given by their distance to a row: terms of a sum or, for linf, of a maximum."""
        distances = self.rows.distances(np.array([row]))
        return [d**2 for d in distances] if self.rows.norm == "l2" else distances

    def distance(self, total: float) -> float:
        """The distance that corresponds to a total cost."""
        return float(np.sqrt(total)) if self.rows.norm == "l2" else total

    def sweep(self, cells: Int32Array) -> Flips:
        """The extreme scores of the inputs `cells`, int32[n, features]."""
        question = self.question
        legal = self.query.space.legal
        return flips(self.model, cells, question.features, legal, output=question.output, with_own=False)

    def pair(self, cells: Int32Array, found: Flips, place: int) -> Int32Array:
        """Both points, int32[2, features], that the sweep `found` gives for the input at `place`."""
        high, low = found.highest_cells[place, None], found.lowest_cells[place, None]
        both: Int32Array = self.question.cells_of_pairs(cells[None], high, low)[0]
        return both

    def towards(
        self, cells: Int32Array, row: int, most: float, left: Callable[[], float]
    ) -> tuple[Int32Array, float] | None:
        """A pair, int32[2, features], reached from `cells`, int32[features], and its distance to the row, below `most`.

        None if the moves lead to no pair; `left` returns the remaining seconds.
        """
        costs = self.costs(row)
        current = cells.copy()
        limit = most**2 if self.rows.norm == "l2" else most
        lacks = int(self.question.deficit(self.sweep(current[None]))[0])
        for _ in range(_MOVES):
            if lacks == 0:
                break
            moved, totals = self._moves(current, costs, lambda total: total < limit)
            if left() <= 0 or len(moved) == 0:
                return None
            deficit = self.question.deficit(self.sweep(moved))
            pairs = np.flatnonzero(deficit == 0)
            if len(pairs):
                place = int(pairs[np.argmin(totals[pairs])])
            else:
                paid = self._total(current, costs)
                worth = (lacks - deficit) / np.maximum(totals - paid, _FREE)
                place = int(np.argmax(worth))
                if deficit[place] >= lacks:
                    return None
            current, lacks = moved[place], int(deficit[place])
        return self.back(current, row, left) if lacks == 0 else None

    def back(self, cells: Int32Array, row: int, left: Callable[[], float]) -> tuple[Int32Array, float] | None:
        """Moves single features of a pair nearer to the row as long as a pair remains; None if `cells` are not a pair."""
        costs = self.costs(row)
        current = cells.copy()
        found = self.sweep(current[None])
        if int(self.question.deficit(found)[0]) > 0:
            return None
        best = self.pair(current, found, 0)
        total = self._total(current, costs)
        for _ in range(_PASSES * len(costs)):
            moved, totals = self._moves(current, costs, lambda t, total=total: t < total)  # type: ignore[misc]
            if left() <= 0 or len(moved) == 0:
                break
            found = self.sweep(moved)
            pairs = np.flatnonzero(self.question.deficit(found) == 0)
            if len(pairs) == 0:
                break
            place = int(pairs[np.argmin(totals[pairs])])
            current, total = moved[place], float(totals[place])
            best = self.pair(current, found, place)
        return best, self.distance(total)

    def _total(self, cells: Int32Array, costs: Sequence[FloatArray]) -> float:
        mine = [float(cost[cells[f]]) for f, cost in zip(self.rows.features, costs, strict=True)]
        return max(mine, default=0.0) if self.rows.norm == "linf" else float(np.sum(mine))

    def _moves(
        self, cells: Int32Array, costs: Sequence[FloatArray], wanted: Callable[[FloatArray], BoolArray]
    ) -> tuple[Int32Array, FloatArray]:
        """All inputs int32[n, features] that differ from `cells` in one counted feature, and their total costs float64[n]."""
        features: list[Int64Array] = []
        chosen: list[Int64Array] = []
        totals: list[FloatArray] = []
        mine = np.array([cost[cells[f]] for f, cost in zip(self.rows.features, costs, strict=True)])
        for column, (f, cost) in enumerate(zip(self.rows.features, costs, strict=True)):
            others = np.delete(mine, column)
            total = np.maximum(others.max(initial=0.0), cost) if self.rows.norm == "linf" else others.sum() + cost
            allowed = np.isfinite(cost) & self.query.space.legal[f] & wanted(total)
            allowed[cells[f]] = False
            places = np.flatnonzero(allowed)
            features.append(np.full(len(places), f))
            chosen.append(places)
            totals.append(total[places])
        count = sum(map(len, chosen))
        moved = np.repeat(cells[None], count, axis=0)
        if count:
            moved[np.arange(count), np.concatenate(features)] = np.concatenate(chosen)
        return moved, np.concatenate(totals) if totals else np.empty(0)
