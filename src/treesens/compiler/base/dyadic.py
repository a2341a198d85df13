"""Exact arithmetic on floats: every finite float is an integer times a power of two.

Arrays of floats become arrays of integers with one common shift: int64 if sums certainly fit, otherwise Python integers.
Natural logarithms, which turn probabilities into margins, are enclosed rigorously by rationals.

Scores are integer multiples of a `Unit`, a power of two. Every product with a power of two is computed here, and never in
floats. In Python, `2**-6` is a float, and so is its product with an exact number; such a product once caused a wrong `none`. No
other file contains a power of two with a variable exponent (tests/house/test_powers_of_two.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.base.arrays import FloatArray, IntegerArray
from treesens.compiler.base.floats import NumberType, ceil_to

# Sums of absolute values below this fit in int64 with room for one more addition.
_INT64_LIMIT = 2.0**62

INT64_SAFE = 1 << 62
"""Sums of integers below this bound fit in int64, with room for one more addition."""


@dataclass(frozen=True)
class ScaledIntegers:
    """Exact dyadic rationals of any array shape: the value is `values * 2**-shift`.

    `values` is int64 or an object array of Python integers; `shift` is not negative.
    """

    values: NDArray[Any]
    shift: int

    def __len__(self) -> int:
        return len(self.values)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    @property
    def step(self) -> Fraction:
        """The value of an integer unit."""
        return Fraction(1, 1 << self.shift)

    def __getitem__(self, index: Any) -> ScaledIntegers:
        """The same numbers, indexed like a numpy array."""
        return ScaledIntegers(np.asarray(self.values[index], dtype=self.values.dtype), self.shift)

    def fraction(self, *index: int) -> Fraction:
        """The number at an index as a Fraction; a scalar array needs no index."""
        return Fraction(int(self.values[index]), 1 << self.shift)

    def fractions(self) -> NDArray[Any]:
        """All numbers as Fractions: an object array of the same shape."""
        result = np.empty(self.values.shape, dtype=object)
        for index, value in np.ndenumerate(self.values):
            result[index] = Fraction(int(value), 1 << self.shift)
        return result

    def rescaled(self, shift: int) -> ScaledIntegers:
        """The same numbers with a larger shift."""
        if shift < self.shift:
            raise ValueError(f"cannot lower a shift from {self.shift} to {shift} exactly")
        if shift == self.shift:
            return self
        wide = self.values.astype(object) * (1 << (shift - self.shift))
        return ScaledIntegers(_narrowed(wide), shift)

    def sum(self, axis: int | tuple[int, ...] | None = None) -> ScaledIntegers:
        """Exact sum over one or more axes."""
        return exact_sum(self, axis)

    def __add__(self, other: ScaledIntegers) -> ScaledIntegers:
        """Exact elementwise sum, broadcasting."""
        shift = max(self.shift, other.shift)
        a, b = self.rescaled(shift).values, other.rescaled(shift).values
        if object in (a.dtype, b.dtype) or _largest(a) + _largest(b) >= _INT64_LIMIT:
            return ScaledIntegers(np.asarray(a.astype(object) + b.astype(object), dtype=object), shift)
        return ScaledIntegers(a + b, shift)


def _largest(values: NDArray[Any]) -> float:
    return float(np.abs(values.astype(np.float64)).max(initial=0.0))


def largest_magnitude(values: NDArray[Any]) -> int:
    """The greatest absolute value among integers, exact; 0 for an empty array."""
    return max(abs(int(values.max())), abs(int(values.min()))) if values.size else 0


def exact_product(values: NDArray[Any], factor: int) -> NDArray[Any]:
    """Integers (int64 or Python) times one integer: int64 if every product is below 2**62, Python integers otherwise.

    numpy itself overflows silently, and fails for a factor beyond int64 even if all values are 0.
    """
    size = largest_magnitude(values)
    if factor == 1 or size == 0:
        return values
    if values.dtype != object and size * abs(factor) < INT64_SAFE:
        product: NDArray[Any] = values * factor
        return product
    return np.asarray(values.astype(object) * factor, dtype=object)


def _narrowed(values: NDArray[Any]) -> NDArray[Any]:
    """int64 if the sum of absolute values is below 2**62, otherwise Python integers."""
    total = sum(abs(int(v)) for v in values.ravel())
    return values.astype(np.int64) if total < 1 << 62 else values


def split_floats(values: object) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Odd integer (or 0) and exponent of each finite float: value == integer * 2**exponent; same shape as `values`."""
    array = np.asarray(values, dtype=np.float64)
    if not np.isfinite(array).all():
        raise ValueError("only finite floats have an exact value")
    mantissa, exponent = np.frexp(array)
    integer = np.ldexp(mantissa, 53).astype(np.int64)
    low = integer & -integer  # lowest set bit
    zeros = np.where(integer == 0, 0, np.frexp(low.astype(np.float64))[1] - 1)
    odd = integer >> zeros
    return odd, np.where(integer == 0, 0, exponent.astype(np.int64) - 53 + zeros)


