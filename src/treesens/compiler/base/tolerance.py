"""The tolerance of an optimum: the allowed distance of its bound from its value, and the resulting status."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import ulp

RELATIVE = 1e-6
"""Default relative distance of a bound from its value."""

_ROUNDING = 4
"""Units in the last place: a value and its bound are exact numbers that were rounded to float64, perhaps as roots."""


class Closeness(StrEnum):
    """The status of an optimum. Only the first word means that no better value exists."""

    OPTIMAL = "optimal"
    WITHIN = "within tolerance"
    OPEN = "open"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Tolerance:
    """A bound is close enough if it is at most `relative` of the value, or `absolute` in units of the value, away from it."""

    relative: float = RELATIVE
    absolute: float = 0.0

    @property
    def is_exact(self) -> bool:
        return self.relative == 0.0 and self.absolute == 0.0

    def closeness(self, value: float, bound: float | None) -> Closeness:
        """The status of a value and its bound (None: nothing is proved)."""
        if bound is None:
            return Closeness.OPEN
        gap = abs(bound - value)
        if gap <= _ROUNDING * ulp(value):
            return Closeness.OPTIMAL
        return Closeness.WITHIN if gap <= max(self.relative * abs(value), self.absolute) else Closeness.OPEN

    def words(self) -> str:
        """For display: `1e-06`, `1e-06 or 0.001 absolute`."""
        parts = [f"{self.relative:g}"] if self.relative or not self.absolute else []
        return " or ".join(parts + ([f"{self.absolute:g} absolute"] if self.absolute else []))

    def record(self) -> dict[str, float]:
        """For JSON."""
        return {"relative": self.relative, "absolute": self.absolute}


USUAL = Tolerance()
EXACT = Tolerance(0.0)
"""Zero tolerance."""
