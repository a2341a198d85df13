"""Sums of rational powers of e with rational coefficients: products, and signs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TypeAlias

from treesens.compiler.base.dyadic import exp_bounds
from treesens.errors import UndecidedError

Powers: TypeAlias = dict[Fraction, Fraction]
"""Non-zero coefficients by power of e."""

MOST_BITS = 1 << 14
"""Maximum bits of an enclosure. Differences of scores have at most 2,200, and few of them are multiplied."""
ASK_OTHERWISE = "ask with another bound"


def added(one: Mapping[Fraction, Fraction], other: Mapping[Fraction, Fraction]) -> Powers:
    """The sum of two sums of powers."""
    total = dict(one)
    for power, factor in other.items():
        total[power] = total.get(power, Fraction(0)) + factor
    return {power: factor for power, factor in total.items() if factor}


def multiplied(sums: Sequence[Mapping[Fraction, Fraction]]) -> Powers:
    """The product of sums of powers."""
    total = {Fraction(0): Fraction(1)}
    for factors in sums:
        product: Powers = {}
        for one, a in total.items():
            for other, b in factors.items():
                product[one + other] = product.get(one + other, Fraction(0)) + a * b
        total = {power: factor for power, factor in product.items() if factor}
    return total


def sign_of(powers: Mapping[Fraction, Fraction]) -> int:
    """The sign of a sum of powers: only the empty one is 0 (Lindemann). UndecidedError if it is too close to 0."""
    if not powers:
        return 0
    top = max(powers)
    bits = 64
    while bits <= MOST_BITS:
        low = high = Fraction(0)
        for power, factor in powers.items():
            near = power - top >= -bits
            ends = exp_bounds(power - top, bits) if near else (Fraction(0), Fraction(1, 1 << bits))
            one, other = (factor * end for end in ends)
            low, high = low + min(one, other), high + max(one, other)
        if low > 0 or high < 0:
            return 1 if low > 0 else -1
        bits *= 4
    raise UndecidedError("a sum of powers of e is too close to 0 to be separated from it", remedy=ASK_OTHERWISE)