def to_scaled(values: object, shift: int | None = None) -> ScaledIntegers:
    """Floats as exact integers with one shift; int64 if the sum of absolute values is below 2**62.

    By default, `shift` is the smallest shift that is exact. Raises ValueError if a float is not finite, or not a multiple of
    2**-shift.
    """
    array = np.asarray(values, dtype=np.float64)
    odd, exponent = split_floats(array)
    needed = int(np.maximum(-exponent, 0).max(initial=0))
    if shift is None:
        shift = needed
    elif needed > shift:
        raise ValueError(f"a value is not a multiple of 2**-{shift}, but needs shift {needed}")
    with np.errstate(over="ignore"):
        total = float(np.ldexp(np.abs(array), shift).sum())
    # The margin covers the rounding of the float sum: results in int64 certainly fit.
    if total < _INT64_LIMIT * (1 - 1e-6):
        return ScaledIntegers(odd << (exponent + shift) if array.size else odd, shift)
    exact = np.empty(array.shape, dtype=object)
    for index, value in np.ndenumerate(odd):
        exact[index] = int(value) << (int(exponent[index]) + shift)
    return ScaledIntegers(_narrowed(exact), shift)


def fractions_to_scaled(values: object) -> ScaledIntegers:
    """Dyadic Fractions (any array shape) as exact integers with the smallest shift. Raises ValueError for other Fractions."""
    array = np.asarray(values, dtype=object)
    shift = 0
    for value in array.ravel():
        denominator = Fraction(value).denominator
        if denominator & (denominator - 1):
            raise ValueError(f"{value} is not a dyadic rational")
        shift = max(shift, denominator.bit_length() - 1)
    exact = np.empty(array.shape, dtype=object)
    for index, value in np.ndenumerate(array):
        exact[index] = int(Fraction(value) * (1 << shift))
    return ScaledIntegers(_narrowed(exact), shift)


def exact_sum(numbers: ScaledIntegers, axis: int | tuple[int, ...] | None = None) -> ScaledIntegers:
    """Exact sum over one or more axes (all by default); falls back to Python integers if int64 might overflow."""
    values = numbers.values
    if values.dtype != object:
        bound = np.abs(values.astype(np.float64)).sum(axis=axis).max(initial=0.0)
        if bound >= _INT64_LIMIT * (1 - 1e-6):
            values = values.astype(object)
    total = values.sum(axis=axis)
    return ScaledIntegers(np.asarray(total, dtype=values.dtype), numbers.shift)


