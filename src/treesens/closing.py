"""Questions that one search does not settle: cells without fitting values are ruled out, and ladders made finer.

A search over cells knows of relations between values what single cells allow. Where the cells it finds hold no values that
satisfy all relations at once, they are ruled out, with as many others as the proof covers, and it searches again. Where the
objective is a ladder, its steps close in on the best answer.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction

from treesens.compiler.query.concretise import relates_values
from treesens.compiler.query.query import Constraint, Query
from treesens.compiler.result import Attempt, Result, Verdict, Witness
from treesens.engine import Options, answer_once

CLOSE = 1e-4
"""Value and bound of a ladder are taken for equal from here on, in widths."""

_LEAST = 0.05


def needs_closing(query: Query) -> bool:
    """Whether one search may leave something open."""
    return relates_values(query) or (query.objective is not None and query.objective.zoom is not None)


@dataclass
class _Closing:
    query: Query
    options: Options
    stop: threading.Event | None
    on_better: Callable[[Witness], None] | None
    cuts: list[Constraint] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    proved: bool = True

    def __post_init__(self) -> None:
        self.deadline = time.monotonic() + self.options.time_limit

    def left(self) -> float:
        """Seconds until the limit; none once somebody asked to stop."""
        if self.stop is not None and self.stop.is_set():
            return 0.0
        return self.deadline - time.monotonic()

    def run(self) -> Result:
        result = self._closer(self._search(self.query))
        note = f"{len(self.cuts)} combinations of cells without fitting values were ruled out"
        notes = (*result.notes, note) if self.cuts else result.notes
        return replace(result, attempts=tuple(self.attempts), seconds=self.seconds, notes=notes, refuted=())

    def _search(self, query: Query) -> Result:
        """The answer with all cells ruled out that hold no values."""
        while True:
            asked = replace(query, constraints=(*query.constraints, *self.cuts))
            options = replace(self.options, time_limit=max(_LEAST, self.left()))
            result = answer_once(asked, options, stop=self.stop, on_better=self.on_better)
            self.attempts += result.attempts
            for phase, seconds in result.seconds.items():
                self.seconds[phase] = self.seconds.get(phase, 0.0) + seconds
            if result.verdict is not Verdict.UNKNOWN or not result.refuted:
                return self._honest(result)
            self.cuts += [found.cut for found in result.refuted]
            self.proved = self.proved and all(found.proved for found in result.refuted)
            if self.left() <= 0:
                return self._honest(replace(result, reason=f"time: {result.reason}"))

    def _honest(self, result: Result) -> Result:
        """Without what rests on cells that were ruled out without a proof."""
        if self.proved:
            return result
        if result.verdict is Verdict.NONE:
            reason = "no values were found in some combinations of cells, and none were proved impossible"
            return replace(result, verdict=Verdict.UNKNOWN, reason=reason, proof=None)
        if result.objective is not None:
            return replace(result, objective=replace(result.objective, bound=None))
        return result

    def _closer(self, result: Result) -> Result:
        """Finer ladders around the best answer, until value and bound are close."""
        while self.left() > _LEAST:
            goal, known = self.query.objective, result.objective
            if goal is None or goal.zoom is None or known is None or known.bound is None:
                return result
            low, high = sorted((Fraction(known.value), Fraction(known.bound)))
            if high - low <= CLOSE:
                return result
            finer = self._search(replace(self.query, objective=goal.zoom(low, high)))
            found = finer.objective
            if finer.verdict is not Verdict.FOUND or found is None or found.bound is None:
                return result
            better = max if goal.maximize else min
            value, bound = better(known.value, found.value), (min if goal.maximize else max)(known.bound, found.bound)
            before = result
            result = finer if value == found.value else result
            result = replace(result, objective=replace(known, value=value, bound=bound))
            if abs(value - bound) >= abs(known.value - known.bound) * 0.9:
                return result if result.objective != known else before
        return result


def closed(
    query: Query,
    options: Options,
    *,
    stop: threading.Event | None = None,
    on_better: Callable[[Witness], None] | None = None,
) -> Result:
    """The answer to a question about values, or with a ladder; the time limit holds for all searches together."""
    return _Closing(query, options, stop, on_better).run()
