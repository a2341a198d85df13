"""Pairs of inputs that break a promise, found by climbing: they are where the convex program is tightened."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from treesens.compiler.base.arrays import FloatArray, Int64Array
from treesens.compiler.model import Ensemble
from treesens.compiler.query.domain import pick_value
from treesens.compiler.query.query import Space
from treesens.extensions.repair.proof import Asking

_MOST_VALUES = 64
"""Of a feature that are tried at once; the others are drawn at random."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """Two inputs each, float64[pairs, features]: the scores of `high` are above those of `low`. `rows` int64[pairs] are the
    rows that they were made of, if they were.
    """

    high: FloatArray
    low: FloatArray
    rows: Int64Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.high)


class Climber:
    """Looks for pairs of one question in the domain of that question."""

    def __init__(self, asking: Asking, ensemble: Ensemble, seed: int) -> None:
        self.asking, self.random = asking, np.random.default_rng(seed)
        space = asking.question.query.space
        names = ensemble.feature_names
        self.varied = [names.index(name) for name in asking.promise.varied]
        self.values = [np.array(list(_values(space, f))) for f in range(len(names))]
        self.weights = asking.weights

    def scores(self, ensemble: Ensemble, rows: FloatArray) -> FloatArray:
        """What is compared, float64[rows]."""
        return np.asarray(ensemble.margins_emulated(rows), dtype=np.float64) @ self.weights

    def ways(self, rows: FloatArray) -> int:
        """How many values of the varied features rows have, or how many are tried."""
        return min(_MOST_VALUES, len(np.unique(rows[:, self.varied], axis=0)))

    def of_rows(self, ensemble: Ensemble, rows: FloatArray, most: int) -> Pairs:
        """The pairs of rows that break the promise at the values of the varied features that rows have, the worst first."""
        ways = np.unique(rows[:, self.varied], axis=0)
        if len(ways) > _MOST_VALUES:
            ways = ways[self.random.choice(len(ways), _MOST_VALUES, replace=False)]
        moved = np.repeat(rows[None], len(ways), axis=0)
        moved[:, :, self.varied] = ways[:, None, :]
        scores = self.scores(ensemble, moved.reshape(-1, rows.shape[1])).reshape(len(ways), len(rows))
        top, bottom = scores.argmax(axis=0), scores.argmin(axis=0)
        here = np.arange(len(rows))
        broken = np.flatnonzero(self.asking.broken(scores[top, here], scores[bottom, here]))
        excess = self._excess(scores[top[broken], broken], scores[bottom[broken], broken])
        broken = broken[np.argsort(-excess, kind="stable")][:most]
        return Pairs(moved[top[broken], broken], moved[bottom[broken], broken], broken)

    def _excess(self, high: FloatArray, low: FloatArray) -> FloatArray:
        """By how much pairs break the promise."""
        apart = high - low - self.asking.limit
        if self.asking.sides is None:
            return np.asarray(apart)
        return np.minimum(high - self.asking.sides[0], self.asking.sides[1] - low)

    def climb(self, ensemble: Ensemble, high: FloatArray, low: FloatArray, steps: int = 40) -> Pairs:
        """From one pair to worse ones, by one feature at a time: the last pair, if it breaks the promise."""
        best = float("-inf")
        for _ in range(steps):
            ups, downs = self._neighbours(high, low)
            scores = self.scores(ensemble, np.concatenate([ups, downs]))
            excess = self._excess(scores[: len(ups)], scores[len(ups) :])
            at = int(excess.argmax())
            if excess[at] <= best:
                break
            best, high, low = float(excess[at]), ups[at], downs[at]
        found = best >= 0
        return Pairs(high[None][: int(found)], low[None][: int(found)])

    def _neighbours(self, high: FloatArray, low: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The pair itself, and all that differ from it in one feature (of one input, if that varies)."""
        ups, downs = [high[None]], [low[None]]
        for f, known in enumerate(self.values):
            values = known if len(known) <= _MOST_VALUES else self.random.choice(known, _MOST_VALUES, replace=False)
            sides = ((True, False), (False, True)) if f in self.varied else ((True, True),)
            for up, down in sides:
                one, two = (np.repeat(row[None], len(values), axis=0) for row in (high, low))
                one[:, f] = values if up else high[f]
                two[:, f] = values if down else low[f]
                ups.append(one)
                downs.append(two)
        return np.concatenate(ups), np.concatenate(downs)


def _values(space: Space, feature: int) -> Iterator[float]:
    """A value of every cell in which the domain has one."""
    grid, domain = space.grid[feature], space.domains[feature]
    for cell in range(grid.n_cells):
        try:
            yield pick_value(domain, grid, cell)
        except ValueError:
            continue