@lru_cache(maxsize=256)
def ln_bounds(x: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    """Rationals (lower, upper) around the natural logarithm of x > 0, at most 2**-bits apart; equal for x == 1.

    x = 2**k * m with m in [2/3, 4/3]; ln m = 2 artanh((m - 1) / (m + 1)) by its power series in fixed point, every step
    rounded outwards and the tail bounded by a geometric series.
    """
    x = Fraction(x)
    if x <= 0:
        raise ValueError(f"the logarithm of {x} does not exist")
    k = x.numerator.bit_length() - x.denominator.bit_length()
    m = x / Fraction(2) ** k  # in (1/2, 2)
    if m > Fraction(4, 3):
        m, k = m / 2, k + 1
    elif m < Fraction(2, 3):
        m, k = m * 2, k - 1
    guard = 16 + abs(k).bit_length()
    while True:
        places = bits + guard
        t = (m - 1) / (m + 1)
        low, high = _artanh_bounds(abs(t), places)
        if t < 0:
            low, high = -high, -low
        two_low, two_high = _artanh_bounds(Fraction(1, 3), places)
        lower = low + (k * two_low if k >= 0 else k * two_high)
        upper = high + (k * two_high if k >= 0 else k * two_low)
        scale = Fraction(2, 1 << places)
        if upper - lower <= (1 << (places - bits - 1)) or guard > 4096:
            return lower * scale, upper * scale
        guard *= 2


def _artanh_bounds(t: Fraction, places: int) -> tuple[int, int]:
    """Integers (lower, upper) around artanh(t) * 2**places for 0 <= t <= 1/3."""
    one = 1 << places
    t_low = t.numerator * one // t.denominator
    t_high = -(-t.numerator * one // t.denominator)
    low = high = 0
    power_low, power_high, odd = t_low, t_high, 1
    square_low = t_low * t_low >> places
    square_high = -(-(t_high * t_high) >> places)
    while power_high > 1:
        low += power_low // odd
        high += -(-power_high // odd)
        power_low = power_low * square_low >> places
        power_high = -(-(power_high * square_high) >> places)
        odd += 2
    # Tail: sum over i >= 0 of t**(odd + 2i) / (odd + 2i) <= t**odd / (odd (1 - t**2)) <= t**odd * 9/8 for t <= 1/3.
    return low, high + (0 if t_high == 0 else power_high + power_high // 8 + 1)


@lru_cache(maxsize=1024)
def exp_bounds(x: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    """Rationals (lower, upper) around e**x, at most about 2**-bits * e**x apart; equal for x == 0.

    e**x = (e**(x / 2**s))**(2**s) with x / 2**s below 2**-8: a power series in fixed point and s squarings, rounded outwards.
    """
    if x == 0:
        return Fraction(1), Fraction(1)
    if x < 0:
        low, high = exp_bounds(-x, bits + 2)
        return 1 / high, 1 / low
    halvings = (int(x) + 1).bit_length() + 8
    places = bits + 2 * halvings + 32
    one = 1 << places
    y = x * one / (1 << halvings)
    y_low, y_high = y.__floor__(), -((-y).__floor__())
    least = most = term_low = term_high = one
    n = 1
    while term_high > 1:
        term_low = (term_low * y_low >> places) // n
        scaled = -((-term_high * y_high) >> places)
        term_high = -(-scaled // n)
        least, most, n = least + term_low, most + term_high, n + 1
    most += 2  # the rest of the series is below its last term
    for _ in range(halvings):
        least, most = least * least >> places, -(-(most * most) >> places)
    return Fraction(least, one), Fraction(most, one)


@dataclass(frozen=True)
class Unit:
    """2**-shift, for an integer shift of either sign: the value of n units is n * 2**-shift."""

    shift: int

    @property
    def size(self) -> Fraction:
        """The value of one unit."""
        return Fraction(1, 1 << self.shift) if self.shift >= 0 else Fraction(1 << -self.shift)

    def value(self, units: int) -> Fraction:
        """The exact value of an integer number of these units."""
        if self.shift >= 0:
            return Fraction(int(units), 1 << self.shift)
        return Fraction(int(units) << -self.shift)

    def count(self, value: Fraction | int) -> Fraction:
        """The number of units in a value; an integer if and only if the value is a multiple of the unit."""
        return Fraction(value) / self.size

    def floor(self, value: Fraction | int) -> int:
        """The greatest n with n units <= value."""
        # Integer arithmetic, because this runs for every cell of a table, and dividing fractions takes ten times as long.
        up, down = max(0, self.shift), max(0, -self.shift)
        return (int(value.numerator) << up) // (int(value.denominator) << down)

    def ceil(self, value: Fraction | int) -> int:
        """The least n with n units >= value."""
        up, down = max(0, self.shift), max(0, -self.shift)
        return -((-int(value.numerator) << up) // (int(value.denominator) << down))

    def nearest(self, units: int) -> float:
        """The double nearest to a number of units; infinite on overflow."""
        return nearest_double(self.value(units))

    def above(self, units: int) -> float:
        """The least double that is at least a number of units; infinite on overflow."""
        return ceil_to(self.value(units), NumberType.FLOAT64)

    def counts(self, values: FloatArray) -> FloatArray:
        """Doubles converted to units, same shape: exact if all results are finite and none is below 2**-1022."""
        with np.errstate(over="ignore"):
            return np.ldexp(values, self.shift)

    def doubles(self, values: IntegerArray) -> FloatArray:
        """Numbers of units converted to doubles, same shape; correctly rounded below 2**53 and for Python integers."""
        try:
            whole = values.astype(np.float64)
        except OverflowError:
            return self._each(values.ravel()).reshape(values.shape)
        with np.errstate(over="ignore"):
            found = np.ldexp(whole, -self.shift)
        if values.dtype == object:
            # Subnormal results would be rounded twice.
            tiny = (np.abs(found) < np.finfo(np.float64).smallest_normal) & (whole != 0)
            found[tiny] = self._each(values[tiny])
        return found

    def _each(self, values: IntegerArray) -> FloatArray:
        return np.array([self.nearest(v) for v in values.tolist()], np.float64)


def in_finer_units(values: IntegerArray, bits: int) -> IntegerArray:
    """Numbers of units converted to units that are smaller by the factor 2**bits, same shape; the results must fit."""
    return values << bits


def nearest_double(value: Fraction) -> float:
    """The nearest double; infinite with the right sign on overflow."""
    try:
        return float(value)
    except OverflowError:
        return inf if value > 0 else -inf
