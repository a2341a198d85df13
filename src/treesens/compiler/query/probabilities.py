"""Sums of probabilities: decided exactly at one input, and relaxed to linear rows elsewhere.

A sum S of terms f / (1 + e**v_1 + … + e**v_n), v_j affine in the scores, falls in every v_j if f > 0 and rises if f < 0. So an
input at which S is too small rules out more: all inputs that are worse in every v_j, and a little beyond. For one f > 0 the set
{S >= c} is convex, {ln(e**v_1 + … + e**v_n) <= ln(f / c - 1)}, and a tangent rules out more still: by Jensen
sum of l_j v_j - l_j ln l_j <= ln(sum of e**v_j) for all weights l_j >= 0 of sum 1. The set of a difference of two sigmoids that
is at least c >= 0 is convex, too, and has tangents (`_Difference`). These rows are exact (logarithms stay symbols), so what
they exclude is proved (the cutting planes of Kelley, *The cutting-plane method*, J. SIAM 8, 1960).

Equality is decided too: sums of rational powers of e with rational coefficients are 0 only if every coefficient is (Lindemann
and Weierstrass). Functions of single scores have normal forms in `curves.py`, which differ from every rational number unless
nothing is left of them; sigmoids of probabilities have none, and what no enclosure tells apart there stays open.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from math import exp, inf, log, prod
from typing import TypeAlias

import numpy as np

from treesens.compiler.base.arrays import BoolArray
from treesens.compiler.base.dyadic import ScaledIntegers, Unit, exp_bounds
from treesens.compiler.query.bounds import LogRational
from treesens.compiler.query.curve_sums import (
    beyond,
    curves_of,
    cut_off,
    ends_on_rows,
    first_row,
    has_curves,
    keep_rows,
    score_at,
    value_at,
)
from treesens.compiler.query.curves import Value
from treesens.compiler.query.powers import ASK_OTHERWISE, MOST_BITS, sign_of
from treesens.compiler.query.query import (
    AllOf,
    AnyOf,
    AtLeast,
    Constraint,
    Exponent,
    LinearForm,
    Probability,
    ProbabilitySum,
    Quotient,
    ScoreTerm,
    parts_in,
)
from treesens.compiler.query.quotients import (
    cut_off_quotients,
    first_line,
    has_quotients,
    multiplied_out,
    past_quotients,
    quotient_ends,
    ratios_at,
)
from treesens.errors import UndecidedError

Scores: TypeAlias = Sequence[Sequence[Fraction]] | Mapping[int, Sequence[Fraction]]
"""Raw sums by point and output."""

_CLEAR = 1e-9
"""Floats decide sums that are further than this from the bound: their error is at most a thousandth of it."""
_FAR = 4096
"""Larger exponents are clipped: the probability is below e**-4096, or that close to 1."""
_FINE = 128
"""Bits of displayed values."""
_MOST_PRODUCTS = 100_000
_REACH = 40
"""Exponents are moved towards plus or minus this to find a corner that excludes more."""
_HALVINGS = 8
_GRIDS = (1 << 16, 1 << 32, 1 << 56)
"""Denominators of weights and corners, coarse ones first, which give short rows."""


def names_probabilities(constraints: Sequence[Constraint]) -> bool:
    """True if some constraint, or part of a formula, is a sum of probabilities."""
    return next(sums_in(constraints), None) is not None


def sums_in(constraints: Sequence[Constraint]) -> Iterator[ProbabilitySum]:
    """The sums of probabilities among constraints and in their formulas."""
    return (part for part in parts_in(constraints) if isinstance(part, ProbabilitySum))


# --- at one input ------------------------------------------------------------------------------------------------------------


def exponents_at(term: Probability, scores: Scores) -> list[Fraction]:
    """The exact exponents of a probability."""
    return [
        e.constant + sum((t.coefficient * scores[t.point][t.output] for t in e.terms), Fraction(0))
        for e in term.exponents
    ]


def reaches(row: ProbabilitySum, scores: Scores) -> bool:
    """True if a sum of probabilities satisfies its bound, exactly."""
    if has_quotients(row):
        return _reaches_by_quotients(row, scores)
    if has_curves(row):
        return _reaches_by_curves(row, scores)
    return _satisfies(row, [exponents_at(term, scores) for term in _shares(row)])


def approximate(row: ProbabilitySum, scores: Scores) -> Fraction:
    """A sum of probabilities without bound, rounded down by less than 2**-100 of the factors; 0 if it is that close to 0."""
    low, high = value_at(row, scores).bounds(_FINE) if has_curves(row) else (Fraction(0), Fraction(0))
    for term in _shares(row):
        ends = [term.factor * end for end in _probability(exponents_at(term, scores), _FINE)]
        low, high = low + min(ends), high + max(ends)
    constant, ratios = ratios_at(row, scores)
    for least, most in ((constant, constant), *(ratio.bounds(_FINE) for ratio in ratios)):
        low, high = low + least, high + most
    return Fraction(0) if low <= 0 <= high else low


def _shares(row: ProbabilitySum) -> list[Probability]:
    return [term for term in row.terms if isinstance(term, Probability)]


def _reaches_by_curves(row: ProbabilitySum, scores: Scores) -> bool:
    """The same if some terms are functions of one score, which are replaced by their values at this input."""
    value, softmax = value_at(row, scores), _shares(row)
    if not value.sigmoids and softmax:
        shares = [(term.factor, exponents_at(term, scores)) for term in softmax]
        shares += [(factor, [exponent]) for exponent, factor in value.shares.items()]
        terms = tuple(Probability(factor, (Exponent(()),) * len(v)) for factor, v in shares)
        left = ProbabilitySum(terms, row.bound - value.constant, row.strict, row.name)
        return _satisfies(left, [v for _, v in shares])
    if value.is_rational and not softmax:
        return value.constant > row.bound or (value.constant == row.bound and not row.strict)
    unequal = not value.sigmoids
    bits = 64
    while bits <= MOST_BITS:
        low, high = (end - row.bound for end in value.bounds(bits))
        for term in softmax:
            one, other = (term.factor * p for p in _probability(exponents_at(term, scores), bits))
            low, high = low + min(one, other), high + max(one, other)
        if low > 0 or high < 0 or (unequal and (low == 0 or high == 0)):
            return low >= 0
        bits *= 4
    if not softmax and not value.shares and value.constant == row.bound and (sign := value.sign_of_pairs()):
        return sign > 0
    raise UndecidedError(
        "a sum of probabilities is too close to its bound to be separated from it", remedy=ASK_OTHERWISE
    )


def _reaches_by_quotients(row: ProbabilitySum, scores: Scores) -> bool:
    """The same if some terms are quotients of functions of several scores."""
    constant, ratios = ratios_at(row, scores)
    others = tuple(term for term in row.terms if not isinstance(term, Quotient))
    rest = ProbabilitySum(others, row.bound - constant, row.strict, row.name)
    if not ratios:
        return reaches(rest, scores) if others else rest.bound < 0 or (rest.bound == 0 and not row.strict)
    value, softmax, bits = value_at(rest, scores), _shares(rest), 64
    while bits <= MOST_BITS:
        ends = [(low - rest.bound, high - rest.bound) for low, high in [value.bounds(bits)]]
        ends += [ratio.bounds(bits) for ratio in ratios]
        for term in softmax:
            one, other = (term.factor * p for p in _probability(exponents_at(term, scores), bits))
            ends.append((min(one, other), max(one, other)))
        low, high = (sum(side, Fraction(0)) for side in zip(*ends, strict=True))
        if low > 0 or high < 0:
            return low > 0
        if bits == 64 and not softmax and not value.sigmoids:
            powers = multiplied_out(ratios, value.shares, value.constant - rest.bound, _MOST_PRODUCTS)
            if powers is not None:
                sign = sign_of(powers)
                return sign > 0 or (sign == 0 and not row.strict)
        bits *= 4
    raise UndecidedError(
        "a sum of probabilities is too close to its bound to be separated from it", remedy=ASK_OTHERWISE
    )


def _satisfies(row: ProbabilitySum, values: list[list[Fraction]]) -> bool:
    terms = _shares(row)
    near = sum(float(t.factor) * _float_probability(v) for t, v in zip(terms, values, strict=True)) - float(row.bound)
    if abs(near) > _CLEAR * (1 + sum(abs(float(t.factor)) for t in terms)):
        return near > 0
    if (beyond := _beyond_all(row)) is not None:
        return beyond
    bits = 64
    while bits <= MOST_BITS:
        low = high = -row.bound
        for term, exponents in zip(terms, values, strict=True):
            one, other = (term.factor * p for p in _probability(exponents, bits))
            low, high = low + min(one, other), high + max(one, other)
        if low > 0 or high < 0:
            return low > 0
        if bits == 64 and (powers := _multiplied_out(row, values)) is not None:
            sign = sign_of(powers)
            return sign > 0 or (sign == 0 and not row.strict)
        bits *= 4
    raise UndecidedError(
        "a sum of probabilities is too close to its bound to be separated from it", remedy=ASK_OTHERWISE
    )


def _beyond_all(row: ProbabilitySum) -> bool | None:
    """The truth of a constraint for all inputs, since probabilities are strictly between 0 and 1; None if inputs may differ.

    Scores may be so large that no precision separates a probability from 0 or 1.
    """
    most = sum((max(term.factor, Fraction(0)) for term in row.terms), Fraction(0))
    least = sum((min(term.factor, Fraction(0)) for term in row.terms), Fraction(0))
    if not row.terms or not all(term.exponents for term in _shares(row)):
        return None
    if row.bound >= most:
        return False
    return True if row.bound <= least else None


def reaches_on_rows(row: ProbabilitySum, scores: Mapping[int, ScaledIntegers], count: int) -> BoolArray:
    """Marks inputs that satisfy a sum of probabilities, exactly, bool[count]; `scores` by point, [count, outputs]."""
    numbers = {p: Unit(s.shift).doubles(s.values) for p, s in scores.items()}
    largest = max((float(np.abs(s).max(initial=0.0)) for s in numbers.values()), default=0.0)
    total = np.full(count, -float(row.bound))
    for term in _shares(row):
        powers = np.ones(count)
        for e in term.exponents:
            v = sum(
                (float(t.coefficient) * numbers[t.point][:, t.output] for t in e.terms),
                np.full(count, float(e.constant)),
            )
            powers += np.exp(np.minimum(v, 700.0))
        total += float(term.factor) / powers
    factors = (max(map(abs, t.ends)) if isinstance(t, Quotient) else abs(t.factor) for t in row.terms)
    size = (1 + sum(map(float, factors))) * (1 + 1e-6 * largest)
    ends = ends_on_rows(row, scores, count), quotient_ends(row, scores, count)
    low, high = (one + other for one, other in zip(*ends, strict=True))
    result, unsure = keep_rows(total + low, total + high, _CLEAR * size)
    for i in np.flatnonzero(unsure):
        points = {p: [s.fraction(int(i), output) for output in range(s.shape[1])] for p, s in scores.items()}
        result[i] = reaches(row, points)
    return result


def _float_probability(exponents: list[Fraction]) -> float:
    return 1 / (1 + sum(exp(min(float(v), 700.0)) for v in exponents))


def _probability(exponents: list[Fraction], bits: int) -> tuple[Fraction, Fraction]:
    low = high = Fraction(1)
    for v in exponents:
        least, most = exp_bounds(max(min(v, Fraction(_FAR)), Fraction(-_FAR)), bits)
        low, high = low + (least if v >= -_FAR else 0), high + most
    return Fraction(0) if max(exponents) > _FAR else 1 / high, 1 / low


def _multiplied_out(row: ProbabilitySum, values: list[list[Fraction]]) -> dict[Fraction, Fraction] | None:
    """The sum minus its bound, times all denominators, which are positive: non-zero coefficients by power of e.

    Probabilities of one input share their denominator. None if there are too many products.
    """
    parts: dict[tuple[Fraction, ...], list[tuple[Fraction, Fraction]]] = {}
    for term, exponents in zip(_shares(row), values, strict=True):
        # 1 / (1 + e**v + …) = e**-top / (e**-top + e**(v - top) + …)
        top = max(Fraction(0), *exponents)
        denominator = tuple(sorted(v - top for v in (Fraction(0), *exponents)))
        parts.setdefault(denominator, []).append((-top, term.factor))
    sizes = [len(denominator) for denominator in parts]
    if prod(sizes) * (1 + len(row.terms)) > _MOST_PRODUCTS:
        return None
    total: dict[Fraction, Fraction] = {}
    for left_out, numerator in ((None, [(Fraction(0), -row.bound)]), *parts.items()):
        for powers in product(*(denominator for denominator in parts if denominator != left_out)):
            below = sum(powers, Fraction(0))
            for power, factor in numerator:
                total[below + power] = total.get(below + power, Fraction(0)) + factor
    return {power: factor for power, factor in total.items() if factor}


# --- relaxations -------------------------------------------------------------------------------------------------------------


def relaxed(constraint: Constraint) -> Constraint:
    """A constraint without sums of probabilities that is implied by this one."""
    if isinstance(constraint, AllOf):
        return AllOf(tuple(map(relaxed, constraint.parts)))
    if isinstance(constraint, AnyOf):
        return AnyOf(tuple(map(relaxed, constraint.parts)))
    if not isinstance(constraint, ProbabilitySum):
        return constraint
    row = _unnamed(constraint)
    if has_quotients(row):
        return first_line(row)
    return first_row(row) if has_curves(row) else _first_rows(row)


def excluding(constraint: Constraint, scores: Scores) -> Constraint:
    """A constraint without sums of probabilities that is implied by a violated one, and is violated too."""
    if isinstance(constraint, AllOf):
        return AllOf(tuple(excluding(part, scores) for part in constraint.parts))
    if isinstance(constraint, AnyOf):
        return AnyOf(tuple(excluding(part, scores) for part in constraint.parts))
    if not isinstance(constraint, ProbabilitySum):
        return constraint
    row = _unnamed(constraint)
    if reaches(row, scores):
        return AllOf(())
    values = [exponents_at(term, scores) for term in _shares(row)]
    if has_quotients(row):
        return cut_off_quotients(row, scores) or _past_quotients(row, scores, values)
    if has_curves(row):
        return cut_off(row, scores) or _past_input(row, scores, values)
    return _tangent_at(row, values) or _tangent_of_difference(row, values) or _corner_at(row, values)


def _unnamed(row: ProbabilitySum) -> ProbabilitySum:
    """The row under a neutral name: a consequence of a class constraint does not determine the class."""
    return replace(row, name=f"line.{row.name}")


def _past_quotients(row: ProbabilitySum, scores: Scores, values: list[list[Fraction]]) -> Constraint:
    """Some score or exponent is better than at an input at which the sum is too small, or different if that may help."""
    better = [beyond(term, score_at(term, scores), row.name) for term in curves_of(row)]
    shares = ProbabilitySum(tuple(_shares(row)), row.bound, row.strict, row.name)
    return AnyOf((*better, *past_quotients(row, scores), _past(shares, values)))


def _past_input(row: ProbabilitySum, scores: Scores, values: list[list[Fraction]]) -> Constraint:
    """Some score or exponent is strictly better than at an input at which the sum is too small, or at a better such input."""
    terms, shares = curves_of(row), ProbabilitySum(tuple(_shares(row)), row.bound, row.strict, row.name)
    places = [score_at(term, scores) for term in terms]
    for halving in range(1, _HALVINGS):
        ends = [term.high if term.factor > 0 else term.low for term in terms]
        limits = [p + (end - p) * Unit(halving).size for p, end in zip(places, ends, strict=True)]
        moved = [
            [v + ((-_REACH if term.factor > 0 else _REACH) - v) * Unit(halving).size for v in of_term]
            for term, of_term in zip(_shares(row), values, strict=True)
        ]
        if _is_below(row, limits, moved):
            places, values = limits, moved
            break
    better = [beyond(term, place, row.name) for term, place in zip(terms, places, strict=True)]
    return AnyOf((*better, _past(shares, values)))


def _is_below(row: ProbabilitySum, places: list[Fraction], values: list[list[Fraction]]) -> bool:
    """True if the sum is below its bound at these scores and exponents."""
    value = Value()
    for term, place in zip(curves_of(row), places, strict=True):
        value.add(term.factor, term.calibration, place)
    high = value.bounds(96)[1] - row.bound
    for share, exponents in zip(_shares(row), values, strict=True):
        high += max(share.factor * p for p in _probability(exponents, 96))
    return high < 0


def _first_rows(row: ProbabilitySum) -> Constraint:
    """Consequences for each probability alone if all others have their best values."""
    most = sum((t.factor for t in row.terms if t.factor > 0), Fraction(0))
    least = sum((t.factor for t in row.terms if t.factor < 0), Fraction(0))
    if row.bound >= most or row.bound <= least:
        # No probability is 0 or 1.
        return AnyOf(()) if row.bound >= most else AllOf(())
    parts: list[Constraint] = []
    for term in _shares(row):
        share = (row.bound - (most - max(term.factor, Fraction(0)))) / term.factor
        if not 0 < share < 1:
            continue
        limit = LogRational.ln((1 - share) / share)
        count = len(term.exponents)
        if term.factor < 0:
            reduced = limit + -LogRational.ln(Fraction(count))
            parts.append(AnyOf(tuple(_beyond(e, reduced, row.name) for e in term.exponents)))
            continue
        parts += [_below(e, limit, row.name) for e in term.exponents]
        if count > 1:
            parts.append(_weighted(term, [Fraction(1, count)] * count, limit, row))
    difference = _Difference.of(row)
    if difference is not None:
        parts.append(difference.tangent((1 - difference.least) / 2, row))
    return AllOf(tuple(parts))


def _below(exponent: Exponent, limit: LogRational, name: str, strict: bool = False) -> AtLeast:
    """exponent <= limit (< limit if strict)."""
    terms = tuple(ScoreTerm(t.point, t.output, -t.coefficient) for t in exponent.terms)
    return AtLeast(LinearForm(terms), LogRational(exponent.constant) + -limit, strict, name)


def _beyond(exponent: Exponent, limit: LogRational, name: str, strict: bool = False) -> AtLeast:
    """exponent >= limit (> limit if strict)."""
    return AtLeast(LinearForm(exponent.terms), limit + LogRational(-exponent.constant), strict, name)


def _weighted(term: Probability, weights: Sequence[Fraction], limit: LogRational, row: ProbabilitySum) -> AtLeast:
    """sum of weight * exponent - weight * ln(weight) <= limit, which follows from ln(sum of e**exponent) <= limit."""
    coefficients: dict[tuple[int, int], Fraction] = {}
    bound = -limit
    for weight, exponent in zip(weights, term.exponents, strict=True):
        if not weight:
            continue
        bound = bound + LogRational(weight * exponent.constant) + LogRational.ln(weight) * -weight
        for t in exponent.terms:
            place = (t.point, t.output)
            coefficients[place] = coefficients.get(place, Fraction(0)) - weight * t.coefficient
    scores = tuple(ScoreTerm(*place, c) for place, c in coefficients.items() if c)
    return AtLeast(LinearForm(scores), bound, row.strict, row.name)


def _tangent_at(row: ProbabilitySum, values: list[list[Fraction]]) -> AtLeast | None:
    """The tangent that excludes these exponents of a probability that should be larger; None if there is none."""
    term = _shares(row)[0]
    share = row.bound / term.factor
    if len(row.terms) > 1 or term.factor < 0 or not 0 < share < 1:
        return None
    limit = LogRational.ln((1 - share) / share)
    for grid in _GRIDS:
        weights = _weights(values[0], grid)
        made = _weighted(term, weights, limit, row)
        # The row's form at these exponents is minus the weighted sum; constants are in both.
        inside = -sum((w * v for w, v in zip(weights, values[0], strict=True)), Fraction(0))
        inside += sum((w * e.constant for w, e in zip(weights, term.exponents, strict=True)), Fraction(0))
        low, _ = made.bound.enclose(128)
        if inside < low:
            return made
    return None


def _weights(values: list[Fraction], grid: int) -> list[Fraction]:
    """The softmax of some exponents on a grid, of sum 1."""
    highest = float(max(values))
    parts = [exp(float(v) - highest) for v in values]
    counts = [round(part / sum(parts) * grid) for part in parts]
    counts[counts.index(max(counts))] += grid - sum(counts)
    return [Fraction(count, grid) for count in counts]


# --- differences of two -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Difference:
    """1 / (1 + e**-x) - 1 / (1 + e**-y) >= c, 0 <= c < 1; x and y are minus the exponents `one` and `other`, c is `least`.

    The set is x >= g(y) = logit(c + p) with p = 1 / (1 + e**-y). Its slope g' = p (1 - p) / ((c + p) (1 - c - p)) grows with p,
    and so with y: the derivative by p is c ((1 - c) (1 - 2 p) + 2 p**2) over a square, and the bracket has no root. So g is
    convex, and every tangent x - g' y >= g - g' logit(p) holds.
    """

    one: Exponent
    other: Exponent
    least: Fraction

    @staticmethod
    def of(row: ProbabilitySum) -> _Difference | None:
        """A sum that is such a difference, its larger term first."""
        terms = sorted(_shares(row), key=lambda term: -term.factor)
        if len(terms) != 2 or len(row.terms) != 2 or any(len(term.exponents) != 1 for term in terms):
            return None
        up, down = terms
        if up.factor <= 0 or up.factor != -down.factor or not 0 <= row.bound < up.factor:
            return None
        return _Difference(up.exponents[0], down.exponents[0], row.bound / up.factor)

    def tangent(self, p: Fraction, row: ProbabilitySum) -> AtLeast:
        """The tangent at a probability p of the smaller term, 0 < p < 1 - least."""
        c = self.least
        slope = p * (1 - p) / ((c + p) * (1 - c - p))
        bound = LogRational.ln((c + p) / (1 - c - p)) + LogRational.ln(p / (1 - p)) * -slope
        bound = bound + LogRational(self.one.constant - slope * self.other.constant)
        form: dict[tuple[int, int], Fraction] = {}
        for factor, exponent in ((Fraction(-1), self.one), (slope, self.other)):
            for term in exponent.terms:
                place = (term.point, term.output)
                form[place] = form.get(place, Fraction(0)) + factor * term.coefficient
        scores = tuple(ScoreTerm(*place, coefficient) for place, coefficient in form.items() if coefficient)
        return AtLeast(LinearForm(scores), bound, row.strict, row.name)

    def place(self, one: float, other: float) -> float:
        """The probability p of the boundary point at equal distances in x and y from these exponents."""
        low, high = 0.0, 2 * _REACH + abs(one) + abs(other)
        for _ in range(100):
            middle = (low + high) / 2
            if _sigmoid(middle - one) - _sigmoid(-other - middle) < self.least:
                low = middle
            else:
                high = middle
        return _sigmoid(-other - high)


def _sigmoid(x: float) -> float:
    return 1 / (1 + exp(min(-x, 700.0)))


def _tangent_of_difference(row: ProbabilitySum, values: list[list[Fraction]]) -> AtLeast | None:
    """The tangent that excludes these exponents of a difference that should be larger; None if there is none."""
    found = _Difference.of(row)
    if found is None:
        return None
    ((one,), (other,)) = values if _shares(row)[0].factor > 0 else values[::-1]
    p = Fraction(found.place(float(one), float(other)))
    for grid in _GRIDS:
        on_grid = min(max(Fraction(round(p * grid), grid), Fraction(1, grid)), 1 - found.least - Fraction(1, grid))
        if not 0 < on_grid < 1 - found.least:
            continue
        made = found.tangent(on_grid, row)
        # The row's form at these exponents, and the additional constants of its bound.
        slope = on_grid * (1 - on_grid) / ((found.least + on_grid) * (1 - found.least - on_grid))
        inside = found.one.constant - one + slope * (other - found.other.constant)
        low, _ = made.bound.enclose(128)
        if inside < low:
            return made
    return None


# --- corners -----------------------------------------------------------------------------------------------------------------


def _corner_at(row: ProbabilitySum, values: list[list[Fraction]]) -> Constraint:
    """Some exponent is strictly better than at a corner at which the sum is still too small. The corner exceeds these exponents
    by as much as the sum lacks; exponents that cannot help alone are left out.
    """
    for grid in _GRIDS:
        corner = _corner(row, values, grid)
        if corner is not None and _too_small(row, corner):
            return _past(row, corner)
    return _past(row, [list(v) for v in values])


_Corner = list[list[Fraction] | list[Fraction | None]]


def _past(row: ProbabilitySum, corner: Sequence[Sequence[Fraction | None]]) -> Constraint:
    sides: list[Constraint] = []
    for term, limits in zip(_shares(row), corner, strict=True):
        side = _below if term.factor > 0 else _beyond
        for exponent, limit in zip(term.exponents, limits, strict=True):
            if limit is not None:
                sides.append(side(exponent, LogRational(limit), row.name, True))
    return AnyOf(tuple(sides))


def _too_small(row: ProbabilitySum, corner: Sequence[Sequence[Fraction | None]]) -> bool:
    """True if the sum is below its bound at the corner; omitted terms have their suprema, which are never reached."""
    total = -row.bound
    for term, limits in zip(_shares(row), corner, strict=True):
        if all(limit is None for limit in limits):
            total += max(term.factor, Fraction(0))
            continue
        low, high = _probability([v for v in limits if v is not None], 96)
        total += term.factor * (high if term.factor > 0 else low)
    return total < 0


def _corner(row: ProbabilitySum, values: list[list[Fraction]], grid: int) -> list[list[Fraction | None]] | None:
    """The corner in floats, slightly short of the bound, on a grid."""
    shares = [_float_probability(v) for v in values]
    lacks = float(row.bound) - sum(float(t.factor) * p for t, p in zip(_shares(row), shares, strict=True))
    if lacks <= 0:
        return None
    lacks *= 1 - 1e-6
    # A probability whose whole range is small takes less than an equal share.
    rooms = [abs(float(t.factor)) * ((1 - p) if t.factor > 0 else p) for t, p in zip(_shares(row), shares, strict=True)]
    parts = _parts(lacks, rooms)
    result: list[list[Fraction | None]] = []
    for term, exponents, share, part, room in zip(_shares(row), values, shares, parts, rooms, strict=True):
        if part >= room:
            result.append([None] * len(exponents))
            continue
        wanted = share + part / float(term.factor)
        limits = _moved([float(v) for v in exponents], 1 / wanted - 1, term.factor > 0)
        better = -1 if term.factor > 0 else 1
        result.append([_rounded(v, limit, better, grid) for v, limit in zip(exponents, limits, strict=True)])
    return result


def _parts(amount: float, rooms: list[float]) -> list[float]:
    """Splits an amount into equal parts, none larger than its room; the excess is shared by the others."""
    parts = [0.0] * len(rooms)
    for count, i in enumerate(sorted(range(len(rooms)), key=rooms.__getitem__)):
        parts[i] = min(rooms[i], (amount - sum(parts)) / (len(rooms) - count))
    return parts


def _moved(exponents: list[float], wanted: float, falling: bool) -> list[float]:
    """Exponents whose powers of e add up to `wanted`: each power changes by the same amount, and none becomes negative."""
    powers = [exp(min(v, 700.0)) for v in exponents]
    change = wanted - sum(powers)
    if not falling:
        return [log(power + change / len(powers)) for power in powers]
    parts = _parts(-change, powers)
    return [-inf if part >= power else log(power - part) for power, part in zip(powers, parts, strict=True)]


def _rounded(value: Fraction, limit: float, better: int, grid: int) -> Fraction | None:
    """A limit on the grid, no better than the given one and no worse than the value; None if it is infinite."""
    if limit in (inf, -inf):
        return None
    steps = Fraction(limit) * grid
    found = Fraction(steps.__ceil__() if better < 0 else steps.__floor__(), grid)
    return min(found, value) if better < 0 else max(found, value)
