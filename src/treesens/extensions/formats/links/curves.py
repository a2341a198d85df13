"""Values of calibrated probabilities, which are non-decreasing functions of one score, and lines above these functions.

At one input, the value is a rational number, a share 1 / (1 + e**v), or a sigmoid of a probability. Over all inputs, lines
bound the term (`least_constant`) and yield linear rows for a sum: for a slope b >= 0, the constant is the least a with f(s) <=
a + b s for all s. On a piece [u, v] f(s) - b s is at most f(v) - b u, since f is non-decreasing. If f is smooth on the piece,
f(s) - b s is also at most the greater of its values at the ends plus a second-derivative term. Repeatedly halving the pieces
that exceed the best value converges to the maximum from above, so the row is valid at any time (Piyavskii, U.S.S.R. Comput.
Math. Math. Phys. 12, 1972; with derivatives Breiman and Cutler, Mathematical Programming 58, 1993).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from treesens.compiler.base.arrays import FloatArray
from treesens.compiler.query.exact_sums import ONE, Member, Value, share_bounds
from treesens.extensions.formats.links.calibration import Isotonic, Learnt, Sigmoid

ROUNDING = 1e-11
"""Upper bound on the floating-point error of a calibrated probability: one or two exponentials and a product."""
_LIFT = 1e-14
"""Upper bound on the relative error of an argument."""
_CLOSE = 1e-7
"""Precision of a line: the maximum distance of its constant from the maximum of f(s) - b s."""
_MOST_PIECES = 1 << 16
_FAR = 4096
_KNOT_WIDTH = 1e-13
"""Upper bound on the relative error of a knot."""
_BEND = 0.09623
"""Upper bound on the second derivative of 1 / (1 + e**-s), which is at most 1 / (6 sqrt(3))."""
_LARGEST = Fraction(2) ** 1000


@dataclass(frozen=True)
class SigmoidOfShare(Member):
    """The number 1 / (1 + e**(slope * p + intercept)), where p = 1 / (1 + e**-score); slope and score are positive."""

    slope: Fraction
    intercept: Fraction
    score: Fraction

    def bounds(self, bits: int, less: Fraction) -> tuple[Fraction, Fraction]:  # noqa: ARG002 - divided by 1 alone
        inner = share_bounds(-self.score, bits)
        low, high = (self.slope * end + self.intercept for end in inner)
        return share_bounds(high, bits)[0], share_bounds(low, bits)[1]


def add_value(value: Value, factor: Fraction, calibration: Learnt, score: Fraction) -> None:
    """Adds factor * f(score) to a sum."""
    if isinstance(calibration, Isotonic):
        _add_isotonic(value, factor, calibration, score)
        return
    slope, intercept = Fraction(calibration.slope), Fraction(calibration.intercept)
    if not calibration.of_probability:
        value.power_share(factor, [slope * score + intercept])
        return
    # The probability p of a score is 1 minus the probability of the negated score.
    if score < 0:
        slope, intercept, score = -slope, slope + intercept, -score
    if slope < 0:
        value.constant, factor, slope, intercept = value.constant + factor, -factor, -slope, -intercept
    if slope == 0 or score == 0:
        value.power_share(factor, [slope / 2 + intercept])
        return
    value.share([ONE], {SigmoidOfShare(slope, intercept, score): factor})


def _add_isotonic(value: Value, factor: Fraction, calibration: Isotonic, score: Fraction) -> None:
    """Adds the value of the score's piece: a constant, or a line (a multiple of a share if f takes a probability)."""
    scores, values = calibration.exact
    place = _place_of_share(scores, score) if calibration.of_probability else bisect_right(scores, score)
    if place in (0, len(scores)):
        value.constant += factor * values[min(place, len(values) - 1)]
        return
    slope = (values[place] - values[place - 1]) / (scores[place] - scores[place - 1])
    value.constant += factor * (values[place - 1] - slope * scores[place - 1])
    if not calibration.of_probability:
        value.constant += factor * slope * score
    elif slope:
        value.power_share(factor * slope, [-score])


def value_of(calibration: Learnt, score: Fraction) -> Value:
    """f(score)."""
    value = Value()
    add_value(value, Fraction(1), calibration, score)
    return value


def _place_of_share(scores: list[Fraction], margin: Fraction) -> int:
    """The number of knots that are at most the probability 1 / (1 + e**-margin)."""
    if margin == 0:
        return bisect_right(scores, Fraction(1, 2))
    bits = 64
    while True:
        # The probability of a non-zero margin is irrational.
        low, high = share_bounds(-margin, bits)
        first, last = bisect_right(scores, low), bisect_right(scores, high)
        if first == last:
            return first
        if bits > _FAR:
            # The probability is nearer to 0 or 1 than the supported precision; there the function is flat, or ends.
            return first if margin > 0 else last
        bits *= 2


