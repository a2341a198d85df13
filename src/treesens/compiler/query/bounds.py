"""Right-hand sides of score constraints: rationals, and logarithms of rationals kept symbolic until they are needed.

`prob(P) >= c` for a logistic model is `margin(P) >= ln(c / (1 - c))`, which is irrational: it is never rounded, only enclosed
as tightly as the exact integers of a row require.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

from treesens.compiler.base.dyadic import ln_bounds
from treesens.errors import InternalError


@dataclass(frozen=True)
class LogRational:
    """rational + sum of coefficient * ln(argument); arguments are positive rationals other than 1."""

    rational: Fraction = Fraction(0)
    logs: tuple[tuple[Fraction, Fraction], ...] = ()

    @staticmethod
    def ln(argument: Fraction) -> LogRational:
        """ln(argument) for a positive rational."""
        return LogRational() if argument == 1 else LogRational(Fraction(0), ((Fraction(1), argument),))

    def __neg__(self) -> LogRational:
        return self * Fraction(-1)

    def __mul__(self, factor: Fraction | int) -> LogRational:
        f = Fraction(factor)
        return LogRational(self.rational * f, tuple((c * f, a) for c, a in self.logs if f))

    def __add__(self, other: LogRational) -> LogRational:
        return LogRational(self.rational + other.rational, self.logs + other.logs)

    def enclose(self, bits: int) -> tuple[Fraction, Fraction]:
        """A rigorous enclosure of width at most about 2**-bits times the size of the coefficients."""
        low = high = self.rational
        for coefficient, argument in self.logs:
            a, b = ln_bounds(argument, bits)
            low += coefficient * (a if coefficient > 0 else b)
            high += coefficient * (b if coefficient > 0 else a)
        return low, high

    def ceil(self, shift: int, *, strict: bool = False) -> int:
        """The smallest integer n with n * 2**-shift >= bound (> bound if strict)."""
        bits = shift + 64
        while True:
            low, high = (x * 2**shift for x in self.enclose(bits))
            down, up = (floor(x) + 1 if strict else ceil(x) for x in (low, high))
            if down == up:
                return int(down)
            bits *= 2
            if bits > 1 << 16:
                raise InternalError("a logarithm could not be told from a rational number")

    def __float__(self) -> float:
        low, high = self.enclose(80)
        return float((low + high) / 2)

    def __str__(self) -> str:
        parts = [str(self.rational)] if self.rational or not self.logs else []
        parts += [f"{'' if c == 1 else f'{c} * '}ln({a})" for c, a in self.logs]
        return " + ".join(parts)
