"""The largest reversal of a score in a feature, and what two of them say of its shape."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from treesens.binder.file import ResolvedQuestion
from treesens.compiler.result import Result
from treesens.extensions.studies.halving import CLOSE
from treesens.records.answers import points_of, scores_of


@dataclass(frozen=True)
class Reversal:
    """The most by which a score falls (or rises): the pair of `result` reaches `value`, and none is beyond `bound`."""

    bound: float
    result: Result | None = None
    output: int = 0
    falls: bool = True
    of_probability: bool = False
    """Whether it is one of an averaged probability, whose class `output` is."""

    @property
    def is_shown(self) -> bool:
        """True if the pair goes against the direction in the arithmetic of the library, too: sums that are rounded may tie."""
        witness = None if self.result is None else self.result.witness
        if witness is None:
            return False
        scores = witness.probabilities if self.of_probability else witness.margins
        low, high = (scores[point][self.output] for point in (0, 1))
        return low > high if self.falls else low < high

    @property
    def value(self) -> float | None:
        """What a pair reaches; 0 if that is proved to be all, None if nothing is known."""
        if self.bound == 0:
            return 0.0
        return None if self.result is None or self.result.objective is None else self.result.objective.value

    @property
    def reason(self) -> str:
        """Why it is not closed, or why no pair shows it; empty otherwise."""
        if self.result is None or self.bound == 0:
            return ""
        if self.result.objective is None:
            return self.result.reason
        if not self.closed:
            return "open: not closed in the time given"
        if self.is_shown:
            return ""
        size = f"{'at most ' if self.of_probability else ''}{self.bound:.3g}"
        return f"a {'fall' if self.falls else 'rise'} of {size} in exact sums vanishes in the library's rounding"

    @property
    def closed(self) -> bool:
        """True if the bound is the value, or within the tolerance of it."""
        value, least = self.value, 2 * CLOSE if self.of_probability else 0.0
        return value is not None and self.bound - value <= max(2e-6 * abs(value), least)


def shape_of(fall: Reversal, rise: Reversal) -> str:
    """The shape of a score: proved, or shown by two pairs."""
    if fall.bound == 0:
        return "constant" if rise.bound == 0 else "increasing"
    if rise.bound == 0:
        return "decreasing"
    return "neither" if fall.is_shown and rise.is_shown else "unknown"


def points_and_scores(one: Reversal, question: ResolvedQuestion) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """The pair and its scores, if it shows a reversal."""
    if one.result is None or one.result.witness is None or not one.is_shown:
        return None, None
    query, witness = question.query, one.result.witness
    scores = {point.name: scores_of(query, witness, number) for number, point in enumerate(query.points)}
    return points_of(query, witness), scores
