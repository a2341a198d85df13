"""The tolerance of an optimum: the allowed distance between its bound and its value, and the resulting status."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import ulp

RELATIVE = 1e-6
"""The default for the allowed relative distance between bound and value."""

_ROUNDING = 4
"""A few units in the last place, because a value and its bound are exact numbers (or their roots) rounded to float64."""


class Closeness(StrEnum):
    """The status of an optimum. Only OPTIMAL means that no better value exists."""

    OPTIMAL = "optimal"
    WITHIN = "within tolerance"
    OPEN = "open"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Tolerance:
    """A bound is close enough if its distance from the value is at most `relative` * |value|, or at most `absolute`."""

    relative: float = RELATIVE
    absolute: float = 0.0

    @property
    def is_exact(self) -> bool:
        return self.relative == 0.0 and self.absolute == 0.0

    def closeness(self, value: float, bound: float | None) -> Closeness:
        """The status of a value with this bound; the bound is None if nothing is proved."""
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
        """The tolerance as JSON."""
        return {"relative": self.relative, "absolute": self.absolute}


USUAL = Tolerance()
EXACT = Tolerance(0.0)
"""Zero tolerance."""
