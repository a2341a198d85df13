"""Enclosures of powers of e, against 120 decimals.

A unit counts exactly: against division of fractions, by its definition.
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from math import ceil, floor, inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from treesens.compiler.base.dyadic import Unit, exp_bounds


@pytest.mark.parametrize("bits", [4, 30, 64, 300])
def test_powers_of_e_are_enclosed(bits: int) -> None:
    random = np.random.default_rng(bits)
    numbers = [*random.normal(0, 1, 40), *random.uniform(-700, 700, 40), 1e-300, -1e-9, 1.0, -4096.0]
    with localcontext(prec=200):
        for x in map(Fraction, map(float, numbers)):
            low, high = exp_bounds(x, bits)
            exact = (Decimal(x.numerator) / x.denominator).exp()
            assert Decimal(low.numerator) / low.denominator <= exact <= Decimal(high.numerator) / high.denominator
            assert (high - low) * 2**bits <= high


def test_the_power_of_zero_is_one() -> None:
    assert exp_bounds(Fraction(0), 1) == (1, 1)


@given(st.integers(-80, 80), st.fractions(max_denominator=10**12) | st.integers(-(10**30), 10**30))
def test_floor_and_ceil_are_those_of_the_exact_quotient(shift: int, value: Fraction | int) -> None:
    exact = Fraction(value) / Fraction(2) ** -shift
    assert Unit(shift).floor(value) == floor(exact)
    assert Unit(shift).ceil(value) == ceil(exact)


@given(st.integers(-80, 80), st.integers(-(2**80), 2**80))
def test_a_value_is_so_many_units(shift: int, units: int) -> None:
    assert Unit(shift).value(units) == units * Fraction(2) ** -shift


@pytest.mark.parametrize("value", [2**62, -(2**62)])
def test_integers_of_numpy_do_not_overflow(value: int) -> None:
    assert Unit(8).floor(np.int64(value)) == value << 8
    assert Unit(8).ceil(np.int64(value)) == value << 8
    assert Unit(8).value(np.int64(value)) == Fraction(value, 256)


@given(st.integers(-900, 1200), st.lists(st.integers(-(2**130), 2**130) | st.integers(-(2**1030), 2**1030), max_size=4))
def test_doubles_of_python_integers_are_the_nearest(shift: int, units: list[int]) -> None:
    """Also below the normal numbers, and beyond the largest one: Python divides whole numbers exactly, and rounds once."""
    known = []
    for number in units:
        try:
            known.append(number / 2**shift if shift >= 0 else float(number * 2**-shift))
        except OverflowError:
            known.append(inf if number > 0 else -inf)
    assert Unit(shift).doubles(np.array(units, dtype=object)).tolist() == known
