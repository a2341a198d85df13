"""The precision that a share needs."""

from __future__ import annotations

from dataclasses import dataclass

EPSILON = 0.05
DELTA = 1e-6
NEGLIGIBLE = 1e-6


@dataclass(frozen=True)
class Precision:
    """Sufficient precision: a relative error of `epsilon` with probability 1 - `delta`, or a share of at most `negligible`."""

    epsilon: float = EPSILON
    delta: float = DELTA
    negligible: float = NEGLIGIBLE

    def reached(self, low: float, high: float) -> bool:
        """True if some value is within epsilon of every point of an interval."""
        return high <= self.negligible or high - low <= self.epsilon * (high + low)
