"""Sums of probabilities of several models: decided exactly at one input, and relaxed to linear rows elsewhere.

Each term is a non-decreasing function of one score (`curves.py`), or a share of a softmax. An input at which the sum is too
small gives a row that excludes it: each function is below a line on the range of its score, and the lines together must reach
the bound. For a convex part of a function the line may be too far above it. Then the line covers only a part of the range, and
the row holds unless some score is outside that part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from treesens.compiler.base.arrays import BoolArray, FloatArray
from treesens.compiler.base.dyadic import ScaledIntegers, Unit
from treesens.compiler.model.calibration import Isotonic, Learnt
from treesens.compiler.query.bounds import LogRational
from treesens.compiler.query.curves import ROUNDING, Value, floats_of, greatest_curvature, least_constant, slope_above
from treesens.compiler.query.query import (
    AnyOf,
    AtLeast,
    Constraint,
    Curve,
    LinearForm,
    Probability,
    ProbabilitySum,
    ScoreTerm,
)

_HALVINGS = 12
"""Maximum halvings of a line's range towards the input to exclude."""
_GRID = 1 << 40
"""Denominator of the constants of lines, which are rounded up to multiples of it."""

Range = tuple[float, float, float]
"""A line's point of contact, and the range on which it is above its function."""


def has_curves(row: ProbabilitySum) -> bool:
    """True if a sum has functions of single scores among its terms."""
    return any(isinstance(term, Curve) for term in row.terms)


def curves_of(row: ProbabilitySum) -> list[Curve]:
    """The functions of single scores of a sum."""
    return [term for term in row.terms if isinstance(term, Curve)]


def score_at(term: Curve, scores: Sequence[Sequence[Fraction]] | Mapping[int, Sequence[Fraction]]) -> Fraction:
    """The exact argument of a function."""
    return sum((t.coefficient * scores[t.point][t.output] for t in term.scores), Fraction(0))


def value_at(row: ProbabilitySum, scores: Sequence[Sequence[Fraction]] | Mapping[int, Sequence[Fraction]]) -> Value:
    """The functions' part of a sum at one input."""
    value = Value()
    for term in curves_of(row):
        value.add(term.factor, term.calibration, score_at(term, scores))
    return value


def ends_on_rows(
    row: ProbabilitySum, scores: Mapping[int, ScaledIntegers], count: int
) -> tuple[FloatArray, FloatArray]:
    """Bounds on the functions' part of a sum, for many inputs: float64[count] twice."""
    low, high = np.zeros(count), np.zeros(count)
    for term in curves_of(row):
        at = np.zeros(count)
        for t in term.scores:
            at += float(t.coefficient) * Unit(scores[t.point].shift).doubles(scores[t.point].values[:, t.output])
        down, up = (float(term.factor) * floats_of(term.calibration, lift)(at) for lift in (-1.0, 1.0))
        low, high = low + np.minimum(down, up), high + np.maximum(down, up)
    return low, high


def keep_rows(low: FloatArray, high: FloatArray, clear: float) -> tuple[BoolArray, BoolArray]:
    """Marks sums that certainly reach 0, and sums too close to decide."""
    return low > clear, (low <= clear) & (high >= -clear)


# --- rows -------------------------------------------------------------------------------------------------------------------


def first_row(row: ProbabilitySum) -> Constraint:
    """A linear row implied by a sum: its lines touch where equal shares of all ranges reach the bound."""
    best = [_range(term, 1.0) for term in curves_of(row)]
    if _total(row, [r[0] for r in best], 1.0) < float(row.bound) - ROUNDING * _size(row):
        return AnyOf(())
    low, high = 0.0, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        reached = _total(row, [_range(term, middle)[0] for term in curves_of(row)], 0.0) >= float(row.bound)
        low, high = (low, middle) if reached else (middle, high)
    return line_row(row, [_range(term, high) for term in curves_of(row)])


