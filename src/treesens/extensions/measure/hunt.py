"""Concerned inputs found by a walk, so that draws can be moved to where such inputs are.

A crowd of inputs goes through ever lower levels of what its scores lack; below each, the best part is doubled and every member
takes random steps that stay below (subset simulation: S.-K. Au and J. Beck, *Estimation of small failure probabilities in high
dimensions by subset simulation*, Probabilistic Engineering Mechanics 16, 2001). What is found only guides draws.
"""

from __future__ import annotations

import numpy as np

from treesens.compiler.base.arrays import BoolArray, FloatArray, Int32Array
from treesens.compiler.base.budget import Budget
from treesens.extensions.measure.search import ShareSearch

_CROWD = 500
_KEPT_PART = 0.3
_STEPS = 8
_LEVELS = 25
_AT_END = 100
_EVERY = 5


def hunt(search: ShareSearch, seed: int, budget: Budget) -> Int32Array:
    """Concerned inputs, int32[rows, features], about as frequent as by independent features; none if time is over."""
    random = np.random.default_rng(seed)
    walk = _Walk(search, random)
    for _ in range(_LEVELS):
        limit = float(np.quantile(walk.lacks, _KEPT_PART))
        walk.gather(limit)
        if limit <= 0:
            break
        for _ in range(_STEPS):
            if budget.over:
                return np.zeros((0, search.features), np.int32)
            walk.step(limit)
    else:
        return np.zeros((0, search.features), np.int32)
    found = []
    for number in range(_AT_END):
        if budget.over:
            break
        walk.step(0.0)
        if number % _EVERY == _EVERY - 1:
            found.append(walk.rows.copy())
    return np.concatenate([np.zeros((0, search.features), np.int32), *found])


class _Walk:
    def __init__(self, search: ShareSearch, random: np.random.Generator) -> None:
        self.search, self.random = search, random
        self.free = [f for f in range(search.features) if f not in search.varied]
        self.shares = [search.measure.shares(f) for f in range(search.features)]
        self.rows = np.stack([self._cells(f, _CROWD) for f in range(search.features)], axis=1)
        self.lacks = search.shortfalls(self.rows)

    def _cells(self, feature: int, count: int) -> Int32Array:
        ends = np.cumsum(self.shares[feature])
        places = np.searchsorted(ends, self.random.random(count) * ends[-1], side="right")
        cells: Int32Array = np.minimum(places, len(ends) - 1).astype(np.int32)
        return cells

    def gather(self, limit: float) -> None:
        """Only those that lack at most `limit`, some of them several times."""
        best = np.flatnonzero(self.lacks <= limit)
        chosen = best[self.random.integers(0, len(best), _CROWD)]
        self.rows, self.lacks = self.rows[chosen], self.lacks[chosen]

    def step(self, limit: float) -> None:
        """Some features of every row change, if the row stays below the limit."""
        moved: Int32Array = self.rows.copy()
        for _ in range(int(self.random.integers(1, 4))):
            of = self.random.choice(self.free, _CROWD)
            for f in set(of.tolist()):
                draws_of_feature = np.flatnonzero(of == f)
                moved[draws_of_feature, f] = self._cells(f, len(draws_of_feature))
        lacks: FloatArray = self.search.shortfalls(moved)
        below: BoolArray = lacks <= limit
        self.rows[below], self.lacks[below] = moved[below], lacks[below]
