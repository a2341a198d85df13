"""Thresholds behind monotone functions, found by bisection over the floats, with the arithmetic of the library."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Float64 = NDArray[np.float64]
# Floats by their rank: 0 is 0, this is infinity; negative floats have the negative rank.
_INFINITY = np.int64(0x7FF0_0000_0000_0000)


def largest_true(holds: Callable[[Float64], NDArray[np.bool_]], count: int) -> Float64:
    """For `count` predicates at once, each true up to some float: that float (-infinity if there is none)."""
    low, high = np.full(count, -_INFINITY), np.full(count, _INFINITY)
    while (low < high).any():
        # Half of the sum, rounded up, without its overflow.
        middle = (low >> 1) + (high >> 1) + (((low & 1) + (high & 1) + 1) >> 1)
        with np.errstate(over="ignore", invalid="ignore"):
            true = holds(_float(middle))
        low, high = np.where(true, middle, low), np.where(true, high, np.maximum(middle - 1, low))
    return _float(low)


def _float(rank: NDArray[np.int64]) -> Float64:
    return np.where(rank < 0, -np.abs(rank).view(np.float64), np.abs(rank).view(np.float64)) + 0.0
