"""The search for best leaf values: pairs of inputs become limits, and promises are proved between the mean and the optimum.

The optimum for the known pairs may break promises for pairs that are still unknown. Table rows, and climbs that start from
them, yield many such pairs at low cost. The mean keeps all promises, and on the line from the mean to the optimum every score
changes linearly. The search therefore tries a point on this line that costs less than the proved leaves. The engine proves that
the point keeps the promises, or returns a further pair (in-out separation: Ben-Ameur and Neto, Networks 2007; ADR 0019).

`Search` proves leaf values in memory, and blends the model with its mean; `LeafSearch` starts from the blend.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from treesens.compiler.base.arrays import FloatArray
from treesens.compiler.result import Verdict
from treesens.extensions.repair.pairs import Climber, Pairs, Ways
from treesens.extensions.repair.program import RIDGES, strength
from treesens.extensions.repair.proof import decided_by, questions_for, settle

if TYPE_CHECKING:
    from treesens.extensions.repair.repair import Repair


Say = Callable[[str], None]


class Search:
    """The search for leaves that keep the promises of one size."""

    def __init__(self, repair: Repair, size: Fraction, say: Say) -> None:
        self.repair, self.size, self.say = repair, size, say
        self.words = "; ".join(promise.words() for promise in repair.promises(size))
        self.reason = ""
        self.broken: tuple[int, FloatArray] | None = None
        self._first = 0

    def holds(self, values: FloatArray, seconds: float | None = None) -> bool:
        """True if each promise is proved for the leaf values within `seconds` (by default, a short time, so that the proof of
        the written file is easy). If a counterexample is found, `broken` holds it.
        """
        options, self.broken = self.repair.options, None
        seconds = min(options.proof_time, max(1.0, options.time_limit / 30)) if seconds is None else seconds
        model = self.repair.editor.candidate(values)
        asked = list(enumerate(questions_for(model, self.repair.promises(self.size), decided_by(options))))
        for number, asking in asked[self._first :] + asked[: self._first]:
            result = settle(asking, model, seconds=seconds, stop=self.repair.stop)
            if result.verdict is not Verdict.NONE:
                self._first = number
                self.reason = f"{asking.promise.words()}: {result.verdict}, {result.reason}"
                if result.witness is not None:
                    self.broken = number, result.witness.values
                return False
        return True

    def blended(self, mean: FloatArray | None = None) -> FloatArray:
        """The blend of the start leaves and `mean`, float64[variables] (by default, the mean of the model, which keeps all
        promises), with approximately the smallest share of the mean for which all promises are proved.
        """
        start, mean = self.repair.start, self.repair.mean if mean is None else mean
        if self.repair.order is not None and self.holds(start, self.repair.options.proof_time):
            return start  # the original model breaks a promise, but with ordered leaves it may keep all
        low, high, options = 0.0, 1.0, self.repair.options
        seconds = min(options.proof_time, max(3.0, options.time_limit / 10))  # few proofs, with more time each
        for _ in range(8):
            if self.repair.stop.is_set():
                break
            middle = (low + high) / 2
            if self.holds((1 - middle) * start + middle * mean, seconds):
                high = middle
            else:
                low = middle
        self.say(f"{self.words}: blend proved with {high:.1%} of the mean")
        return np.asarray((1 - high) * start + high * mean)


_STEPS = 5
"""Number of steps of the program between two searches for pairs."""
_MORE_STEPS = 40
"""Number of steps of the program that changes only the leaves of the copies, towards the model."""
_TRIES = 2
"""Maximum number of rounds that collect pairs among rows before the engine is called."""
_QUESTIONS = 10
"""Maximum number of engine calls before the program continues."""
_LEAST_SHARE = 1e-3
_EVALUATED = 4_000
"""Number of inputs that are evaluated together in the search for pairs among rows."""
_NEAR = 1e-9
"""Decrease of the cost that counts as an improvement."""
_HALVINGS = 20


class LeafSearch:
    """The search for the best leaf values for one size; `search` proves candidates."""

    def __init__(self, repair: Repair, search: Search) -> None:
        self.repair, self.search, self.program = repair, search, repair.program()
        self.program.limits.forget()
        self.mean = repair.mean
        self.model = repair.editor.candidate(repair.variables.original)
        promises = [
            p for p in repair.promises(search.size) if not p.is_direction
        ]  # the program's order of leaves keeps directions
        asked = questions_for(self.model, promises, decided_by(repair.options))
        seed = repair.options.seed
        self.climbers = [Climber(asking, self.model.ensemble, seed + n) for n, asking in enumerate(asked)]
        self._ways = {climber: Ways(repair.variables, climber, self.model.ensemble) for climber in self.climbers}

    def best(self, blend: FloatArray) -> FloatArray:
        """Proved leaves that are better than the blend on the rows set aside; if no such leaves exist, the blend."""
        repair, program = self.repair, self.program
        first = self._first(blend)
        deadline = time.monotonic() + repair.options.time_limit
        self._first_pairs(first)
        strength(program, repair.aside(), first)
        inside, outside, share, proved = first, first, 0.25, 0

        def is_over() -> bool:
            return time.monotonic() > deadline or repair.stop.is_set()

        while not is_over():
            outside = program.solve(outside, _STEPS)
            for _ in range(_TRIES):
                if is_over() or not self._separate(outside, 10):
                    break
                outside = program.projected(outside)
            if self._between(inside, outside, share) is None:
                break
            for question in range(_QUESTIONS):
                candidate = self._candidate(inside, outside, share, middle=question % 2 == 1)
                if candidate is None or is_over():
                    break
                if self.search.holds(candidate):
                    inside, proved, share = candidate, proved + 1, min(0.95, 2 * share)
                    self.search.say(f"{self.search.words}: {len(program.limits)} pairs, {proved} better models proved")
                elif self.search.broken is None or self.search.broken[0] >= len(self.climbers):
                    share /= 2
                    break
                else:
                    self._learn(candidate, outside)
                    outside, share = program.projected(outside), max(0.02, 0.8 * share)
            if share < _LEAST_SHARE:
                break
        if inside is not blend and not repair.aside().is_better(inside, blend):
            self.search.say(f"{self.search.words}: on the rows set aside, the leaves are no better than the blend")
            return blend
        return inside

    def _first(self, blend: FloatArray) -> FloatArray:
        """Proved initial leaves: the blend, or a blend with a mean whose copies are adjusted to predict like the model.

        The copies have no splits on varied features, so a change of their leaves does not affect any pair. The adjusted mean
        replaces the mean if it is nearer to the model on the rows set aside, and if its promises are proved.
        """
        repair, aside = self.repair, self.repair.aside()
        if not self.climbers or repair.stop.is_set():
            return blend
        best = strength(self.program, aside, self.mean, own=False)
        best = self.program.solve(best, _MORE_STEPS)
        best[: len(repair.variables.own)] = self.mean[: len(repair.variables.own)]
        if aside.divergence(best) >= aside.divergence(self.mean) or not self.search.holds(
            best, repair.options.proof_time
        ):
            return blend
        self.mean = best
        mixed = self.search.blended(best)
        return min((blend, mixed), key=aside.divergence)

    def _first_pairs(self, first: FloatArray) -> None:
        """Collects pairs among rows before the first proof: for the start leaves, then for the optimum under the new limits."""
        self.program.stay_near(first, RIDGES[0])
        self._separate(self.repair.start, 50)
        for _ in range(_TRIES):
            if not self._separate(self.program.solve(first, _STEPS), 10):
                break

    def _candidate(self, inside: FloatArray, outside: FloatArray, share: float, *, middle: bool) -> FloatArray | None:
        """The next leaves for the engine: a point between the mean and `outside` or, if `middle`, the midpoint of `inside` and
        `outside`; if there are no climbers, `outside`. None if these leaves do not cost less than `inside`.
        """
        if not self.climbers:
            return self._between(inside, outside, 1.0)
        if not middle:
            return self._between(inside, outside, share)
        between = np.asarray((inside + outside) / 2)
        return between if self.program.value(between) < self.program.value(inside) - _NEAR else None

    def _between(self, inside: FloatArray, outside: FloatArray, share: float) -> FloatArray | None:
        """A point on the line from the mean to `outside`. The part of the line next to `outside` costs less than `inside`; the
        point is at `share` of this part, counted from the mean. None if `outside` itself does not cost less than `inside`.
        """
        mean, value = self.mean, self.program.value
        limit = value(inside) - _NEAR
        if value(outside) >= limit:
            return None
        low, high = 0.0, 1.0
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (low, middle) if value((1 - middle) * mean + middle * outside) < limit else (middle, high)
        part = high + share * (1 - high)
        return np.asarray((1 - part) * mean + part * outside)

    def _separate(self, values: FloatArray, most: int) -> int:
        """Adds limits for pairs among rows that break a promise at the leaves `values`, and for worse pairs found by climbing
        from the worst pair. Returns the number of pairs among rows.
        """
        ensemble, rows, found = self.repair.editor.candidate(values).ensemble, self.repair.train.rows, 0
        for climber in self.climbers:
            count = min(len(rows), max(100, _EVALUATED // climber.ways(rows)))
            pairs = climber.of_rows(ensemble, rows[self.repair.random.choice(len(rows), count, replace=False)], most)
            self._cut(climber, pairs, values)
            found += len(pairs)
            for high, low in list(zip(pairs.high, pairs.low, strict=True))[:1]:
                self._cut(climber, climber.climb(ensemble, high, low), values)
        return found

    def _learn(self, candidate: FloatArray, outside: FloatArray) -> None:
        """Adds limits for the pair that the engine found, and for worse pairs nearby."""
        assert self.search.broken is not None
        number, pair = self.search.broken
        climber, model_of = self.climbers[number], self.repair.editor.candidate
        self._cut(climber, Pairs(pair[:1], pair[1:2]), candidate)
        for values in (candidate, outside):
            self._cut(climber, climber.climb(model_of(values).ensemble, pair[0], pair[1]), values)

    def _cut(self, climber: Climber, pairs: Pairs, values: FloatArray) -> None:
        """Adds a limit per pair to the program: the limit prevents the pair from breaking the promise."""
        ways = self._ways[climber]
        for form, limit in ways.of(pairs, values, self.mean):
            self.program.limits.add(form, limit)
