"""Outward rounding of integer rows: the rows passed to a solver must not exclude a solution (docs/semantics.md).

Source: sum c_i x_i >= b with exact integers over 0/1 variables. Target, for a divisor 2**d:

    relax:     sum ceil(c_i / 2**d) x_i >= ceil(b / 2**d)
    restrict:  sum floor(c_i / 2**d) x_i >= ceil(b / 2**d)

Relaxing keeps every solution, because sum ceil(c_i / 2**d) x_i >= sum c_i x_i / 2**d >= b / 2**d and the left side is an
integer. Restricting adds no solution. With d = 0 both forms equal the row.

MILP solvers receive rows of doubles, relaxed by more than the maximum combined effect of rounding and tolerances
(`float_rows`). A coefficient c * 2**-s is rounded to the nearest double, so the error of the whole row is at most 2**-53 * sum
|c| 2**-s. Each row is relaxed by 8 times this error, plus `MARGIN` times the row's scale, which exceeds the primal feasibility
tolerance set by the backends (1e-6 at most). Points that satisfy the exact row then satisfy the written row with a margin. If
the solver's own arithmetic is sound, a written model that is infeasible proves the question infeasible (proof: tolerance). From
precision 1 on, rows are tightened by the same amount instead, so that points accepted by the solver pass exact replay.

Rows with large numbers are first divided by a power of two, so that an absolute tolerance has the same meaning in every row,
and no coefficient reaches 1e15, which solvers reject. CBC does not scale the rows of its cuts and nodes: for rows with
coefficients 0 and 1 and one row with numbers up to 10**6, CBC reported a suboptimal value as optimal.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from treesens.compiler.base.arrays import FloatArray, IntegerArray
from treesens.compiler.base.dyadic import Unit
from treesens.compiler.legalise.rows import RowBlock


@dataclass(frozen=True)
class Rounded:
    """Coefficients and bound, divided by 2**dropped and rounded; `exact` is True if nothing was dropped."""

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
    """The exact sum of absolute values."""
    if values.dtype == object:
        return sum(abs(int(v)) for v in values)
    return int(np.abs(values).sum()) if len(values) else 0


def round_row(coefficients: IntegerArray, bound: int, *, bits: int, relax: bool = True, at_least: int = 0) -> Rounded:
    """The row, rounded so that its bound and its absolute coefficient sum are below about 2**bits; exact if both already are.

    At least `at_least` bits are dropped, for rows that need a common unit.
    """
    dropped = max(at_least, bits_beyond(coefficients, bound, bits), 0)
    if dropped == 0:
        return Rounded(_narrow(coefficients), bound, 0)
    shrunk = -floor_shift(-coefficients, dropped) if relax else floor_shift(coefficients, dropped)
    return Rounded(_narrow(shrunk), -((-bound) >> dropped), dropped)


def bits_beyond(coefficients: IntegerArray, bound: int, bits: int) -> int:
    """The number of bits by which a row is too long; if negative, the number of free bits."""
    return max(total(coefficients), abs(bound)).bit_length() - bits


def _narrow(values: IntegerArray) -> IntegerArray:
    return values.astype(np.int64) if values.dtype == object and total(values) < 2**62 else values


MARGIN = 2e-6
EXACT_BITS = 20
"""Rows of integers below 2**20 are written unchanged: a solver's tolerance is far below one unit."""
LARGEST_BITS = 10
"""In all other rows, coefficients are below 2**10."""


@dataclass(frozen=True)
class FloatRows:
    """A row block in doubles; a missing bound is infinite."""

    coefficients: FloatArray
    low: FloatArray
    high: FloatArray
    relaxed: bool


def float_rows(block: RowBlock, *, relax: bool = True) -> FloatRows:
    """A block in doubles. Rows of small integers (chains, leaf sums, clauses) are exact and unchanged."""
    exact = block.shift == 0 and all(_largest(x) < 2**EXACT_BITS for x in (block.coefficients, block.low, block.high))
    # The shift that brings the largest coefficient of the block below 2**LARGEST_BITS.
    shift = max(block.shift, 0 if exact else _largest(block.coefficients).bit_length() - LARGEST_BITS)
    unit = Unit(shift)
    low = np.where(block.has_low, unit.doubles(block.low), -inf)
    high = np.where(block.has_high, unit.doubles(block.high), inf)
    if exact:
        return FloatRows(Unit(0).doubles(block.coefficients), low, high, relaxed=False)
    size = unit.nearest(total(block.coefficients))
    slack = size * 2.0**-50 + MARGIN * max(1.0, float(np.max(np.abs(low[np.isfinite(low)]), initial=0.0)))
    slack = slack if relax else -slack
    return FloatRows(unit.doubles(block.coefficients), low - slack, high + slack, relaxed=True)


def _largest(values: IntegerArray) -> int:
    return int(np.abs(values).max()) if len(values) else 0
