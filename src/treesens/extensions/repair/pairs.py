"""Pairs of inputs that break a promise, found by climbing, and the linear limits on leaves that exclude these pairs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from treesens.compiler.base.arrays import FloatArray, Int64Array
from treesens.compiler.model import Ensemble
from treesens.compiler.query.domain import pick_value
from treesens.compiler.query.query import Space
from treesens.extensions.repair.program import ROOM, Variables
from treesens.extensions.repair.proof import Asking

_MOST_VALUES = 64
"""Maximum number of values of a feature that are tried together; if there are more, a sample is tried."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of inputs, float64[pairs, features] each: each input in `high` has a higher score than its partner in `low`.
    `rows`, int64[pairs], holds the table rows from which the pairs were made, if any.
    """

    high: FloatArray
    low: FloatArray
    rows: Int64Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.high)


class Climber:
    """Searches for pairs that break the promise of one question, in the domain of the question."""

    def __init__(self, asking: Asking, ensemble: Ensemble, seed: int) -> None:
        self.asking, self.random = asking, np.random.default_rng(seed)
        space = asking.question.query.space
        names = ensemble.feature_names
        self.varied = [names.index(name) for name in asking.promise.varied]
        self.values = [np.array(list(_values(space, f))) for f in range(len(names))]
        self.weights = asking.weights

    def scores(self, ensemble: Ensemble, rows: FloatArray) -> FloatArray:
        """The quantity that the promise compares, float64[rows]."""
        return np.asarray(ensemble.margins_emulated(rows), dtype=np.float64) @ self.weights

    def ways(self, rows: FloatArray) -> int:
        """The number of distinct combinations of varied values in `rows`, limited to `_MOST_VALUES`."""
        return min(_MOST_VALUES, len(np.unique(rows[:, self.varied], axis=0)))

    def of_rows(self, ensemble: Ensemble, rows: FloatArray, most: int) -> Pairs:
        """Pairs that break the promise, the worst first: two versions of a row, with varied values from other rows."""
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
        """The amount by which each pair breaks the promise, float64[pairs]; negative if the pair keeps the promise."""
        apart = high - low - self.asking.limit
        if self.asking.sides is None:
            return np.asarray(apart)
        return np.minimum(high - self.asking.sides[0], self.asking.sides[1] - low)

    def climb(self, ensemble: Ensemble, high: FloatArray, low: FloatArray, steps: int = 40) -> Pairs:
        """Climbs from one pair to worse pairs; a step changes one feature. Returns the last pair if it breaks the promise."""
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
        """The pair itself, and all pairs that differ from it in one feature; a varied feature changes in one input only."""
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
    """A value from every cell that intersects the domain."""
    grid, domain = space.grid[feature], space.domains[feature]
    for cell in range(grid.n_cells):
        try:
            yield pick_value(domain, grid, cell)
        except ValueError:
            continue


class Ways:
    """Limits `form @ values <= limit` on the leaves, for pairs of one question.

    A pair with scores on both sides of a decision breaks the promise. Two limits can prevent this: the higher score stays below
    its side, or the lower score stays above its side. Of the limits that the mean satisfies, the less violated limit is used.
    Therefore the mean satisfies all limits, and so does every point between the mean and leaves that satisfy the limits. If the
    mean satisfies neither limit, or if the promise is a swing, the limit bounds the difference of the two scores.
    """

    def __init__(self, variables: Variables, climber: Climber, ensemble: Ensemble) -> None:
        self.variables, self.climber, self.ensemble = variables, climber, ensemble

    def of(self, pairs: Pairs, values: FloatArray, mean: FloatArray) -> Iterator[tuple[FloatArray, float]]:
        """The limit for each pair, chosen at the leaves `values`, float64[variables]; the leaves `mean` satisfy all limits."""
        asking = self.climber.asking
        room = ROOM * asking.limit
        highs, lows = self._forms(pairs.high), self._forms(pairs.low)
        for (high, up), (low, down) in zip(highs, lows, strict=True):
            found: list[tuple[float, FloatArray, float]] = []
            if asking.sides is not None:
                top, bottom = asking.sides[0] - room - up, asking.sides[1] + room - down
                if high @ mean <= top:
                    found.append((float(high @ values - top), high, top))
                if low @ mean >= bottom:
                    found.append((float(bottom - low @ values), -low, -bottom))
            if found:
                _, form, limit = min(found, key=lambda one: one[0])
                yield form, limit
            else:
                yield high - low, asking.limit - room - (up - down)

    def _forms(self, rows: FloatArray) -> Iterator[tuple[FloatArray, float]]:
        """The scores of `rows`, float64[rows, features], as linear forms in the variables, each with a constant."""
        variables, weights = self.variables, self.climber.weights
        scores, original = self.climber.scores(self.ensemble, rows), variables.original
        columns = variables.columns(variables.forest.rows(rows))
        for reached, score in zip(columns.variable, scores, strict=True):
            form = np.zeros(variables.count)
            np.add.at(form, reached, weights[columns.output])
            yield form, float(score - form @ original)
