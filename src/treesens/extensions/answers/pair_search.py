"""Finds the pair nearest to any row by native branch and bound over boxes of cells, around groups of rows and then single rows.

A larger radius is tried only after the current radius is proved to contain no pair around any row, so the answer has a lower
bound at any time. The first pair found shortens all further searches. Rows that exceed the limit on boxes are retried with a
higher limit once all other rows are done.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from treesens._engine import NearestPairs
from treesens.compiler.base.arrays import BoolArray, Int32Array, Int64Array
from treesens.compiler.model.scores import BEYOND, base_units, clipped, leaf_values
from treesens.compiler.query.query import Query
from treesens.data.flips import FlipQuestion
from treesens.extensions.answers.clusters import Rows

_NORMS = {"l0": 0, "l1": 1, "l2": 2, "linf": 3}
_BOXES = 250
_MORE_BOXES = 8
_RADII = (1 / 64, 1 / 16, 1 / 4, 1 / 2)
"""Radii to try, as shares of the best known distance."""

_GREEDY_SHARE = 0.3
"""Share of the remaining time for greedy moves before rows are searched with more boxes."""

_MANY = 0.1
"""Larger radii are not tried if more than this share of the rows needs more boxes."""

_CLOSE = 1e-9


class RowSearch:
    """Searches around rows for pairs that answer a question about only flips; `proven`, float64[rows], are proved distances.

    No pair is nearer to a row than the row's entry in `proven`.
    """

    def __init__(self, query: Query, question: FlipQuestion, rows: Rows) -> None:
        self.space = space = query.space
        self.rows = rows
        self.model = query.models[question.model]
        self.values_of_leaves, shift, self.slack = leaf_values(self.model, question.output)
        base = base_units(self.model, question.output, shift)
        sides = question.high is not None and question.low is not None
        self.top = clipped(question.high.ceil(shift) - base) if question.high is not None and sides else 0
        self.bottom = clipped(-((-question.low).ceil(shift)) - base) if question.low is not None and sides else 0
        self.sides = sides
        self.swing = None if question.swing is None else clipped(question.swing.ceil(shift))
        features = len(space.names)
        self.varied = np.zeros(features, np.uint8)
        self.varied[list(question.features)] = 1
        self.unit = np.zeros(features)
        self.proven = np.zeros(len(rows.values))
        self.pair = np.zeros((2, features), np.int32)
        self.search = self._native() if self.possible else None

    def _native(self) -> NearestPairs:
        model, rows, space = self.model, self.rows, self.space
        legal = np.concatenate(space.legal).astype(np.uint8)
        low, high = np.zeros(len(legal)), np.zeros(len(legal))
        same_or_not = np.zeros(len(space.names), np.uint8)
        values = np.zeros((len(rows.values), len(space.names)))
        own = np.zeros((len(rows.values), len(space.names)), np.int32)
        start = np.concatenate(([0], np.cumsum([len(legal) for legal in space.legal])))
        for column, (f, about) in enumerate(zip(rows.features, rows.about, strict=True)):
            here = slice(int(start[f]), int(start[f]) + len(about.low))
            low[here], high[here] = about.low, about.high
            self.unit[f], same_or_not[f] = about.unit, about.same_or_not
            values[:, f] = rows.values[:, column]
            own[:, f] = rows.cells[column]
        return NearestPairs(
            trees=model.engine,
            leaf_value=self.values_of_leaves,
            varied=self.varied,
            legal=legal,
            value_low=low,
            value_high=high,
            unit=self.unit,
            same_or_not=same_or_not,
            norm=_NORMS[rows.norm],
            has_sides=self.sides,
            top=self.top,
            bottom=self.bottom,
            has_swing=self.swing is not None,
            swing=self.swing or 0,
            slack=self.slack,
            values=values,
            own=own,
        )

    @property
    def possible(self) -> bool:
        """True if the native search can represent the numbers of the question."""
        leaves = int(np.abs(self.values_of_leaves).max(initial=0)) * self.model.n_trees
        sums = (self.top, self.bottom, self.swing or 0, self.slack, leaves)
        return (self.sides or self.swing is not None) and all(abs(each) <= BEYOND for each in sums)

    def run(
        self,
        order: Int64Array,
        best: Callable[[], float],
        offer: Callable[[Int32Array, int], None],
        left: Callable[[], float],
    ) -> float:
        """Searches around all rows; returns the proved bound on the distance.

        `order`, int64[rows], lists the most promising rows first; `best` returns the known distance; `offer` takes a pair of
        cells, int32[2, features], with its row; `left` returns the remaining seconds.
        """
        self.best, self.offer, self.left = best, offer, left
        self.done = np.zeros(len(self.proven), bool)  # the search has finished with these rows
        place, boxes = 0, _BOXES
        while True:
            place = self._promising(order, place)
            waiting = np.zeros(len(self.proven), bool)
            for radius in self._radii(best()):
                self._pass(radius, boxes, waiting)
                if left() <= 0 or waiting.sum() > _MANY * len(waiting):
                    break
            if left() <= 0 or not waiting.any():
                return min(float(self.proven.min(initial=math.inf)), best())
            boxes *= _MORE_BOXES

    def _radii(self, best: float) -> Iterator[float]:
        """Increasing radii, up to the best known distance."""
        if best < math.inf:
            yield from (best * share for share in _RADII)
            yield best
            return
        radius = _RADII[0] if self.rows.norm != "l0" else 1.5
        while radius < 2 * len(self.unit):
            yield radius
            radius *= 2
        yield math.inf

    def _cost(self, distance: float) -> float:
        return distance**2 if self.rows.norm == "l2" else distance

    def _distance(self, cost: float) -> float:
        return math.sqrt(cost) if self.rows.norm == "l2" else cost

    def _promising(self, order: Int64Array, place: int) -> int:
        """Makes greedy moves around rows of `order` from `place` on, to find a pair that shortens all searches."""
        assert self.search is not None
        until = self.left() * (1 - _GREEDY_SHARE)
        while place < len(order) and (seconds := self.left() - until) > 0 and self.best() > 0:
            place, row, cost, _ = self.search.descend(
                order, place, self._cost(self.best()), seconds, self._stopped, self.pair
            )
            if row < 0:
                continue
            self._found(row, self._distance(cost), False)
            # The search around the pair's row improves the pair, or proves that it is the best pair there.
            _, row, cost, closed = self.search.around(
                row, self._cost(self.best()), _BOXES, self.left(), self._stopped, self.pair
            )
            if row >= 0:
                self._found(row, self._distance(cost), closed)
        return place

    def _stopped(self) -> bool:
        return self.left() <= 0

    def _found(self, row: int, distance: float, closed: bool) -> None:
        """Offers the pair found around a row; if the search is `closed`, no other pair is nearer to the row."""
        if closed:
            self.proven[row] = max(float(self.proven[row]), distance)
        before = self.best()
        self.offer(self.pair.copy(), row)
        self.done[row] = closed or self.best() >= before

    def _pass(self, radius: float, boxes: int, waiting: BoolArray) -> None:
        """Searches within a radius around every row that may still have a pair there; flags rows that need more boxes."""
        assert self.search is not None
        cutoff = min(radius, self.best())
        active = ((self.proven < cutoff * (1 - _CLOSE)) & ~self.done & ~waiting).astype(np.uint8)
        place = 0
        while place < len(active) and self.left() > 0 and active.any():
            cutoff = min(radius, self.best())
            closed = np.zeros(len(active), np.uint8)
            place, row, cost, settled = self.search.run(
                active, place, self._cost(cutoff), boxes, self.left(), self._stopped, closed, self.pair
            )
            self.proven[closed != 0] = cutoff
            active[closed != 0] = 0
            if row >= 0:
                self._found(row, self._distance(cost), settled)
                active[row] = not self.done[row]
        waiting |= active != 0