def floats_of(calibration: Learnt, lift: float = 0.0) -> Callable[[FloatArray], FloatArray]:
    """The function in floats. With `lift` 1 (or -1), a value is never more than ROUNDING below (above) the exact value,
    although a steep piece amplifies the rounding error of the argument.
    """

    def f(s: FloatArray) -> FloatArray:
        if calibration.of_probability:
            s = 1 / (1 + np.exp(-np.clip(s, -700.0, 700.0)))
        s = s + lift * _LIFT * (1 + np.abs(s))
        if isinstance(calibration, Sigmoid):
            return np.asarray(1 / (1 + np.exp(np.clip(calibration.slope * s + calibration.intercept, -700.0, 700.0))))
        return np.asarray(np.interp(s, calibration.scores, calibration.values), np.float64)

    return f


def steepest(calibration: Learnt) -> Fraction:
    """A Lipschitz constant of the function in its score."""
    if isinstance(calibration, Sigmoid):
        slope = Fraction(-calibration.slope) / 4
    else:
        knots = zip(
            calibration.scores, calibration.values, calibration.scores[1:], calibration.values[1:], strict=False
        )
        rises = [(Fraction(d) - Fraction(b)) / (Fraction(c) - Fraction(a)) for a, b, c, d in knots]
        slope = max(rises, default=Fraction(0))
    return slope / 4 if calibration.of_probability else slope


def slope_above(f: Callable[[FloatArray], FloatArray], low: float, high: float, at: float, knots: FloatArray) -> float:
    """The slope, at `at`, of the least concave function above f on [low, high]; estimated from a few hundred points."""
    places = np.unique(np.concatenate([np.linspace(low, high, 257), knots[(knots > low) & (knots < high)], [at]]))
    # Python lists are several times faster than numpy arrays for element access.
    x, y = places.tolist(), f(places).tolist()
    hull: list[int] = []
    for i in range(len(x)):
        while len(hull) > 1 and _turns_up(x, y, hull[-2], hull[-1], i):
            hull.pop()
        hull.append(i)
    if len(hull) == 1:
        return 0.0
    right = min(max(bisect_right([x[i] for i in hull], at), 1), len(hull) - 1)
    one, two = hull[right - 1], hull[right]
    return max(0.0, float((y[two] - y[one]) / (x[two] - x[one])))


def _turns_up(x: Sequence[float], y: Sequence[float], a: int, b: int, c: int) -> bool:
    return (y[b] - y[a]) * (x[c] - x[b]) <= (y[c] - y[b]) * (x[b] - x[a])


def greatest_curvature(calibration: Learnt) -> float:
    """An upper bound on the function's second derivative except at its knots; infinite if floats overflow."""
    if isinstance(calibration, Sigmoid):
        k = abs(float(calibration.slope))
        inner = _BEND * k * k
        return inner / 16 + _BEND * k / 4 if calibration.of_probability else inner
    return _BEND * _above(steepest(calibration) * 4) if calibration.of_probability else 0.0


def _above(number: Fraction) -> float:
    return math.nextafter(float(number), math.inf) if number < _LARGEST else math.inf


def least_constant(
    f: Callable[[FloatArray], FloatArray], low: float, high: float, slope: float, knots: FloatArray, curvature: float
) -> Fraction:
    """A number a, close to the least possible, with f(s) <= a + slope * s for all s in [low, high]; slope >= 0.

    On a piece of width w without a knot, f(s) - slope * s is also at most the greater of its values at the two ends plus
    `curvature` * w**2 / 8, so that only few pieces are halved. Rounding a knot does no harm: each knot has its own piece.
    """
    around = _KNOT_WIDTH * (1 + np.abs(knots))
    places = np.concatenate([np.linspace(low, high, 65), knots - around, knots + around])
    ends = np.unique(places[(places >= low) & (places <= high)])
    left, right = ends[:-1], ends[1:]
    if not len(left):
        left = right = np.array([low])
    sorted_knots = np.sort(knots)
    smooth = np.searchsorted(sorted_knots, left, "left") == np.searchsorted(sorted_knots, right, "right")
    best = -math.inf
    while True:
        at_left, at_right = f(left) - slope * left, f(right) - slope * right
        width = right - left
        bent = np.maximum(at_left, at_right) + curvature / 8 * width * width
        # `bent` is NaN if the curvature is infinite and the square of a width is 0.
        most = np.where(smooth, np.fmin(at_right + slope * width, bent), at_right + slope * width)
        best = max(best, float(at_left.max()), float(at_right.max()))
        middle = left + width / 2
        open_ = (most > best + _CLOSE) & (middle > left) & (middle < right)
        if not open_.any() or len(left) + int(open_.sum()) > _MOST_PIECES:
            size = 1 + float(np.abs(most).max()) + slope * max(abs(low), abs(high))
            return Fraction(max(best, float(most.max())) + ROUNDING * size)
        # Pruned pieces lie below the best value, and so below the result.
        kept = ~open_ & (most > best)
        left, right, smooth = (
            np.concatenate([left[open_], middle[open_], left[kept]]),
            np.concatenate([middle[open_], right[open_], right[kept]]),
            np.concatenate([smooth[open_], smooth[open_], smooth[kept]]),
        )
