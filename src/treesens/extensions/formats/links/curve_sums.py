"""Converts calibrated probabilities to terms of sums, and derives linear rows from such sums.

Each term is a non-decreasing function of one score (`curves.py`), or a share of a softmax. An input at which the sum is too
small is excluded by a row: each function is at most a line on the range of its score, and the sum of the lines must reach the
bound. A line may be too far above a convex part of a function. In that case the line covers only a part of the range, and the
row is enforced only if every score is inside its part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from treesens.compiler.base.arrays import FloatArray
from treesens.compiler.base.dyadic import Unit
from treesens.compiler.model import Ensemble
from treesens.compiler.query.exact_sums import Value
from treesens.compiler.query.predicted_classes import resolution_of_class
from treesens.compiler.query.query import AnyOf, AtLeast, Constraint, ProbabilitySum, Scores, ScoreTerm
from treesens.compiler.query.shares import Linear, Probability, line_row
from treesens.extensions.formats.links.calibration import Isotonic, Learnt
from treesens.extensions.formats.links.curves import (
    ROUNDING,
    add_value,
    floats_of,
    greatest_curvature,
    least_constant,
    slope_above,
    steepest,
)
from treesens.links import ScorePlace

_HALVINGS = 12
"""The maximum number of times that the range of a line is halved towards the excluded input."""
_GRID = 1 << 40
"""The denominator of the constants of lines; constants are rounded up."""

Range = tuple[float, float, float]
"""The point at which a line touches its function, and the range on which the line is above the function."""


@dataclass(frozen=True)
class Curve(Linear):
    """factor * f(score), where f is a non-decreasing `calibration`."""

    calibration: Learnt
    rank = 2
    in_floats = True

    @property
    def ends(self) -> tuple[Fraction, Fraction]:
        return min(self.factor, Fraction(0)), max(self.factor, Fraction(0))

    def add_to(self, value: Value, arguments: Sequence[Fraction]) -> None:
        add_value(value, self.factor, self.calibration, arguments[0])

    def on_rows(self, sums: Callable[[Sequence[ScoreTerm]], FloatArray]) -> tuple[FloatArray, FloatArray]:
        at = sums(self.scores)
        down, up = (float(self.factor) * floats_of(self.calibration, lift)(at) for lift in (-1.0, 1.0))
        return np.minimum(down, up), np.maximum(down, up)

    def relax(self, row: ProbabilitySum) -> Constraint:
        return first_row(row)

    def cut(self, row: ProbabilitySum, scores: Scores) -> Constraint | None:
        return cut_off(row, scores)

    def error(self, ensemble: Ensemble, off: Callable[[ScoreTerm], Fraction]) -> Fraction:
        move = sum(map(off, self.scores), Fraction(0)) * steepest(self.calibration)
        return abs(self.factor) * (move + resolution_of_class(ensemble))

    def text(self, form: Callable[[Sequence[ScoreTerm], Fraction], str]) -> str:
        return f"{type(self.calibration).__name__.lower()}({form(self.scores, Fraction(0))})"


def curve(place: ScorePlace, output: int, factor: Fraction, calibration: Learnt) -> Curve:
    """The curve factor * calibration(score) for one score of a model."""
    line = place.linear(output, factor)
    return Curve(line.factor, line.scores, line.low, line.high, calibration)


def curves_of(row: ProbabilitySum) -> list[Linear]:
    """The terms of a sum that are scores or functions of one score."""
    return [term for term in row.terms if isinstance(term, Linear)]


# --- rows -------------------------------------------------------------------------------------------------------------------


def first_row(row: ProbabilitySum) -> Constraint:
    """A linear row implied by a sum; lines touch functions at the same share of each range, where the sum reaches the bound."""
    best = [_range(term, 1.0) for term in curves_of(row)]
    if _total(row, [r[0] for r in best], 1.0) < float(row.bound) - ROUNDING * _size(row):
        return AnyOf(())
    low, high = 0.0, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        reached = _total(row, [_range(term, middle)[0] for term in curves_of(row)], 0.0) >= float(row.bound)
        low, high = (low, middle) if reached else (middle, high)
    return on_lines(row, [_range(term, high) for term in curves_of(row)])


def cut_off(row: ProbabilitySum, scores: Scores) -> Constraint | None:
    """A constraint that the sum implies and that `scores` violate; None if lines are not close enough to the functions."""
    terms = curves_of(row)
    at = [float(term.arguments(scores)[0]) for term in terms]
    for halving in range(_HALVINGS + 1):
        ranges, sides = [], []
        for term, place in zip(terms, at, strict=True):
            low, high = float(term.low), float(term.high)
            if halving and isinstance(term, Curve):
                rising = term.factor > 0
                end = place + ((high if rising else low) - place) * float(Unit(halving).size)
                low, high = (low, end) if rising else (end, high)
                sides += term.better([Fraction(end)], row.name)
            ranges.append((place, min(low, place), max(high, place)))
        found = on_lines(row, ranges)
        if breaks(found, scores):
            return AnyOf((*sides, found)) if sides else found
    return None


def on_lines(row: ProbabilitySum, ranges: Sequence[Range]) -> AtLeast:
    """The row stating that the sum of the lines above the functions reaches the bound; shares of softmaxes count as 0 or 1."""
    terms = curves_of(row)
    return line_row(row, {term: _line(term, place) for term, place in zip(terms, ranges, strict=True)})


def _line(term: Linear, place: Range) -> tuple[Fraction, Fraction]:
    """Slope and constant of a line above the function or, if the function is subtracted, of a line below the function."""
    if not isinstance(term, Curve):
        return Fraction(1), Fraction(0)
    at, low, high = place
    f = floats_of(term.calibration, 1.0 if term.factor > 0 else -1.0)
    knots, bend = _knots(term.calibration), greatest_curvature(term.calibration)
    if term.factor > 0:
        slope = float(np.float32(slope_above(f, low, high, at, knots)))
        constant = least_constant(f, low, high, slope, knots, bend)
        return Fraction(slope), Fraction((constant * _GRID).__ceil__(), _GRID)
    # -f(-s) is non-decreasing, too, and lies below a line if f lies above one.
    slope = float(np.float32(slope_above(lambda s: -f(-s), -high, -low, -at, -knots)))
    constant = least_constant(lambda s: -f(-s), -high, -low, slope, -knots, bend)
    return Fraction(slope), -Fraction((constant * _GRID).__ceil__(), _GRID)


def _knots(calibration: Learnt) -> FloatArray:
    if not isinstance(calibration, Isotonic):
        return np.zeros(0)
    scores = np.asarray(calibration.scores)
    if not calibration.of_probability:
        return scores
    inside = scores[(scores > 0) & (scores < 1)]
    return np.asarray(np.log(inside) - np.log1p(-inside), np.float64)


def _range(term: Linear, share: float) -> Range:
    """The whole range of a score; the line touches at `share` of the range, counted from the end at which the term is least."""
    low, high = float(term.low), float(term.high)
    return (low + (high - low) * (share if term.factor > 0 else 1 - share)), low, high


def _total(row: ProbabilitySum, places: Sequence[float], lift: float) -> float:
    """The sum of the terms in floats, with shares of softmaxes at their best values."""
    total = sum(max(float(t.factor), 0.0) for t in row.terms if isinstance(t, Probability))
    for term, at in zip(curves_of(row), places, strict=True):
        up = lift if term.factor > 0 else -lift
        total += float(term.factor) * (
            float(floats_of(term.calibration, up)(np.array([at]))[0]) if isinstance(term, Curve) else at
        )
    return total


def _size(row: ProbabilitySum) -> float:
    sizes = (abs(float(t.factor)) * (1 + max(abs(float(t.low)), abs(float(t.high)))) for t in curves_of(row))
    return 1 + sum(sizes)


def breaks(row: AtLeast, scores: Scores) -> bool:
    value = sum((t.coefficient * scores[t.point][t.output] for t in row.form.scores), Fraction(0))
    return value < row.bound.rational
