"""Sums of probabilities: evaluated exactly at single inputs, and otherwise relaxed to constraints on scores.

At one input, the exact value decides (`exact_sums.py`). The relaxation of a sum, and rows that exclude a violating input, are
derived from the sum's terms, and proved: they are the cutting planes of Kelley, *The cutting-plane method*, J. SIAM 8, 1960. If
a term has no such row for an input, the relaxation also excludes all inputs at which no term is greater than at this input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from treesens.compiler.base.arrays import BoolArray, FloatArray
from treesens.compiler.base.dyadic import ScaledIntegers, Unit
from treesens.compiler.query.exact_sums import Value
from treesens.compiler.query.query import (
    AllOf,
    AnyOf,
    Constraint,
    ProbabilitySum,
    Scores,
    ScoreTerm,
    Summand,
    parts_in,
)

_CLEAR = 1e-9
"""Distance from the bound beyond which floats decide a sum; the error of floats is at most a thousandth of this distance."""
_FINE = 128
"""Precision, in bits, of displayed values."""
_HALVINGS = 8


def names_probabilities(constraints: Sequence[Constraint]) -> bool:
    """True if some constraint, or a part of a formula, is a sum of probabilities."""
    return next(sums_in(constraints), None) is not None


def sums_in(constraints: Sequence[Constraint]) -> Iterator[ProbabilitySum]:
    """All sums of probabilities in constraints, including sums inside formulas."""
    return (part for part in parts_in(constraints) if isinstance(part, ProbabilitySum))


# --- at one input ------------------------------------------------------------------------------------------------------------


def value_at(row: ProbabilitySum, arguments: Sequence[Sequence[Fraction]]) -> Value:
    """The exact value of a sum minus its bound, given the arguments of its terms."""
    value = Value()
    value.constant = -row.bound
    for term, own in zip(row.terms, arguments, strict=True):
        term.add_to(value, own)
    return value


def _arguments(row: ProbabilitySum, scores: Scores) -> list[tuple[Fraction, ...]]:
    return [term.arguments(scores) for term in row.terms]


def reaches(row: ProbabilitySum, scores: Scores) -> bool:
    """True if a sum of probabilities satisfies its bound exactly. Raises UndecidedError if enclosures do not decide this."""
    sign = value_at(row, _arguments(row, scores)).sign()
    return sign > 0 or (sign == 0 and not row.strict)


def approximate(row: ProbabilitySum, scores: Scores) -> Fraction:
    """A sum of probabilities without its bound, rounded down by less than 2**-100 of the factors; values closer to 0 are 0."""
    low, high = value_at(replace(row, bound=Fraction(0)), _arguments(row, scores)).bounds(_FINE)
    return Fraction(0) if low <= 0 <= high else low


def reaches_on_rows(row: ProbabilitySum, scores: Mapping[int, ScaledIntegers], count: int) -> BoolArray:
    """Marks inputs that satisfy a sum of probabilities exactly, bool[count]; `scores` maps points to [count, outputs]."""
    numbers = {p: Unit(s.shift).doubles(s.values) for p, s in scores.items()}
    largest = max((float(np.abs(s).max(initial=0.0)) for s in numbers.values()), default=0.0)

    def sums(terms: Sequence[ScoreTerm]) -> FloatArray:
        return sum((float(t.coefficient) * numbers[t.point][:, t.output] for t in terms), np.zeros(count))

    low = high = np.full(count, -float(row.bound))
    for term in row.terms:
        least, most = term.on_rows(sums)
        low, high = low + least, high + most
    size = (1 + sum(float(max(map(abs, term.ends))) for term in row.terms)) * (1 + 1e-6 * largest)
    clear = _CLEAR * size
    result = np.asarray(low > clear)
    for i in np.flatnonzero((low <= clear) & (high >= -clear)):
        points = {p: [s.fraction(int(i), output) for output in range(s.shape[1])] for p, s in scores.items()}
        result[i] = reaches(row, points)
    return result


# --- relaxations -------------------------------------------------------------------------------------------------------------


def relaxed(constraint: Constraint) -> Constraint:
    """A constraint without sums of probabilities that is implied by `constraint`."""
    return _mapped(constraint, lambda row: _first(row).relax(row))


def excluding(constraint: Constraint, scores: Scores) -> Constraint:
    """A constraint without sums of probabilities that is implied by `constraint` and violated by `scores`."""

    def cut(row: ProbabilitySum) -> Constraint:
        return AllOf(()) if reaches(row, scores) else _first(row).cut(row, scores) or _past(row, scores)

    return _mapped(constraint, cut)


def has_float_rows(row: ProbabilitySum) -> bool:
    """True if the relaxation of a sum contains floating-point constants."""
    return any(term.in_floats for term in row.terms)


def _mapped(constraint: Constraint, change: Callable[[ProbabilitySum], Constraint]) -> Constraint:
    if isinstance(constraint, AllOf):
        return AllOf(tuple(_mapped(part, change) for part in constraint.parts))
    if isinstance(constraint, AnyOf):
        return AnyOf(tuple(_mapped(part, change) for part in constraint.parts))
    # The name is neutral, because a consequence of a class constraint does not determine the class.
    return (
        change(replace(constraint, name=f"line.{constraint.name}"))
        if isinstance(constraint, ProbabilitySum)
        else constraint
    )


def _first(row: ProbabilitySum) -> Summand:
    return max(row.terms, key=lambda term: term.rank)


def _past(row: ProbabilitySum, scores: Scores) -> Constraint:
    """The constraint that some term is greater than at this input, or at a better input whose sum is still too small."""
    arguments = _arguments(row, scores)
    for halving in range(1, _HALVINGS):
        moved = [t.toward(own, Unit(halving).size) for t, own in zip(row.terms, arguments, strict=True)]
        if value_at(row, moved).bounds(96)[1] < 0:
            arguments = moved
            break
    better = (term.better(own, row.name) for term, own in zip(row.terms, arguments, strict=True))
    return AnyOf(tuple(side for sides in better for side in sides))
