"""Powers, logarithms and quantiles before trees: functions that ascend, computed up to their last digits.

A library's f is within E(x) of an increasing F, and F - E and F + E increase, too. So a split "f(x) is at most c" holds
for all floats below one with f + 2 E < c, and for none above one with f - 2 E > c. Between the two every float is tried, with
the library's own function: if those that hold come first, the split is a threshold here. Otherwise it is refused.

Uniform levels of `QuantileTransformer` are a piecewise linear function. Between two neighbouring quantiles the library computes
only differences, products with a slope that is not negative, and sums, each of which is rounded in order. So its result never
falls there, and only at a quantile itself can its last digit. These places are tried, float by float.

Source: NumPy promises 4 units in the last place for its logarithms and exponentials (Universal functions, accuracy), Cephes a
relative error below 7.2e-16 for `ndtri`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.base.floats import largest_true
from treesens.errors import ModelError

Float64 = NDArray[np.float64]
Function = Callable[[Float64], Float64]

_ULP = 2.0**-52
_TINY = 2.0**-1000
_FARTHEST = 22
"""The places that are sure lie at most 2**22 floats away: behind flatter pieces more floats would have to be tried."""
_AT_ONCE = 1 << 22


@dataclass(frozen=True, eq=False)
class Rough:
    """A step `function` behind `before` and in front of `after`; `error` bounds its distance from an increasing function.

    `before` and `after` never decrease, as they are computed.
    """

    name: str
    before: Function
    function: Function
    error: Function
    after: Function

    def __call__(self, x: Float64) -> Float64:
        return self.after(self.function(self.before(x)))

    def then(self, function: Function) -> Rough:
        """With another step, as it is computed, behind it."""
        after = self.after
        return replace(self, after=lambda y: function(after(y)))


def quantile_function(
    knots: Float64, references: Float64, place: str, bound: float
) -> tuple[Callable[[Float64], Float64], Float64]:
    """What `transform` makes of a column with quantiles `knots` [n], whose levels are `references` [n]; and where it may fall.

    Numbers within `bound` of the ends have their levels (0: the ends alone). ModelError for quantiles that do not ascend, or
    are closer than floats tell.
    """
    with np.errstate(all="ignore"):
        steps, rises = np.diff(knots), np.diff(references)
        slopes = rises[steps > 0] / steps[steps > 0]
        finite = all(np.isfinite(part).all() for part in (knots, steps, slopes))
    if not (finite and (steps >= 0).all() and (rises >= 0).all()):
        message = "the quantiles of a column do not ascend, or are too close to each other"
        raise ModelError(message, place=place, remedy="leave out that column; or fit it again")

    def is_low(x: Float64) -> NDArray[np.bool_]:
        return np.asarray(x - bound < knots[0] if bound else x == knots[0])

    def is_high(x: Float64) -> NDArray[np.bool_]:
        return np.asarray(x + bound > knots[-1] if bound else x == knots[-1])

    def function(values: Float64) -> Float64:
        x = np.asarray(values, np.float64)
        # The mean of both directions, as the library has it for repeated quantiles.
        found = 0.5 * (np.interp(x, knots, references) - np.interp(-x, -knots[::-1], -references[::-1]))
        return np.asarray(np.where(is_low(x), 0.0, np.where(is_high(x), 1.0, found)), np.float64)

    if not bound:
        return function, knots
    if references[0] < 0 or references[-1] > 1:
        raise ModelError("the levels of QuantileTransformer are no shares", place=place, remedy="fit it again")
    ends = [largest_true(is_low, 1), largest_true(lambda x: ~is_high(x), 1)]
    return function, np.concatenate([knots, *ends, *(np.nextafter(end, np.inf) for end in ends)])


def falls_of(function: Callable[[Float64], Float64], knots: Float64) -> Float64 | None:
    """Pairs [n, 2] of a lower and a higher value such that the function has the higher one first; None if it never falls.

    If no split lies between the two of any pair, each is passed once: a place before has at most the value at the end of its
    piece, and one behind at least that at the start of its piece, and these ends are the floats beside the quantiles.
    """
    marks = np.unique(knots)
    places = np.unique(np.concatenate([np.nextafter(marks, -np.inf), marks, np.nextafter(marks, np.inf)]))
    values = function(places)
    highest = np.maximum.accumulate(values)
    falling = np.flatnonzero(values[1:] < highest[:-1])
    if not len(falling):
        return None
    return np.stack([values[1:][falling], highest[:-1][falling]], axis=1)


def power_function(step: Any, exponent: float, place: str) -> tuple[Function, Function]:
    """The transform of Yeo and Johnson (2000), as scikit-learn computes it, and a bound on its error.

    ModelError if the libraries that are here subtract 1 of a power, which leaves few digits of small numbers.
    """
    from scipy import stats

    def function(x: Float64) -> Float64:
        with np.errstate(all="ignore"):
            return np.asarray(stats.yeojohnson(np.asarray(x, np.float64), exponent), np.float64)

    small = np.array([2.0**-45])
    if hasattr(step, "_yeo_johnson_transform") or abs(stats.yeojohnson(small, 0.5)[0] / small[0] - 1) > 2.0**-40:
        message = "PowerTransformer subtracts 1 of a power, which leaves few digits of small numbers"
        raise ModelError(message, place=place, remedy="fit it with newer versions of scikit-learn and scipy")

    def error(x: Float64) -> Float64:
        # expm1(p log1p(x)) / p: an error of the logarithm is multiplied by the slope of the exponential.
        size, power = np.log1p(np.abs(x)), np.where(x < 0, 2 - exponent, exponent)
        with np.errstate(all="ignore"):
            plain = np.where(np.abs(power) < 1e-12, size, np.abs(np.expm1(power * size) / power))
            moved = np.exp(power * size) * size + plain
        return np.asarray(16 * _ULP * moved + _TINY, np.float64)

    return function, error


def normal_function(bound: float) -> tuple[Function, Function]:
    """Normal quantiles of levels in [0, 1], cut off at those of `bound` and 1 - `bound`, and a bound on their error."""
    from scipy import stats

    level = bound - np.spacing(1)
    low, high = stats.norm.ppf(level), stats.norm.ppf(1 - level)

    def function(x: Float64) -> Float64:
        return np.asarray(np.clip(stats.norm.ppf(np.clip(x, 0.0, 1.0)), low, high), np.float64)

    def error(x: Float64) -> Float64:
        return np.asarray(16 * _ULP * np.abs(function(x)) + _TINY, np.float64)

    return function, error


def thresholds_behind(
    rough: Rough, goes: Callable[[Float64], NDArray[np.bool_]], count: int, place: str, *, falls: bool
) -> Float64:
    """The last value that `before` may have for each of `count` splits "goes(after(function(value)))".

    If `before` itself `falls` by a last digit somewhere, every float is taken for one that it may have.

    ModelError for a split of which the floats around do not say so.
    """
    cut = largest_true(lambda y: goes(rough.after(y)), count)
    found = largest_true(lambda x: rough.function(x) <= cut, count)
    if (found[cut == -np.inf] > -np.inf).any():
        raise _refused(rough.name, "overflows", place)
    # What all values do is no question of their last digits.
    kept = np.isfinite(cut)
    unique, where = np.unique(cut[kept], return_inverse=True)
    places = np.full(len(unique), np.nan)
    places[where] = found[kept]
    below, above = _surely(rough, places, unique, -1), _surely(rough, places, unique, 1)
    if (np.isnan(below) | np.isnan(above)).any():
        raise _refused(rough.name, "is too flat for its last digits", place)
    ranks = _rank(below), _rank(above)
    for k, (first, last) in enumerate(zip(*ranks, strict=True)):
        for start in range(int(first), int(last) + 1, _AT_ONCE):
            tried = _float(np.arange(start, min(start + _AT_ONCE, int(last) + 1), dtype=np.int64))
            wrong = tried[(rough.function(tried) <= unique[k]) != (tried <= places[k])]
            # What no number becomes before this step does not matter.
            given = largest_true(lambda x, wrong=wrong: rough.before(x) <= wrong, len(wrong))  # type: ignore[misc]
            if len(wrong) and (falls or (rough.before(given) == wrong).any()):
                raise _refused(rough.name, "falls by its last digit", place)
    return found


def _surely(rough: Rough, places: Float64, cut: Float64, side: int) -> Float64:
    """A float on one side of each place from which on all are surely on it; NaN if none is near."""
    result = np.full(len(places), np.nan)
    for step in range(_FARTHEST + 1):
        todo = np.flatnonzero(np.isnan(result))
        if not len(todo):
            break
        x = _float(_rank(places[todo]) + side * (1 << step))
        with np.errstate(all="ignore"):
            beyond = side * (rough.function(x) - cut[todo]) > 2 * rough.error(x)
        result[todo[beyond]] = x[beyond]
    return result


def _rank(x: Float64) -> NDArray[np.int64]:
    """Floats by their order: 0 is 0, and both zeros are one."""
    bits = np.abs(x).view(np.int64)
    return np.where(x < 0, -bits, bits)


def _float(rank: NDArray[np.int64]) -> Float64:
    infinity = np.int64(0x7FF0_0000_0000_0000)
    kept = np.clip(rank, -infinity, infinity)
    return np.where(kept < 0, -np.abs(kept).view(np.float64), np.abs(kept).view(np.float64)) + 0.0


def _refused(name: str, why: str, place: str) -> ModelError:
    return ModelError(
        f"a split stands where {name} {why}",
        place=place,
        remedy="leave it out: trees do not need powers or quantiles; or use KBinsDiscretizer(encode='ordinal')",
    )
