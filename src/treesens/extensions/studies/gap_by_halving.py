"""The largest gap of a probability that is no function of one score: by questions at one gap after the other.

A question that is found raises the gap that is reached, and one without an answer lowers the bound. The next one is asked
halfway between the two, or below a question that was left open: there a pair is easier to find.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from treesens.compiler.base.budget import Budget
from treesens.compiler.base.floats import NumberType, ceil_to
from treesens.compiler.base.tolerance import Closeness, Tolerance
from treesens.compiler.base.units import nearest_double
from treesens.compiler.query.evaluate import holds, inputs_of
from treesens.compiler.query.query import Constraint, ProbabilitySum, Query
from treesens.compiler.result import Verdict
from treesens.solve.options import Options
from treesens.solve.question import answer
from treesens.values.witness import Witness

_SHARE = 0.5
"""Of the time that is left, for one question."""
_LEAST = Fraction(1, 1 << 20)


@dataclass(frozen=True)
class Halved:
    """What is known: `value` is reached by the witness, no pair reaches more than `bound`. `empty`: there is no pair at all."""

    empty: bool
    value: float | None
    bound: float | None
    closed: bool
    reason: str
    witness: Witness | None
    seconds: float


def halve_gap(
    query: Query, most: Fraction, options: Options, budget: Budget, close: float, *, least: Fraction = _LEAST
) -> Halved:
    """The largest number by which all probabilities of a question can pass their bounds, if it is at most `most`.

    It is known as closely as `close`, a part of it, or `least`, whichever is more.
    """
    start = time.perf_counter()
    value, bound, witness, reason = Fraction(-1), most, None, ""
    asked, below = Fraction(0), most
    tolerance = Tolerance(close)
    while not (budget.over and witness is not None):
        found = answer(_harder(query, asked), options, budget.share(_SHARE).at_least(0.1))
        if found.verdict is Verdict.NONE and asked == 0:
            seconds = time.perf_counter() - start
            return Halved(True, None, None, True, "no pair crosses the threshold", None, seconds)
        if found.verdict is Verdict.NONE:
            bound = below = asked
        elif found.witness is not None:
            witness, value = found.witness, _reached(query, found.witness, asked, bound, least)
            below = max(below, value)
        else:
            reason, below = found.reason, asked
            if witness is None:
                break
        if below - value <= max(least, Fraction(close) * value):
            break
        asked = (value + below) / 2
    seconds = time.perf_counter() - start
    if witness is None:
        return Halved(False, None, None, False, reason or budget.reason, None, seconds)
    reached, above = nearest_double(value), ceil_to(bound, NumberType.FLOAT64)
    closed = bound - value <= least or tolerance.closeness(reached, above) is not Closeness.OPEN
    return Halved(False, reached, above, closed, "" if closed else (reason or budget.reason), witness, seconds)


def _harder(query: Query, gap: Fraction) -> Query:
    return replace(query, constraints=tuple(_raised(query.constraints, gap))) if gap else query


def _raised(constraints: Sequence[Constraint], gap: Fraction) -> list[Constraint]:
    return [replace(c, bound=c.bound + gap) if isinstance(c, ProbabilitySum) else c for c in constraints]


def _reached(query: Query, witness: Witness, asked: Fraction, bound: Fraction, least: Fraction) -> Fraction:
    """A gap that a witness reaches, close to its largest one."""
    x = inputs_of(query, witness.values)
    low, high = asked, bound
    while high - low > least:
        middle = (low + high) / 2
        if all(holds(c, x) for c in _raised(query.constraints, middle)):
            low = middle
        else:
            high = middle
    return low
