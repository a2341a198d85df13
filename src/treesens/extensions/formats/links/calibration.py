"""Calibrations, which are functions from a model's score to a probability: Platt's sigmoid, isotonic functions, and odds.

Sigmoid (Platt, *Probabilistic outputs for support vector machines*, 1999): p = 1 / (1 + exp(slope * f + intercept)) with slope
< 0. Isotonic: the piecewise linear function through the knots, constant before the first and after the last knot. Odds: the
odds of a model that was trained on other class shares are multiplied by a factor (Elkan, *The foundations of cost-sensitive
learning*, 2001). All three are non-decreasing and continuous in f, the model's margin or its uncalibrated probability.

Thus p >= c holds from a certain score on, and p > c above a certain score; `least_margin` returns this score exactly. For the
sigmoid, the condition is f >= (ln(c / (1 - c)) + intercept) / -slope. An isotonic function is inverted piece by piece; on a
flat piece at c, p >= c holds from the first score of the piece on, and p > c above its last score. If f is the probability 1 /
(1 + exp(-m)) of a margin m, then f >= t means m >= ln(t / (1 - t)). Knots keep their values as written (0.3, not the double
below 0.3), so that comparisons refer to the numbers that a library prints.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias, assert_never

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.base.arrays import FloatArray
from treesens.compiler.query.bounds import LogRational


@dataclass(frozen=True)
class Sigmoid:
    """p = 1 / (1 + exp(slope * f + intercept)), with a negative slope; if `of_probability`, f is 1 / (1 + exp(-margin))."""

    slope: float
    intercept: float
    of_probability: bool = False

    def after(self, scores: NDArray[Any]) -> FloatArray:
        """The probabilities for f, in float64 as in the library."""
        with np.errstate(over="ignore"):
            return np.asarray(1 / (1 + np.exp(self.slope * scores.astype(np.float64) + self.intercept)))


@dataclass(frozen=True)
class Isotonic:
    """p is linear between knots; `scores` ascend, `values` never fall. If `single`, the library stores the knots as float32."""

    scores: tuple[float, ...]
    values: tuple[float, ...]
    of_probability: bool = False
    single: bool = False

    @cached_property
    def exact(self) -> tuple[list[Fraction], list[Fraction]]:
        """Scores and values of the knots as exact numbers; the values are as written (0.3, not the double below 0.3)."""
        return [Fraction(s) for s in self.scores], [Fraction(repr(v)) for v in self.values]

    def after(self, scores: NDArray[Any]) -> FloatArray:
        """The library's probabilities for f: numpy's interpolation, rounded to the type of the knots."""
        kind = np.float32 if self.single else np.float64
        found = np.interp(scores.astype(kind), self.scores, self.values)
        return np.asarray(found.astype(kind), np.float64)


@dataclass(frozen=True)
class Odds:
    """p = second * f / (first * (1 - f) + second * f), for a probability f of the second class; both factors are above 0."""

    first: float
    second: float
    of_probability: bool = False

    @cached_property
    def ratio(self) -> Fraction:
        """The factor of the odds of the second class."""
        return Fraction(self.second) / Fraction(self.first)

    def after(self, scores: NDArray[Any]) -> FloatArray:
        """The probabilities for f: products, a sum and a quotient in float64."""
        f = scores.astype(np.float64)
        one, two = (1 - f) * self.first, f * self.second
        return np.asarray(two / (one + two))


Learnt: TypeAlias = Sigmoid | Isotonic
Calibration: TypeAlias = Learnt | Odds


def least_margin(calibration: Calibration, probability: Fraction, *, strict: bool) -> LogRational | bool:
    """The margin from which p >= `probability` holds, or, if `strict`, above which p > `probability` holds. True if every
    margin satisfies the comparison, False if no margin does.
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
    """The bound on the second class's probability that is equivalent to a bound on the first class's probability.

    For the first class, a library prints 1 - p, which is rounded again. A bound equal to such a number refers to the knot.
    """
    if isinstance(calibration, Isotonic):
        for value in calibration.values:
            if Fraction(repr(1.0 - value)) == 1 - probability:
                return Fraction(repr(value))
    return probability


def _least_score(calibration: Isotonic, probability: Fraction, strict: bool) -> LogRational | bool:
    values = [Fraction(repr(v)) for v in calibration.values]
    # The knots before `place` fail the comparison.
    place = (bisect_right if strict else bisect_left)(values, probability)
    if place in (0, len(values)):
        return place == 0
    low, high = (Fraction(s) for s in calibration.scores[place - 1 : place + 1])
    share = (probability - values[place - 1]) / (values[place] - values[place - 1])
    return LogRational(low + (high - low) * share)


def _margin_of(score: LogRational) -> LogRational | bool:
    """The margin m with 1 / (1 + exp(-m)) = score; True if all probabilities exceed the score, False if none reaches it."""
    other = LogRational(Fraction(1)) + -score
    if _sign(score) <= 0:
        return True
    if _sign(other) <= 0:
        return False
    return LogRational.ln(score) + -LogRational.ln(other)


def _sign(number: LogRational) -> int:
    """The sign of a number; irrational numbers are never 0."""
    bits = 64
    while True:
        low, high = number.enclose(bits)
        if low > 0 or high < 0 or low == high == 0:
            return (low > 0) - (high < 0)
        bits *= 2
