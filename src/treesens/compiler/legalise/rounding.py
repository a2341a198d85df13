"""Outward rounding of integer rows: what a solver is given must not lose a solution (docs/semantics.md).

Source: sum c_i x_i >= b with exact integers over 0/1 variables. Target, for a divisor 2**d:

    relax:     sum ceil(c_i / 2**d) x_i >= ceil(b / 2**d)
    restrict:  sum floor(c_i / 2**d) x_i >= ceil(b / 2**d)

Relaxing keeps every solution, because sum ceil(c_i / 2**d) x_i >= sum c_i x_i / 2**d >= b / 2**d and the left side is whole.
Restricting adds none. With d = 0 both are the row itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from treesens.compiler.base.arrays import IntegerArray


@dataclass(frozen=True)
class Rounded:
    """Coefficients and bound divided by 2**dropped, and whether anything was lost."""

    coefficients: IntegerArray
    bound: int
    dropped: int

    @property
    def exact(self) -> bool:
        return self.dropped == 0


def floor_shift(values: IntegerArray, bits: int) -> IntegerArray:
    """floor(values / 2**bits) for integers of any size."""
    if values.dtype == object:
        return np.array([int(v) >> bits for v in values], dtype=object)
    shifted: IntegerArray = values >> min(bits, 63)
    return shifted


def total(values: IntegerArray) -> int:
    """Exact sum of absolute values."""
    if values.dtype == object:
        return sum(abs(int(v)) for v in values)
    return int(np.abs(values).sum()) if len(values) else 0


def round_row(coefficients: IntegerArray, bound: int, *, bits: int, relax: bool = True, at_least: int = 0) -> Rounded:
    """The row >= with a sum of absolute coefficients (and a bound) below about 2**bits; exact if it fits.

    `at_least` bits are dropped anyway: for rows that are to keep one unit.
    """
    dropped = max(at_least, bits_beyond(coefficients, bound, bits), 0)
    if dropped == 0:
        return Rounded(_narrow(coefficients), bound, 0)
    shrunk = -floor_shift(-coefficients, dropped) if relax else floor_shift(coefficients, dropped)
    return Rounded(_narrow(shrunk), -((-bound) >> dropped), dropped)


def bits_beyond(coefficients: IntegerArray, bound: int, bits: int) -> int:
    """How many bits a row has too many; below 0 it has room for so many more."""
    return max(total(coefficients), abs(bound)).bit_length() - bits


def _narrow(values: IntegerArray) -> IntegerArray:
    return values.astype(np.int64) if values.dtype == object and total(values) < 2**62 else values