def cut_off(
    row: ProbabilitySum, scores: Sequence[Sequence[Fraction]] | Mapping[int, Sequence[Fraction]]
) -> Constraint | None:
    """A constraint implied by a sum and violated by scores; None if lines are not close enough to the functions."""
    terms = curves_of(row)
    at = [float(score_at(term, scores)) for term in terms]
    for halving in range(_HALVINGS + 1):
        ranges, sides = [], []
        for term, place in zip(terms, at, strict=True):
            low, high = float(term.low), float(term.high)
            if halving and term.calibration is not None:
                rising = term.factor > 0
                end = place + ((high if rising else low) - place) * float(Unit(halving).size)
                low, high = (low, end) if rising else (end, high)
                sides.append(beyond(term, Fraction(end), row.name))
            ranges.append((place, min(low, place), max(high, place)))
        found = line_row(row, ranges)
        if breaks(found, scores):
            return AnyOf((*sides, found)) if sides else found
    return None


def beyond(term: Curve, limit: Fraction, name: str) -> AtLeast:
    """The score of a term is better than a limit."""
    sign = 1 if term.factor > 0 else -1
    scores = tuple(ScoreTerm(t.point, t.output, sign * t.coefficient) for t in term.scores)
    return AtLeast(LinearForm(scores), LogRational(sign * limit), True, name)


def line_row(row: ProbabilitySum, ranges: Sequence[Range]) -> AtLeast:
    """The sum of lines above the functions (below subtracted ones) reaches the bound; shares count as 0 or 1."""
    bound = row.bound
    coefficients: dict[tuple[int, int], Fraction] = {}
    for term, place in zip(curves_of(row), ranges, strict=True):
        slope, constant = _line(term, place)
        bound -= term.factor * constant
        for t in term.scores:
            key = (t.point, t.output)
            coefficients[key] = coefficients.get(key, Fraction(0)) + term.factor * slope * t.coefficient
    for share in row.terms:
        if isinstance(share, Probability):
            bound -= max(share.factor, Fraction(0))
    scores = tuple(ScoreTerm(*key, c) for key, c in coefficients.items() if c)
    return AtLeast(LinearForm(scores), LogRational(bound), False, row.name)


def _line(term: Curve, place: Range) -> tuple[Fraction, Fraction]:
    """Slope and constant of a line above the function, or below it if it is subtracted."""
    if term.calibration is None:
        return Fraction(1), Fraction(0)
    at, low, high = place
    f = floats_of(term.calibration, 1.0 if term.factor > 0 else -1.0)
    knots, bend = _knots(term.calibration), greatest_curvature(term.calibration)
    if term.factor > 0:
        slope = float(np.float32(slope_above(f, low, high, at, knots)))
        constant = least_constant(f, low, high, slope, knots, bend)
        return Fraction(slope), Fraction((constant * _GRID).__ceil__(), _GRID)
    # -f(-s) is also non-decreasing, and is below a line if f is above one.
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


def _range(term: Curve, share: float) -> Range:
    """The whole range of a score, with the point of contact at this share of it, from the end at which the term is least."""
    low, high = float(term.low), float(term.high)
    return (low + (high - low) * (share if term.factor > 0 else 1 - share)), low, high


def _total(row: ProbabilitySum, places: Sequence[float], lift: float) -> float:
    """The sum in floats, with shares at their best values."""
    total = sum(max(float(t.factor), 0.0) for t in row.terms if isinstance(t, Probability))
    for term, at in zip(curves_of(row), places, strict=True):
        up = lift if term.factor > 0 else -lift
        total += float(term.factor) * float(floats_of(term.calibration, up)(np.array([at]))[0])
    return total


def _size(row: ProbabilitySum) -> float:
    sizes = (abs(float(t.factor)) * (1 + max(abs(float(t.low)), abs(float(t.high)))) for t in curves_of(row))
    return 1 + sum(sizes)


def breaks(row: AtLeast, scores: Sequence[Sequence[Fraction]] | Mapping[int, Sequence[Fraction]]) -> bool:
    value = sum((t.coefficient * scores[t.point][t.output] for t in row.form.scores), Fraction(0))
    return value < row.bound.rational
