"""Enclosures of powers of e, against 120 decimals."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from treesens.compiler.base.dyadic import exp_bounds


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
