"""Levels of `QuantileTransformer`, its uniform output: a piecewise linear function, computed in floats, and where it may fall.

Between two neighbouring quantiles all that the library computes is differences, products with a slope that is not negative, and
sums, each of which is rounded in order. So its result never falls there, and only at a quantile itself can its last digit.
These places are looked at, float by float.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.base.bisection import largest_true
from treesens.errors import ModelError

Float64 = NDArray[np.float64]


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
