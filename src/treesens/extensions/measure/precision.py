"""The precision at which the search for a share may stop."""

from __future__ import annotations

from dataclasses import dataclass

EPSILON = 0.05
DELTA = 1e-6
NEGLIGIBLE = 1e-6


@dataclass(frozen=True)
class Precision:
    """The required precision: a relative error of `epsilon` with probability 1 - `delta`, or a share of up to `negligible`."""

    epsilon: float = EPSILON
    delta: float = DELTA
    negligible: float = NEGLIGIBLE

    def reached(self, low: float, high: float) -> bool:
        """True if the interval is negligible, or if some value is within a relative error of epsilon of all its points."""
        return high <= self.negligible or high - low <= self.epsilon * (high + low)
