"""How much of a measure is concerned: a proved interval, and an estimate inside it with a guarantee (docs/measures.md).

Branch and bound goes on while it closes the interval faster than draws would. Then inputs are drawn from the boxes that are
open, in stages whose sizes are fixed before the first draw, so that the guarantee holds for whichever stage is the last.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from math import ceil, log

import numpy as np

from treesens.compiler.base.arrays import Int32Array
from treesens.compiler.base.budget import Budget
from treesens.compiler.measure.deviation import lower_limit, upper_limit
from treesens.compiler.measure.search import Draws, Masses, ShareSearch

EPSILON, DELTA, NEGLIGIBLE = 0.05, 1e-6, 1e-6

_FIRST_NODES = 512
_DRAWS_PER_NODE = 8
"""How many draws take as long as one box."""
_MOST_BOXES = 1_500_000
_MOST_BYTES = 400_000_000
_PILOT = 2_000
_BOXES_SHARE = 0.8
"""Of the time, where a proof is wanted."""
_BLOCK = 5_000
_MOMENT = 0.2
_HITS = 20_000


@dataclass(frozen=True)
class Estimate:
    """With probability of at least 1 - `delta` (over the draws) the share lies in [low, high]. `value` is the estimate."""

    value: float
    low: float
    high: float
    delta: float
    draws: int
    concerned: int


@dataclass(frozen=True, eq=False)
class Share:
    """`lower` and `upper` are proved. `closed` says whether the interval, or the one of the estimate, is as narrow as asked
    for; `reason` why not. `drawn` are concerned inputs of the open boxes.
    """

    lower: float
    upper: float
    estimate: Estimate | None
    closed: bool
    reason: str
    masses: Masses
    seconds: float
    drawn: Int32Array = field(default_factory=lambda: np.zeros((0, 0), np.int32))


@dataclass(frozen=True)
class Precision:
    """What is enough: a relative error of `epsilon` with probability 1 - `delta`, or a share of at most `negligible`."""

    epsilon: float = EPSILON
    delta: float = DELTA
    negligible: float = NEGLIGIBLE

    def reached(self, low: float, high: float) -> bool:
        """Whether some value is within epsilon of all of an interval."""
        return high <= self.negligible or high - low <= self.epsilon * (high + low)


def stages(first: int) -> Iterator[tuple[int, float]]:
    """Draws until the end of each stage, and its part of delta; the parts add up to 1."""
    yield max(1, first // 16), 1 / 8
    yield max(2, first // 4), 1 / 8
    yield first, 1 / 2
    for k in count(1):
        yield first << k, 2.0 ** -(k + 2)


@dataclass
class ShareRun:
    """One search: `run` returns what is known at the end of the budget. `progress` is told of it from time to time."""

    search: ShareSearch
    precision: Precision
    seed: int = 0
    progress: Callable[[Masses], None] | None = None
    draws_at_most: int | None = None
    decided: Callable[[float, float], bool] | None = None
    """Whether a proved interval settles what is asked. Then boxes go on until it does, for most of the time."""

    def run(self, seconds: float, budget: Budget) -> Share:
        """Searches and draws for `seconds`, of which the budget has the end."""
        start = time.monotonic()
        masses = self._proved(seconds, budget)
        if self._enough(masses) or masses.open_boxes == 0:
            return Share(masses.lower, masses.upper, None, True, "", masses, time.monotonic() - start)
        estimate, hits = self._estimated(masses, budget)
        done = estimate is not None and self.precision.reached(estimate.low, estimate.high)
        reason = "" if done else budget.reason
        found = Share(masses.lower, masses.upper, estimate, done, reason, masses, time.monotonic() - start)
        return replace(found, drawn=hits)

    def _enough(self, masses: Masses) -> bool:
        """Whether no more has to be proved, nor estimated."""
        if self.decided is not None:
            return self.decided(masses.lower, masses.upper)
        return self.precision.reached(masses.lower, masses.upper)

    def _proved(self, seconds: float, budget: Budget) -> Masses:
        """Branch and bound, until the interval is narrow or draws would be done sooner. Work is counted, not timed, so that a
        search that is not ended by time is the same on every machine.
        """
        slice_, number = _FIRST_NODES, 0
        half = budget.within(seconds * (0.5 if self.decided is None else _BOXES_SHARE))
        while True:
            masses, number = self._looked_at(slice_, half), number + 1
            if self.progress is not None:
                self.progress(masses)
            full = masses.open_boxes == 0 or masses.open_boxes + masses.full_boxes >= self._most_boxes
            if self._enough(masses) or half.over or full:
                return masses
            if self.decided is None:
                pilot = self.search.sample(_PILOT, self.seed + 7919 * number)
                if self._needed(masses, pilot) <= _DRAWS_PER_NODE * masses.nodes:
                    return masses
            slice_ = max(_FIRST_NODES, masses.nodes // 4)

    @property
    def _most_boxes(self) -> int:
        """Boxes that fit the memory: two cells for every feature, and what belongs to a box."""
        return min(_MOST_BOXES, _MOST_BYTES // (8 * self.search.features + 150))

    def _looked_at(self, nodes: int, budget: Budget) -> Masses:
        """What is proved after so many more boxes. The engine is left often: a Ctrl-C comes through in between."""
        masses = self.search.masses()
        last = masses.nodes + nodes
        while masses.nodes < last and not budget.over:
            self.search.run(min(_MOMENT, budget.left()), most_boxes=self._most_boxes, most_nodes=last - masses.nodes)
            before, masses = masses, self.search.masses()
            if masses.open_boxes == 0 or masses.nodes == before.nodes:
                break
        return masses

    def _needed(self, masses: Masses, pilot: Draws) -> float:
        rate = (pilot.concerned + 0.5) / (pilot.drawn + 1)
        share = masses.lower + masses.open * rate
        half = max(self.precision.epsilon * share, self.precision.negligible / 4)
        spread = 2 * rate * (1 - rate) * (masses.open / half) ** 2 + 2 * masses.open / half
        return spread * log(4 / self.precision.delta)

    def _estimated(self, masses: Masses, budget: Budget) -> tuple[Estimate | None, Int32Array]:
        """Draws in stages of fixed sizes; every stage that is over makes a statement with its own part of delta."""
        begin = time.monotonic()
        pilot = self.search.sample(_PILOT, self.seed + 1)
        each = max(1e-9, (time.monotonic() - begin) / _PILOT)
        first = 1.1 * min(self._needed(masses, pilot), 0.8 * budget.left() / each)
        known: Estimate | None = None
        rows: list[Int32Array] = []
        total, number = Draws(0, 0, 0, pilot.hits), 0
        for end, part in stages(max(1_000, min(ceil(first), self.draws_at_most or 1 << 62))):
            while total.drawn < end:
                if budget.over:
                    return known, _stacked(rows, self.search.features)
                number += 1
                size = min(_BLOCK, end - total.drawn)
                draws = self.search.sample(size, self.seed + 104_729 * number, _HITS // 8)
                rows.append(draws.hits)
                total = Draws(
                    total.drawn + draws.drawn, total.concerned + draws.concerned, total.maybe + draws.maybe, total.hits
                )
            known = self._stated(masses, total, part, known)
            if self.precision.reached(known.low, known.high) or end >= (self.draws_at_most or 1 << 62):
                return known, _stacked(rows, self.search.features)
        raise AssertionError("stages never end")

    def _stated(self, masses: Masses, total: Draws, part: float, before: Estimate | None) -> Estimate:
        """What the draws say, together with what is proved and with the stages before."""
        delta = self.precision.delta * part / 2
        low = lower_limit(total.concerned, total.drawn, delta)
        high = upper_limit(total.concerned + total.maybe, total.drawn, delta)
        full = self.search.full_mass()
        lower, upper = self.search.outward(full + masses.open * low, full + masses.open * high)
        lower, upper = max(lower, masses.lower), min(upper, masses.upper)
        if before is not None:
            lower, upper = max(lower, before.low), min(upper, before.high)
        value = full + masses.open * (total.concerned + total.maybe / 2) / total.drawn
        value = min(max(value, lower), upper)
        return Estimate(value, lower, upper, self.precision.delta, total.drawn, total.concerned)


def _stacked(rows: list[Int32Array], features: int) -> Int32Array:
    return np.concatenate([np.zeros((0, features), np.int32), *rows])
