"""Estimates a share from rounds of draws from open boxes; results of earlier rounds determine the plan of each round.

If affected inputs are rare, a walk searches for examples; draws are then tilted towards them. The walk's inputs must reach ever
lower levels of their scores' shortfall; at each level, the best part is duplicated, and every input takes random steps that
stay below the level (subset simulation: S.-K. Au and J. Beck, *Estimation of small failure probabilities in high dimensions by
subset simulation*, Probabilistic Engineering Mechanics 16, 2001). The inputs that the walk finds only guide the draws.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

import numpy as np

from treesens.compiler.base.arrays import BoolArray, FloatArray, Int32Array
from treesens.compiler.base.budget import Budget
from treesens.compiler.result import Estimate
from treesens.extensions.measure.deviation import Bet, Limits, Round
from treesens.extensions.measure.precision import Precision
from treesens.extensions.measure.proposal import Tilt, tilts_for
from treesens.extensions.measure.search import Draws, Masses, ShareSearch

_KEPT = 500
"""Number of affected inputs that are kept per round."""
_ROWS = 20_000
_FIRST, _FREQUENT = 1_000, 0.05
"""Number of initial draws, and the share of affected inputs among them at which a walk is unnecessary."""
_LEAST_PLAIN, _MOST_PLAIN = 0.15, 0.85
_FEW_HITS, _HITS_PER_TILT, _MOST_TILTS = 100, 200, 4

_CROWD = 500
_KEPT_PART = 0.3
_STEPS = 8
_LEVELS = 25
_AT_END = 100
_EVERY = 5


@dataclass
class Sampler:
    """Random draws from the currently open boxes of `search`."""

    search: ShareSearch
    precision: Precision
    seed: int = 0
    drawn: int = 0
    concerned: int = 0
    draws_left: float = inf
    """The estimated number of further draws that the current boxes require; inf if nothing is known."""
    estimate: Estimate | None = None
    _rounds: int = 0
    _weighed: float = 0.0
    _weights: float = 0.0
    _kept: list[tuple[Int32Array, FloatArray]] = field(default_factory=list)
    _kept_full: float = 0.0
    _fitted: int = 0
    _squares: float = 0.0
    _sum: float = 0.0
    _plain: float = 0.5

    def __post_init__(self) -> None:
        self._limits = Limits(self.precision.delta)

    @property
    def reached(self) -> bool:
        """True if the estimate has the required precision."""
        return self.estimate is not None and self.precision.reached(self.estimate.low, self.estimate.high)

    def scout(self, budget: Budget) -> None:
        """Searches for affected inputs and, if these are rare, tilts draws towards them."""
        first = self.search.sample(_FIRST, self.seed)
        if len(first.concerned) >= _FREQUENT * _FIRST:
            return
        rows = hunt(self.search, self.seed, budget)
        if len(rows):
            self.search.propose(self._tilts(rows, np.ones(len(rows)), 1))

    def _tilts(self, rows: Int32Array, weights: FloatArray, count: int) -> list[Tilt]:
        search, plain = self.search, self._plain
        return tilts_for(search.measure, search.varied, rows, weights, count=count, plain=plain, seed=self.seed)

    def draw(self, count: int, masses: Masses) -> None:
        """Draws one round; `masses` holds the current masses of the search."""
        full, heaviest = self.search.full_mass(), self.search.heaviest()
        bet = self._bet(count, heaviest, masses, full)
        self._rounds += 1
        draws = self.search.sample(count, self.seed + 104_729 * self._rounds, count)
        self.drawn += draws.drawn
        self.concerned += len(draws.concerned)
        self._sum += float(draws.concerned.sum()) * count
        self._squares += float((draws.concerned**2).sum()) * count * count
        self._limits.add(bet, Round(full, draws.concerned, draws.maybe))
        self._weigh(draws, full, 1 / bet.unit)
        bet = self._bet(count, heaviest, masses, full)
        self.draws_left = count * self._limits.rounds_left(bet, self._open_mass(masses, full))
        self.estimate = self._stated(masses)
        self._refit(masses, full)

    def _refit(self, masses: Masses, full: float) -> None:
        """Refits the tilts to the affected inputs whenever the number of draws has grown by half."""
        if self.concerned < _FEW_HITS or self.drawn < 1.5 * self._fitted or not self._kept:
            return
        rows = np.concatenate([rows for rows, _ in self._kept])
        weights = np.concatenate([weights for _, weights in self._kept])
        self._fitted = self.drawn
        self._plain = self._plain_part(masses, full)
        self.search.propose(self._tilts(rows, weights, int(np.clip(len(rows) // _HITS_PER_TILT, 1, _MOST_TILTS))))
        # The mass of a typical hit has changed.
        typical = self._squares / self._sum
        self._sum, self._squares = 10 * typical, 10 * typical**2

    def _plain_part(self, masses: Masses, full: float) -> float:
        """The share of draws from the measure itself. The number of these draws grows with 1 / error, to bound the mass that
        tilts miss; the number of draws from tilts grows with 1 / error**2, to reach the precision.
        """
        mass = self._open_mass(masses, full)
        bet = self._bet(1, 1.0, masses, full)
        missed = masses.open / (mass * bet.relative)
        precise = 2 * (1 - self._plain) * self._squares / (self._sum * mass * bet.relative**2)
        return float(np.clip(missed / (missed + precise), _LEAST_PLAIN, _MOST_PLAIN))

    def _open_mass(self, masses: Masses, full: float) -> float:
        """The estimated affected share of the open mass; never 0."""
        least = 0.5 * masses.open / (self.drawn + 1)
        return max(self._value - full, least / 100) if self.concerned else least

    @property
    def _value(self) -> float:
        return self._weighed / self._weights

    def _bet(self, count: int, heaviest: float, masses: Masses, full: float) -> Bet:
        """The bet of a round; its unit is the weighted mean mass of a hit."""
        open_mass = self._open_mass(masses, full)
        share = full + open_mass
        wanted = max(self.precision.epsilon * share, self.precision.negligible - share)
        unit = (self._squares + masses.open**2) / (self._sum + masses.open)
        return Bet(unit / count, heaviest / count, wanted / open_mass)

    def _weigh(self, draws: Draws, full: float, weight: float) -> None:
        mass = float(draws.concerned.sum() + draws.maybe.sum() / 2)
        self._weighed += weight * (full + mass)
        self._weights += weight
        if full != self._kept_full:  # some boxes that were drawn from are proved full now
            self._kept, self._kept_full = [], full
        if len(draws.hits):
            self._kept.append(_thinned(draws.hits, weight * draws.hit_weights, self._rounds))

    def _stated(self, masses: Masses) -> Estimate:
        """The estimate from all draws, combined with the proved bounds."""
        low, high = self._limits.low, self._limits.high
        lower, upper = self.search.outward(max(low, 0.0), max(high, 0.0))
        lower, upper = max(lower, masses.lower), min(upper, masses.upper)
        value = min(max(self._value, lower), upper)
        return Estimate(value, lower, upper, self.precision.delta, self.drawn)

    def rows(self) -> Int32Array:
        """Affected inputs from the open boxes, int32[rows, features], repeated in proportion to their mass."""
        if not self._kept:
            return np.zeros((0, self.search.features), np.int32)
        rows = np.concatenate([rows for rows, _ in self._kept])
        before = np.cumsum(np.concatenate([weights for _, weights in self._kept]))
        count = min(_ROWS, len(rows))
        places = (np.arange(count) + 0.5) / count * before[-1]
        chosen: Int32Array = rows[np.minimum(np.searchsorted(before, places), len(rows) - 1)]
        return chosen


def _thinned(rows: Int32Array, weights: FloatArray, seed: int) -> tuple[Int32Array, FloatArray]:
    """A sample of about `_KEPT` rows with weights; the expected weight of every row is unchanged."""
    chance = np.minimum(1.0, weights * _KEPT / weights.sum())
    kept = np.random.default_rng(seed).random(len(rows)) < chance
    return rows[kept], (weights / chance)[kept]


def hunt(search: ShareSearch, seed: int, budget: Budget) -> Int32Array:
    """Affected inputs, int32[rows, features], roughly as frequent as under independent features; empty at the time limit."""
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
        """Keeps the rows whose shortfall is at most `limit`; some rows are repeated."""
        best = np.flatnonzero(self.lacks <= limit)
        chosen = best[self.random.integers(0, len(best), _CROWD)]
        self.rows, self.lacks = self.rows[chosen], self.lacks[chosen]

    def step(self, limit: float) -> None:
        """Changes some features of each row; a change is kept if the shortfall of the row stays within the limit."""
        moved: Int32Array = self.rows.copy()
        for _ in range(int(self.random.integers(1, 4))):
            of = self.random.choice(self.free, _CROWD)
            for f in set(of.tolist()):
                draws_of_feature = np.flatnonzero(of == f)
                moved[draws_of_feature, f] = self._cells(f, len(draws_of_feature))
        lacks: FloatArray = self.search.shortfalls(moved)
        below: BoolArray = lacks <= limit
        self.rows[below], self.lacks[below] = moved[below], lacks[below]
