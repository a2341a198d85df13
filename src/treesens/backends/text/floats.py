"""Integer rows as floating-point rows for MILP solvers, relaxed by more than what rounding and tolerances can cost.

A coefficient c * 2**-s becomes the nearest double; the error of the whole row is at most 2**-53 * sum |c| 2**-s. A row is
relaxed by that and by `MARGIN` times its scale, which is above the primal feasibility tolerance (1e-6 at most) that the
backends set, so that a point that satisfies the exact row satisfies the written one with room to spare: an infeasible
written model means an infeasible question as far as the solver's own arithmetic is sound (proof: tolerance). From
precision 1 on rows are tightened by the same amount instead: what the solver then accepts survives exact replay.

Rows of large numbers are divided by a power of two first, so that an absolute tolerance means the same in every row, and
because solvers refuse coefficients from 1e15 on. CBC does not scale the rows of its cuts and nodes: beside rows of 0 and 1, one
of numbers up to 10**6 had it call a value optimal that was not.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from treesens.compiler.base.arrays import FloatArray, IntegerArray
from treesens.compiler.base.units import Unit
from treesens.compiler.legalise.rounding import total
from treesens.compiler.legalise.rows import RowBlock

MARGIN = 2e-6
EXACT_BITS = 20
"""Whole rows with sums below 2**20 are written as they are; a solver's tolerance is far below their unit."""
LARGEST_BITS = 10
"""All other rows have no coefficient from 2**10 on."""


@dataclass(frozen=True)
class FloatRows:
    """A row block in doubles; infinite bounds if there is none."""

    coefficients: FloatArray
    low: FloatArray
    high: FloatArray
    relaxed: bool


def float_rows(block: RowBlock, *, relax: bool = True) -> FloatRows:
    """Doubles for a block. Rows of small integers (chains, leaf sums, clauses) are exact and stay as they are."""
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
