"""Right-hand sides of score constraints: rationals, and symbolic logarithms of rationals.

For a logistic model `prob(P) >= c` is `margin(P) >= ln(c / (1 - c))`. This logarithm is irrational, and is enclosed as tightly
as a row's exact integers require; it is never rounded.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from treesens.compiler.base.dyadic import Unit, ln_bounds, nearest_double
from treesens.compiler.model.scores import clipped
from treesens.errors import InternalError


@dataclass(frozen=True)
class LogRational:
    """rational + sum of coefficient * ln(argument). Arguments are positive rationals other than 1, or positive irrational
    numbers of the same form.
    """

    rational: Fraction = Fraction(0)
    logs: tuple[tuple[Fraction, Fraction | LogRational], ...] = ()

    @staticmethod
    def ln(argument: Fraction | LogRational) -> LogRational:
        """ln(argument) for a positive number."""
        if isinstance(argument, LogRational) and not argument.logs:
            argument = argument.rational
        return LogRational() if argument == 1 else LogRational(Fraction(0), ((Fraction(1), argument),))

    def __neg__(self) -> LogRational:
        return self * Fraction(-1)

    def __mul__(self, factor: Fraction | int) -> LogRational:
        f = Fraction(factor)
        return LogRational(self.rational * f, tuple((c * f, a) for c, a in self.logs if f))

    def __add__(self, other: LogRational) -> LogRational:
        return LogRational(self.rational + other.rational, self.logs + other.logs)

    def enclose(self, bits: int) -> tuple[Fraction, Fraction]:
        """A rigorous enclosure whose width is about 2**-bits times the size of the coefficients."""
        low = high = self.rational
        for coefficient, argument in self.logs:
            a, b = _ln_enclosed(argument, bits)
            low += coefficient * (a if coefficient > 0 else b)
            high += coefficient * (b if coefficient > 0 else a)
        return low, high

    def ceil(self, shift: int, *, strict: bool = False) -> int:
        """The smallest integer n with n * 2**-shift >= this number (> if strict); the shift may be negative."""
        unit, bits = Unit(shift), max(shift, 0) + 64
        while True:
            down, up = (unit.floor(x) + 1 if strict else unit.ceil(x) for x in self.enclose(bits))
            if down == up:
                return down
            bits *= 2
            if bits > 1 << 16:
                raise InternalError("a logarithm could not be separated from a rational number")

    def __float__(self) -> float:
        low, high = self.enclose(80)
        return nearest_double((low + high) / 2)

    def __str__(self) -> str:
        parts = [str(self.rational)] if self.rational or not self.logs else []
        parts += [f"{'' if c == 1 else f'{c} * '}ln({a})" for c, a in self.logs]
        return " + ".join(parts)


def least_units(bound: LogRational, shift: int, *, strict: bool = False) -> int:
    """The least integer number of units 2**-shift with which a score satisfies a bound, clipped to the range of scores."""
    return clipped(bound.ceil(shift, strict=strict))


def _ln_enclosed(argument: Fraction | LogRational, bits: int) -> tuple[Fraction, Fraction]:
    """An enclosure of ln(argument), about 2**-bits wide: the logarithms of the ends of the argument's enclosure."""
    if isinstance(argument, Fraction):
        return ln_bounds(argument, bits)
    finer = bits
    while True:
        finer += 32
        low, high = argument.enclose(finer)
        if low > 0 and high - low <= low * Unit(bits).size:
            return ln_bounds(low, bits)[0], ln_bounds(high, bits)[1]
        if finer > 1 << 16:
            raise InternalError("the argument of a logarithm could not be separated from 0")
