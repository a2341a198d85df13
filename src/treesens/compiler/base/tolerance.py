"""How near the bound of an optimum has to be to its value, and what is said of one that is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import ulp

RELATIVE = 1e-6
"""Part of the value that a bound may be away, unless something else is asked for."""

_ROUNDING = 4
"""Units in the last place: a value and its bound are exact numbers that were rounded to float64, perhaps as roots."""


class Closeness(StrEnum):
    """What is proved of an optimum. Only the first word means that nothing is better than the value."""

    OPTIMAL = "optimal"
    WITHIN = "within tolerance"
    OPEN = "open"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Tolerance:
    """A bound is close enough at most `relative` of the value, or `absolute` in the units of the value, away from it."""

    relative: float = RELATIVE
    absolute: float = 0.0

    @property
    def is_exact(self) -> bool:
        return self.relative == 0.0 and self.absolute == 0.0

    def closeness(self, value: float, bound: float | None) -> Closeness:
        """What a value and its bound (None: nothing is proved) amount to."""
        if bound is None:
            return Closeness.OPEN
        gap = abs(bound - value)
        if gap <= _ROUNDING * ulp(value):
            return Closeness.OPTIMAL
        return Closeness.WITHIN if gap <= max(self.relative * abs(value), self.absolute) else Closeness.OPEN

    def words(self) -> str:
        """For people: `1e-06`, `1e-06 or 0.001 absolute`."""
        parts = [f"{self.relative:g}"] if self.relative or not self.absolute else []
        return " or ".join(parts + ([f"{self.absolute:g} absolute"] if self.absolute else []))

    def record(self) -> dict[str, float]:
        """For JSON."""
        return {"relative": self.relative, "absolute": self.absolute}


USUAL = Tolerance()
EXACT = Tolerance(0.0)
"""To the last unit."""
