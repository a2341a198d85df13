"""Tables of attainable sums, and Pareto-optimal sums of parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd

import numpy as np

from treesens.compiler.base.arrays import Int32Array, Int64Array

MOST_BITS = 1 << 23
"""Maximum number of sums in a table; such a table takes a million bytes per part."""
MOST_FRONT = 4096
"""Maximum number of Pareto-optimal pairs of sums that are combined with the table."""
_MOST_GROWN = 1 << 22
"""Maximum number of pairs of sums from which the Pareto-optimal pairs are selected."""


def front_of(parts: Sequence[Int64Array], rows: int) -> tuple[Int64Array, Int32Array] | None:
    """The Pareto-optimal sums that parts attain in one or two rows.

    Returns the sums, int64[n, rows], with the choice for each part, int32[n, parts]; None if there are too many sums.
    """
    sums, choices = np.zeros((1, rows), np.int64), np.zeros((1, 0), np.int32)
    for part in parts:
        own = _undominated(part)
        if len(sums) * len(own) > _MOST_GROWN:
            return None
        grown = (sums[:, None, :] + part[own][None, :, :]).reshape(-1, rows)
        kept = _undominated(grown)
        if len(kept) > MOST_FRONT:
            return None
        added = own[kept % len(own)].astype(np.int32)
        sums, choices = grown[kept], np.column_stack((choices[kept // len(own)], added))
    return sums, choices


def _undominated(sums: Int64Array) -> Int64Array:
    """The indices of the rows whose last column exceeds that of all earlier rows, in descending order of the first column."""
    order = np.lexsort((-sums[:, -1], -sums[:, 0]))
    last = sums[order, -1]
    better = np.ones(len(order), bool)
    better[1:] = last[1:] > np.maximum.accumulate(last)[:-1]
    return order[better]


def window_of(direction: tuple[int, ...], wanted: Sequence[int | None]) -> tuple[int | None, int | None]:
    """The range of steps u for which u * direction satisfies the bound of every row; None for an open end.

    None means that a row has no bound. If no step satisfies all bounds, the range is empty: from 1 to 0.
    """
    low: Fraction | None = None
    high: Fraction | None = None
    for step, least in zip(direction, wanted, strict=True):
        if least is None:
            continue
        if step == 0:
            if least > 0:
                return 1, 0
        elif step > 0:
            low = max(Fraction(least, step), low) if low is not None else Fraction(least, step)
        else:
            high = min(Fraction(least, step), high) if high is not None else Fraction(least, step)
    return None if low is None else -((-low.numerator) // low.denominator), None if high is None else high.__floor__()


@dataclass(frozen=True, eq=False)
class Table:
    """The attainable sums of parts along one direction, counted in steps from the sum of the first choices of all parts.

    Bit i of `reached[k]` is set if the first k parts attain the sum of their least choices plus `unit` * i steps. `steps`
    holds, for each choice, the units above its part's least choice; `least` is the sum of the least choices of all parts.
    """

    reached: tuple[int, ...]
    steps: tuple[tuple[int, ...], ...]
    least: int
    unit: int

    @classmethod
    def of(cls, parts: Sequence[Int64Array], direction: tuple[int, ...]) -> Table | None:
        """The table of some parts; None if the attainable sums are too far apart."""
        axis = next(i for i, step in enumerate(direction) if step)
        least, above = 0, list[list[int]]()
        for part in parts:
            numbers = [int(x) // direction[axis] for x in part[:, axis] - part[0, axis]]
            least += min(numbers)
            above.append([x - min(numbers) for x in numbers])
        unit = gcd(*(x for numbers in above for x in numbers)) or 1
        steps = tuple(tuple(x // unit for x in numbers) for numbers in above)
        if sum(map(max, steps)) > MOST_BITS:
            return None
        reached = [1]
        for choices in steps:
            table = 0
            for step in set(choices):
                table |= reached[-1] << step
            reached.append(table)
        return cls(tuple(reached), steps, least, unit)

    def find(self, low: int | None, high: int | None, *, largest: bool = False) -> list[int] | None:
        """The choices of all parts that yield the least (or greatest) sum from `low` to `high`, or None."""
        last = self.reached[-1].bit_length() - 1
        first = 0 if low is None else max(0, -((self.least - low) // self.unit))
        end = last if high is None else min(last, (high - self.least) // self.unit)
        if first > end:
            return None
        inside = (self.reached[-1] >> first) & ((1 << (end - first + 1)) - 1)
        if not inside:
            return None
        left = first + (inside if largest else inside & -inside).bit_length() - 1
        choices: list[int] = []
        for k in range(len(self.steps) - 1, -1, -1):
            number = next(i for i, s in enumerate(self.steps[k]) if s <= left and self.reached[k] >> (left - s) & 1)
            choices.append(number)
            left -= self.steps[k][number]
        return choices[::-1]
