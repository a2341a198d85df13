"""Rows in floating point: no solution of the exact row is lost, and no solver is given numbers of very different sizes."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from treesens.compiler.legalise.rounding import LARGEST_BITS, float_rows
from treesens.compiler.legalise.rows import RowBlock

SIZES = st.integers(0, 60).flatmap(lambda bits: st.integers(-(2**bits), 2**bits))


def a_block(coefficients: list[int], low: int | None, high: int | None, shift: int) -> RowBlock:
    count = len(coefficients)
    return RowBlock(
        "linear",
        np.array([0, count]),
        np.arange(count, dtype=np.int32),
        np.array(coefficients),
        np.array([low or 0]),
        np.array([high or 0]),
        np.array([low is not None]),
        np.array([high is not None]),
        shift,
    )


@given(st.lists(SIZES, min_size=1, max_size=6), st.none() | SIZES, st.none() | SIZES, st.integers(-20, 60))
def test_a_relaxed_row_keeps_every_solution(
    coefficients: list[int], low: int | None, high: int | None, shift: int
) -> None:
    rows = float_rows(a_block(coefficients, low, high, shift))
    exact_low, exact_high = low if low is not None else float("-inf"), high if high is not None else float("inf")
    for point in product((0, 1), repeat=len(coefficients)):
        if exact_low <= sum(c * x for c, x in zip(coefficients, point, strict=True)) <= exact_high:
            value = sum((Fraction(float(c)) * x for c, x in zip(rows.coefficients, point, strict=True)), Fraction(0))
            assert rows.low[0] <= value <= rows.high[0]


@given(st.lists(SIZES, min_size=1, max_size=6), SIZES, st.integers(-20, 60))
def test_a_relaxed_row_has_no_large_coefficient(coefficients: list[int], low: int, shift: int) -> None:
    rows = float_rows(a_block(coefficients, low, None, shift))
    # CBC called 8.0266 the optimum of rows up to 10**6 beside rows of 0 and 1, where 7.7952 is.
    assert not rows.relaxed or np.abs(rows.coefficients).max() <= 2**LARGEST_BITS
