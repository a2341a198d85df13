"""The unit in which a score is a whole number: every product with a power of two is formed here, and none of them in floats.

In Python `2**-6` is a float, and so is every exact number that it is multiplied with. A wrong `none` came of that. Nothing
outside of this file writes a power of two with an exponent that is not known (tests/house/test_powers_of_two.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import inf

import numpy as np

from treesens.compiler.base.arrays import FloatArray, IntegerArray
from treesens.compiler.base.floats import NumberType, ceil_to


@dataclass(frozen=True)
class Unit:
    """2**-shift, for an integer shift of either sign: the value of n units is n * 2**-shift."""

    shift: int

    @property
    def size(self) -> Fraction:
        """The value of one unit."""
        return Fraction(1, 1 << self.shift) if self.shift >= 0 else Fraction(1 << -self.shift)

    def value(self, units: int) -> Fraction:
        """The exact value of a whole number of units."""
        if self.shift >= 0:
            return Fraction(int(units), 1 << self.shift)
        return Fraction(int(units) << -self.shift)

    def count(self, value: Fraction | int) -> Fraction:
        """How many units a value has; whole only if it is a multiple of the unit."""
        return Fraction(value) / self.size

    def floor(self, value: Fraction | int) -> int:
        """The greatest n with n units <= value."""
        # In whole numbers: this is asked for every cell of a table, and a division of fractions takes ten times as long.
        up, down = max(0, self.shift), max(0, -self.shift)
        return (int(value.numerator) << up) // (int(value.denominator) << down)

    def ceil(self, value: Fraction | int) -> int:
        """The least n with n units >= value."""
        up, down = max(0, self.shift), max(0, -self.shift)
        return -((-int(value.numerator) << up) // (int(value.denominator) << down))

    def nearest(self, units: int) -> float:
        """The double nearest to a number of units; infinite beyond the largest one."""
        return nearest_double(self.value(units))

    def above(self, units: int) -> float:
        """The least double that is no less than a number of units; infinite beyond the largest one."""
        return ceil_to(self.value(units), NumberType.FLOAT64)

    def counts(self, values: FloatArray) -> FloatArray:
        """How many units doubles have, same shape: exact as long as the results are neither infinite nor below 2**-1022."""
        with np.errstate(over="ignore"):
            return np.ldexp(values, self.shift)

    def doubles(self, values: IntegerArray) -> FloatArray:
        """Numbers of units as doubles, same shape. They are the nearest if the numbers are below 2**53, or Python integers."""
        try:
            whole = values.astype(np.float64)
        except OverflowError:
            return self._each(values.ravel()).reshape(values.shape)
        with np.errstate(over="ignore"):
            found = np.ldexp(whole, -self.shift)
        if values.dtype == object:
            # What is below the normal numbers would be rounded twice.
            tiny = (np.abs(found) < np.finfo(np.float64).smallest_normal) & (whole != 0)
            found[tiny] = self._each(values[tiny])
        return found

    def _each(self, values: IntegerArray) -> FloatArray:
        return np.array([self.nearest(v) for v in values.tolist()], np.float64)


def in_finer_units(values: IntegerArray, bits: int) -> IntegerArray:
    """Numbers of units as numbers of units that are 2**bits times smaller, same shape; the results have to fit."""
    return values << bits


def nearest_double(value: Fraction) -> float:
    """The nearest double, of either sign infinite beyond the largest one."""
    try:
        return float(value)
    except OverflowError:
        return inf if value > 0 else -inf
