"""The search for leaves that keep the promises of one size: mixtures with the mean, and leaves between proofs (ADR 0019)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from treesens.compiler.base.arrays import FloatArray
from treesens.compiler.result import Verdict
from treesens.repairs.pairs import Climber, Pairs
from treesens.repairs.program import ROOM, Program
from treesens.repairs.proof import decided_by, questions_for, settle
from treesens.repairs.written import contributions

if TYPE_CHECKING:
    from treesens.repairs.repair import Repair

Say = Callable[[str], None]

_HALVINGS = 8
_STEPS = 5
"""Of the program, before the engine is asked again."""
_QUESTIONS = 20
"""To the engine, before the program goes on."""
_NEAR = 1e-9
"""Of the squares of changes of margins: what is proved is as good as what known pairs allow."""


class Search:
    """The search for leaves that keep the promises of one size."""

    def __init__(self, repair: Repair, size: Fraction, say: Say) -> None:
        self.repair, self.size, self.say = repair, size, say
        self.words = "; ".join(promise.words() for promise in repair.promises(size))
        self.reason = ""
        self.broken: tuple[int, FloatArray] | None = None
        self.pairs: list[tuple[int, FloatArray, FloatArray]] = []
        self._first = 0

    def holds(self, values: FloatArray, seconds: float | None = None) -> bool:
        """Whether all promises are proved of leaves within so many seconds each (by default those of a search, so that the
        written file is proved easily); a pair that breaks one is kept in `broken`.
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

    def blended(self) -> FloatArray:
        """As little of the mean as the proofs allow, of the leaves that the search starts from."""
        start, toward = self.repair.start, self.repair.toward_mean
        if self.repair.order is not None and self.holds(start, self.repair.options.proof_time):
            return start  # the model as it is breaks a promise; in order it may keep all
        low, high, options = 0.0, 1.0, self.repair.options
        seconds = min(options.proof_time, max(1.0, options.time_limit / 10))  # few proofs, on which all else rests
        for _ in range(_HALVINGS):
            if self.repair.stop.is_set():
                break
            middle = (low + high) / 2
            if self.holds(toward(start, middle), seconds):
                high = middle
            else:
                low = middle
        self.say(f"{self.words}: blend proved with {high:.1%} of the mean")
        return toward(start, high)

    def best_leaves(self, inside: FloatArray) -> FloatArray:
        """Leaves nearer to the model than those `inside`, proved: between what is proved and the best that known pairs allow,
        the engine proves the middle or gives a pair that cuts it off.
        """
        repair = self.repair
        deadline = time.monotonic() + repair.options.time_limit
        program = repair.program()
        program.limits.forget()
        model = repair.editor.candidate(repair.variables.original)
        promises = [
            promise for promise in repair.promises(self.size) if not promise.is_direction
        ]  # the program keeps those
        asked = questions_for(model, promises, decided_by(repair.options))
        climbers = [Climber(asking, model.ensemble, repair.options.seed + n) for n, asking in enumerate(asked)]
        rows = repair.train.rows
        sample = rows[repair.random.choice(len(rows), min(len(rows), 2000), replace=False)]
        for climber in climbers:
            self._cut(program, climber, climber.of_rows(model.ensemble, sample, 50))
        blend = inside
        outside, rounds, proved = repair.start, 0, 0
        while time.monotonic() < deadline and not repair.stop.is_set():
            rounds += 1
            outside = program.solve(outside, _STEPS)
            if float(program.metric @ (outside - inside) ** 2) < _NEAR:
                break
            for _ in range(_QUESTIONS):
                if time.monotonic() > deadline or repair.stop.is_set():
                    break
                middle = inside + (outside - inside) / 2
                if self._known_to_break(program, climbers, middle):
                    outside = program.projected(outside)
                elif self.holds(middle):
                    inside, proved = middle, proved + 1
                elif self.broken is None or self.broken[0] >= len(climbers):
                    break
                else:
                    number, pair = self.broken
                    climber, candidate = climbers[number], repair.editor.candidate(middle).ensemble
                    self.pairs.append((number, pair[0], pair[1]))
                    self._cut(program, climber, Pairs(pair[:1], pair[1:2]))
                    self._cut(program, climber, climber.climb(candidate, pair[0], pair[1]))
                    outside = program.projected(outside)
            if rounds % 5 == 0:
                self.say(f"{self.words}: {len(program.limits)} pairs, {proved} better models proved, round {rounds}")
        return min(inside, blend, key=program.value)

    def _known_to_break(self, program: Program, climbers: Sequence[Climber], values: FloatArray) -> bool:
        """Whether a climb from a pair that the engine has given leads to one that breaks a promise: that spares the engine."""
        if not self.pairs:
            return False
        number, high, low = self.pairs[int(self.repair.random.integers(len(self.pairs)))]
        found = climbers[number].climb(self.repair.editor.candidate(values).ensemble, high, low)
        self._cut(program, climbers[number], found)
        return len(found) > 0

    def _cut(self, program: Program, climber: Climber, pairs: Pairs) -> None:
        """Pairs become rows of the program: the difference of their scores stays below the limit."""
        forest, weights = self.repair.forest, climber.weights
        high, low = forest.rows(pairs.high), forest.rows(pairs.low)
        limit = climber.asking.limit * (1 - ROOM)
        fixed = [t for t in forest.concerned if t not in set(forest.changed)]
        for one, two in zip(high, low, strict=True):
            kept = 0.0
            if fixed:
                reached = forest.cells.leaves(np.stack([one, two]))[:, fixed]
                held = contributions(forest.ensemble)[reached]
                wide = held.shape[2] > 1
                signs = weights if wide else weights[forest.ensemble.tree_output[fixed]][:, None]
                kept = float((held[0] * signs).sum() - (held[1] * signs).sum())
            program.limits.add(self.repair.variables.row(weights, one, two), limit - kept)
