"""A unit counts exactly: against division of fractions, by its definition."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor, inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from treesens.compiler.base.dyadic import Unit


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
