"""Sums of shares at one input, and their signs.

A sigmoid, a class's share of a softmax and a class's share of a sum of calibrated scores all have the same form: N / D, where D
is a sum of positive members (powers of e, for instance), and N a linear form in the same members. Shares with equal D are added
up, and a multiple of D is taken out of N, which makes terms cancel: shares that add up to 1, equal shares of equal scores,
sigmoids of a score and of its negative. The sign of a sum that reduces to a rational number is exact; other signs are found by
enclosures of growing precision. A sum that equals its bound for any other reason remains undecided.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from treesens.compiler.base.dyadic import exp_bounds
from treesens.errors import UndecidedError

_MOST_BITS = 1 << 12
"""Maximum bits of an enclosure. Differences of scores have at most 2,200 bits."""

Ends = tuple[Fraction, Fraction]


class Member(ABC):
    """A positive number: a term of the sum D in a share N / D."""

    exponent: Fraction = Fraction(0)
    """An exponent such that the member may be divided by e**exponent; 0 if no such factor exists."""

    @abstractmethod
    def bounds(self, bits: int, less: Fraction) -> Ends:
        """An enclosure of the member divided by e**less."""


@dataclass(frozen=True)
class Power(Member):
    """e**exponent."""

    exponent: Fraction = Fraction(0)

    def bounds(self, bits: int, less: Fraction) -> Ends:
        left = self.exponent - less
        return exp_bounds(left, bits) if left >= -bits else (Fraction(0), Fraction(1, 1 << bits))


ONE = Power()


class Value:
    """`constant` + the sum of N / D. `shares` maps the members of each D, in a fixed order, to their coefficients in N."""

    def __init__(self) -> None:
        self.constant = Fraction(0)
        self.shares: dict[tuple[Member, ...], dict[Member, Fraction]] = {}

    def power_share(self, factor: Fraction, exponents: Sequence[Fraction]) -> None:
        """Adds factor / (1 + sum of e**exponent)."""
        top = max(Fraction(0), *exponents)
        below = sorted(v - top for v in (Fraction(0), *exponents))
        self.share([Power(v) for v in below], {Power(-top): factor})

    def share(self, members: Sequence[Member], factors: Mapping[Member, Fraction]) -> None:
        """Adds (sum of factor * member) / (sum of `members`); the last member is then eliminated from N."""
        found = self.shares.setdefault(tuple(members), {})
        for member, factor in factors.items():
            found[member] = found.get(member, Fraction(0)) + factor
        whole = found.get(members[-1], Fraction(0)) / members.count(members[-1])
        self.constant += whole
        left = {m: found.get(m, Fraction(0)) - whole * members.count(m) for m in dict.fromkeys((*members, *found))}
        self.shares[tuple(members)] = {m: factor for m, factor in left.items() if factor}
        if not self.shares[tuple(members)]:
            del self.shares[tuple(members)]

    @property
    def is_rational(self) -> bool:
        """True if only the constant is left."""
        return not self.shares

    def bounds(self, bits: int, less: Fraction = Fraction(0)) -> Ends:
        """An enclosure of the sum or, with `less` (which requires a constant of 0), of the sum divided by e**less."""
        low = high = self.constant
        for members, factors in self.shares.items():
            ends = [[factor * end for end in m.bounds(bits, less)] for m, factor in factors.items()]
            upper = sum(map(min, ends), Fraction(0)), sum(map(max, ends), Fraction(0))
            lower = [
                sum(side, Fraction(0)) for side in zip(*(m.bounds(bits, Fraction(0)) for m in members), strict=True)
            ]
            if lower[0] > 0:
                low, high = low + min(upper[0] / d for d in lower), high + max(upper[1] / d for d in lower)
            else:
                # N / D is a weighted mean of these coefficients.
                means = [factors.get(m, Fraction(0)) / members.count(m) for m in members]
                low, high = low + min(means), high + max(means)
        return low, high

    def sign(self) -> int:
        """The sign of the sum. Raises UndecidedError if the sum is so close to 0 that 0 cannot be excluded."""
        if self.is_rational:
            return (self.constant > 0) - (self.constant < 0)
        exponents = [m.exponent for factors in self.shares.values() for m in factors]
        less = max(exponents) if self.constant == 0 else Fraction(0)
        bits = 64
        while bits <= _MOST_BITS:
            low, high = self.bounds(bits, less)
            if low > 0 or high < 0:
                return 1 if low > 0 else -1
            bits *= 4
        raise UndecidedError(
            "a sum of probabilities is too close to its bound to be separated from it", remedy="use another bound"
        )


def share_bounds(exponent: Fraction, bits: int) -> Ends:
    """An enclosure of 1 / (1 + e**exponent)."""
    value = Value()
    value.power_share(Fraction(1), [exponent])
    return value.bounds(bits)
