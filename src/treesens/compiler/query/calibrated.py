"""Converts bounds of a calibrated probability to bounds of the score, exactly.

A calibration f -> p is non-decreasing and continuous, so p >= c holds from some score on, and p > c beyond some score. The
sigmoid gives f >= (ln(c / (1 - c)) + intercept) / -slope. An isotonic function is inverted piece by piece; on a flat step at c,
p >= c holds from its first score on, p > c beyond its last one. If f is itself the probability 1 / (1 + exp(-m)) of a margin m,
then f >= t is m >= ln(t / (1 - t)).

Knots have their written values (0.3, not the double below it): comparisons are about the numbers that a library prints.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from fractions import Fraction
from typing import assert_never

from treesens.compiler.model.calibration import Calibration, Isotonic, Odds, Sigmoid
from treesens.compiler.query.bounds import LogRational


def least_margin(calibration: Calibration, probability: Fraction, *, strict: bool) -> LogRational | bool:
    """The margin from which p >= probability holds (beyond which p > probability holds, if `strict`); True or False if all
    margins satisfy it, or none.
    """
    match calibration:
        case Sigmoid():
            if not 0 < probability < 1:
                return probability <= 0
            odds = LogRational.ln(probability / (1 - probability)) + LogRational(Fraction(calibration.intercept))
            least: LogRational | bool = odds * (1 / Fraction(-calibration.slope))
        case Isotonic():
            least = _least_score(calibration, probability, strict)
        case Odds():
            # f = p / (p + ratio (1 - p)); for a margin it is never 0 or 1.
            inside = 0 < probability < 1 if calibration.of_probability else 0 <= probability <= 1
            if not inside:
                return probability <= 0
            others = calibration.ratio * (1 - probability)
            if calibration.of_probability:
                return LogRational.ln(probability / others)
            return LogRational(probability / (probability + others))
        case _:
            assert_never(calibration)
    return _margin_of(least) if calibration.of_probability and isinstance(least, LogRational) else least


def bound_of_second(calibration: Calibration, probability: Fraction) -> Fraction:
    """A bound on the first class's probability as one on the second class's, 1 minus it.

    A library prints 1 - p of the first class, rounded once more. A bound that equals such a number refers to its knot.
    """
    if isinstance(calibration, Isotonic):
        for value in calibration.values:
            if Fraction(repr(1.0 - value)) == 1 - probability:
                return Fraction(repr(value))
    return probability


def _least_score(calibration: Isotonic, probability: Fraction, strict: bool) -> LogRational | bool:
    values = [Fraction(repr(v)) for v in calibration.values]
    # The knots before `place` are those that fail the comparison.
    place = (bisect_right if strict else bisect_left)(values, probability)
    if place in (0, len(values)):
        return place == 0
    low, high = (Fraction(s) for s in calibration.scores[place - 1 : place + 1])
    share = (probability - values[place - 1]) / (values[place] - values[place - 1])
    return LogRational(low + (high - low) * share)


def _margin_of(score: LogRational) -> LogRational | bool:
    """The margin m at which 1 / (1 + exp(-m)) is a score; True if every probability exceeds it, False if none reaches it."""
    other = LogRational(Fraction(1)) + -score
    if _sign(score) <= 0:
        return True
    if _sign(other) <= 0:
        return False
    return LogRational.ln(score) + -LogRational.ln(other)


def _sign(number: LogRational) -> int:
    """The sign of a rational number, or of an irrational one, which is never 0."""
    bits = 64
    while True:
        low, high = number.enclose(bits)
        if low > 0 or high < 0 or low == high == 0:
            return (low > 0) - (high < 0)
        bits *= 2
