"""Neighbours, outward rounding, dyadic integers and logarithm enclosures against slow exact arithmetic."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from treesens.compiler.base import dyadic, floats
from treesens.compiler.base.floats import NumberType

F32, F64 = NumberType.FLOAT32, NumberType.FLOAT64
types = pytest.mark.parametrize("kind", [F32, F64])
finite = st.floats(allow_nan=False, allow_infinity=False)
rationals = st.one_of(
    finite.map(Fraction),
    st.fractions(),
    st.tuples(finite, st.integers(-3, 3)).map(lambda p: Fraction(p[0]) + p[1] * Fraction(1, 2**1100)),
)


@types
def test_neighbours_of_zero_and_the_ends(kind: NumberType) -> None:
    assert floats.next_up(-0.0, kind) == floats.next_up(0.0, kind) == kind.tiny
    assert floats.next_down(0.0, kind) == -kind.tiny
    assert math.copysign(1.0, floats.next_up(-kind.tiny, kind)) == 1.0
    assert floats.next_up(kind.max, kind) == math.inf
    assert floats.next_down(-kind.max, kind) == -math.inf
    assert floats.next_down(math.inf, kind) == kind.max


@types
@given(x=rationals)
def test_ceil_is_the_smallest_value_above(kind: NumberType, x: Fraction) -> None:
    up, down = floats.ceil_to(x, kind), floats.floor_to(x, kind)
    assert kind.holds([up, down]).all()
    if math.isfinite(up):
        assert up >= x
        assert floats.next_down(up, kind) < x
        assert math.copysign(1.0, up) == 1.0 or up != 0
    else:
        assert x > kind.max
    if math.isfinite(down):
        assert down <= x
        assert floats.next_up(down, kind) > x
    else:
        assert x < -kind.max


@types
@given(xs=st.lists(finite, min_size=1))
def test_vectorised_rounding_agrees(kind: NumberType, xs: list[float]) -> None:
    assert floats.ceil_to_array(xs, kind).tolist() == [floats.ceil_to(Fraction(x), kind) for x in xs]
    assert floats.floor_to_array(xs, kind).tolist() == [floats.floor_to(Fraction(x), kind) for x in xs]


def test_a_decimal_that_rounds_twice_is_marked() -> None:
    # 1 + 2**-24 is halfway; a decimal just above it must go up, but its float64 sits on the halfway point.
    text = Fraction(1) + Fraction(1, 2**24) + Fraction(1, 2**80)
    wide = text.numerator / text.denominator
    narrow, unsure = floats.float32_of_decimals([wide, 0.1, 0.5])
    assert unsure.tolist() == [True, False, False]
    assert narrow[0] == 1.0
    assert floats.round_to_float32(text) == 1.0 + 2**-23


@given(x=st.floats(width=32, allow_nan=False, allow_infinity=False), n=st.integers(1, 17))
def test_rounding_a_decimal_text_once(x: float, n: int) -> None:
    text = f"{x:.{n}e}"
    narrow, unsure = floats.float32_of_decimals([float(text)])
    if not unsure[0]:
        assert narrow[0] == floats.round_to_float32(Fraction(text))


@given(values=st.lists(finite, min_size=1, max_size=8))
def test_scaled_integers_are_exact(values: list[float]) -> None:
    scaled = dyadic.to_scaled(values)
    assert scaled.fractions().tolist() == [Fraction(v) for v in values]
    total = sum(Fraction(v) for v in values)
    assert dyadic.exact_sum(scaled).fraction() == total
    if scaled.values.dtype == np.int64:
        assert sum(abs(int(v)) for v in scaled.values) < 2**62
    again = dyadic.fractions_to_scaled(np.array([Fraction(v) for v in values], dtype=object))
    assert again.fractions().tolist() == [Fraction(v) for v in values]


def test_small_sums_stay_in_int64_and_large_ones_do_not() -> None:
    assert dyadic.to_scaled([0.5, -0.25, 3.0]).values.dtype == np.int64
    assert dyadic.to_scaled([1e300, 1e-300]).values.dtype == object
    assert dyadic.to_scaled([2.0**61, 2.0**61]).values.dtype == object
    with pytest.raises(ValueError, match="finite"):
        dyadic.to_scaled([math.nan])
    with pytest.raises(ValueError, match="multiple"):
        dyadic.to_scaled([0.25], shift=1)


def test_adding_scaled_integers_widens_when_needed() -> None:
    big = dyadic.ScaledIntegers(np.array([2**61], dtype=np.int64), 0)
    assert (big + big).fraction(0) == 2**62
    assert (dyadic.to_scaled([0.5]) + dyadic.to_scaled([0.25])).fraction(0) == Fraction(3, 4)


@given(
    x=st.fractions(min_value=Fraction(1, 10**30), max_value=10**30).filter(lambda v: v > 0), bits=st.integers(1, 200)
)
def test_logarithm_is_enclosed(x: Fraction, bits: int) -> None:
    low, high = dyadic.ln_bounds(x, bits)
    assert high - low <= Fraction(1, 2**bits)
    fine_low, fine_high = dyadic.ln_bounds(x, 300)
    assert low <= fine_high
    assert fine_low <= high
    # Python's logarithm is off by a few units in the last place at most.
    slack = (
        Fraction(1, 2**45) * (1 + abs(Fraction(math.log(x.numerator)))) + Fraction(abs(math.log(x.denominator))) / 2**45
    )
    reference = Fraction(math.log(x.numerator)) - Fraction(math.log(x.denominator))
    assert low - slack <= reference <= high + slack


def test_known_logarithms() -> None:
    assert dyadic.ln_bounds(Fraction(1), 50) == (0, 0)
    low, high = dyadic.ln_bounds(Fraction(2), 180)
    known = Fraction(
        "0.693147180559945309417232121458176568075500134360255254120680009493393621969694715605863326996418687"
    )
    assert low <= known <= high
