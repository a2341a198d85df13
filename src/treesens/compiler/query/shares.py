"""Terms of sums of probabilities: sigmoids, shares of a softmax, and scores that are probabilities themselves.

A sum S of terms f / (1 + e**v_1 + … + e**v_n), v_j affine in the scores, decreases in every v_j if f > 0, and increases if f <
0. An input at which S is too small excludes all inputs that are worse in every v_j, and a little more. For one f > 0, {S >= c}
is the convex set {ln(e**v_1 + … + e**v_n) <= ln(f / c - 1)}, and a tangent excludes more: by Jensen's inequality sum of l_j v_j
- l_j ln l_j <= ln(sum of e**v_j) for all weights l_j >= 0 with sum 1. Inputs at which a difference of two sigmoids is at least
c >= 0 also form a convex set with tangents (`_Difference`). The rows are exact: logarithms are symbolic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import exp, inf, log

import numpy as np

from treesens.compiler.base.arrays import FloatArray
from treesens.compiler.model import Ensemble
from treesens.compiler.query.bounds import LogRational
from treesens.compiler.query.exact_sums import Value
from treesens.compiler.query.predicted_classes import resolution_of
from treesens.compiler.query.query import (
    AllOf,
    AnyOf,
    AtLeast,
    Constraint,
    LinearForm,
    ProbabilitySum,
    Scores,
    ScoreTerm,
    Summand,
)

_REACH = 40
"""Exponents are moved towards plus or minus this number to find a corner that excludes more inputs."""
_GRIDS = (1 << 16, 1 << 32, 1 << 56)
"""Denominators for weights and corners; coarse denominators come first, because they give short rows."""
_Arguments = Sequence[Fraction]


@dataclass(frozen=True)
class Exponent:
    """constant + sum of coefficient * raw score."""

    terms: tuple[ScoreTerm, ...]
    constant: Fraction = Fraction(0)


@dataclass(frozen=True)
class Probability(Summand):
    """factor / (1 + sum of e**exponent): a sigmoid (one exponent), or the share of one class in a softmax."""

    exponents: tuple[Exponent, ...]
    rank = 0

    @property
    def ends(self) -> tuple[Fraction, Fraction]:
        return min(self.factor, Fraction(0)), max(self.factor, Fraction(0))

    def reads(self) -> tuple[ScoreTerm, ...]:
        return tuple(t for exponent in self.exponents for t in exponent.terms)

    def arguments(self, scores: Scores) -> tuple[Fraction, ...]:
        return tuple(
            e.constant + sum((t.coefficient * scores[t.point][t.output] for t in e.terms), Fraction(0))
            for e in self.exponents
        )

    def add_to(self, value: Value, arguments: _Arguments) -> None:
        value.power_share(self.factor, arguments)

    def on_rows(self, sums: Callable[[Sequence[ScoreTerm]], FloatArray]) -> tuple[FloatArray, FloatArray]:
        powers = (np.exp(np.minimum(sums(e.terms) + float(e.constant), 700.0)) for e in self.exponents)
        share = float(self.factor) / np.asarray(1 + sum(powers))
        return share, share

    def better(self, arguments: _Arguments, name: str) -> list[AtLeast]:
        return self.past(arguments, name)

    def past(self, arguments: Sequence[Fraction | None], name: str) -> list[AtLeast]:
        """The rows of `better`, except for exponents that are None."""
        side = _below if self.factor > 0 else _beyond
        both = zip(self.exponents, arguments, strict=True)
        return [side(exponent, LogRational(v), name, True) for exponent, v in both if v is not None]

    def toward(self, arguments: _Arguments, share: Fraction) -> tuple[Fraction, ...]:
        best = -_REACH if self.factor > 0 else _REACH
        return tuple(v + (best - v) * share for v in arguments)

    def relax(self, row: ProbabilitySum) -> Constraint:
        return _first_rows(row)

    def cut(self, row: ProbabilitySum, scores: Scores) -> Constraint | None:
        values = [list(term.arguments(scores)) for term in row.terms]
        return _tangent_at(row, values) or _tangent_of_difference(row, values) or _corner_at(row, values)

    def error(self, ensemble: Ensemble, off: Callable[[ScoreTerm], Fraction]) -> Fraction:
        """A quarter of the greatest error of an exponent, plus the rounding of the probability itself."""
        moves = [sum(map(off, exponent.terms), Fraction(0)) for exponent in self.exponents]
        return abs(self.factor) * (max(moves, default=Fraction(0)) / 4 + resolution_of(ensemble))

    def text(self, form: Callable[[Sequence[ScoreTerm], Fraction], str]) -> str:
        return f"1/(1 + {' + '.join(f'exp({form(e.terms, e.constant)})' for e in self.exponents)})"

    def lead(self) -> tuple[tuple[ScoreTerm, ...], Fraction]:
        """The score with which the probability grows: a class's mean lead over the others, or a sigmoid's negated exponent."""
        count = len(self.exponents)
        terms = tuple(ScoreTerm(t.point, t.output, -t.coefficient / count) for t in self.reads())
        return terms, -sum((e.constant for e in self.exponents), Fraction(0)) / count


@dataclass(frozen=True)
class Linear(Summand):
    """factor * score, for scores that are themselves probabilities. At all inputs the score is between `low` and `high`."""

    scores: tuple[ScoreTerm, ...]
    low: Fraction
    high: Fraction
    rank = 1

    @property
    def ends(self) -> tuple[Fraction, Fraction]:
        one, other = self.factor * self.low, self.factor * self.high
        return min(one, other), max(one, other)

    def reads(self) -> tuple[ScoreTerm, ...]:
        return self.scores

    def arguments(self, scores: Scores) -> tuple[Fraction, ...]:
        return (sum((t.coefficient * scores[t.point][t.output] for t in self.scores), Fraction(0)),)

    def add_to(self, value: Value, arguments: _Arguments) -> None:
        value.constant += self.factor * arguments[0]

    def on_rows(self, sums: Callable[[Sequence[ScoreTerm]], FloatArray]) -> tuple[FloatArray, FloatArray]:
        found = float(self.factor) * sums(self.scores)
        return found, found

    def better(self, arguments: _Arguments, name: str) -> list[AtLeast]:
        sign = 1 if self.factor > 0 else -1
        scores = tuple(ScoreTerm(t.point, t.output, sign * t.coefficient) for t in self.scores)
        return [AtLeast(LinearForm(scores), LogRational(sign * arguments[0]), True, name)]

    def toward(self, arguments: _Arguments, share: Fraction) -> tuple[Fraction, ...]:
        return (arguments[0] + ((self.high if self.factor > 0 else self.low) - arguments[0]) * share,)

    def relax(self, row: ProbabilitySum) -> Constraint:
        return line_row(row, {term: (Fraction(1), Fraction(0)) for term in row.terms if isinstance(term, Linear)})

    def cut(self, row: ProbabilitySum, scores: Scores) -> Constraint | None:  # noqa: ARG002
        return None

    def error(self, ensemble: Ensemble, off: Callable[[ScoreTerm], Fraction]) -> Fraction:
        size = max(abs(self.low), abs(self.high), Fraction(1))
        return abs(self.factor) * (sum(map(off, self.scores), Fraction(0)) + size * resolution_of(ensemble))

    def text(self, form: Callable[[Sequence[ScoreTerm], Fraction], str]) -> str:
        return f"({form(self.scores, Fraction(0))})"

    def lead(self) -> tuple[tuple[ScoreTerm, ...], Fraction]:
        return self.scores, Fraction(0)


def line_row(row: ProbabilitySum, lines: Mapping[Summand, tuple[Fraction, Fraction]]) -> AtLeast:
    """The row: sum of factor * (slope * score + constant) over `lines`, plus the suprema of other terms, reaches the bound."""
    bound = row.bound
    coefficients: dict[tuple[int, int], Fraction] = {}
    for term in row.terms:
        if term not in lines:
            bound -= term.ends[1]
            continue
        slope, constant = lines[term]
        bound -= term.factor * constant
        for t in term.reads():
            key = (t.point, t.output)
            coefficients[key] = coefficients.get(key, Fraction(0)) + term.factor * slope * t.coefficient
    scores = tuple(ScoreTerm(*key, c) for key, c in coefficients.items() if c)
    return AtLeast(LinearForm(scores), LogRational(bound), False, row.name)


# --- rows of probabilities ---------------------------------------------------------------------------------------------------


def _shares(row: ProbabilitySum) -> list[Probability]:
    return [term for term in row.terms if isinstance(term, Probability)]


def _first_rows(row: ProbabilitySum) -> Constraint:
    """Consequences for each single probability, with all other terms at their best values."""
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
    """The row exponent <= limit (< limit if strict)."""
    terms = tuple(ScoreTerm(t.point, t.output, -t.coefficient) for t in exponent.terms)
    return AtLeast(LinearForm(terms), LogRational(exponent.constant) + -limit, strict, name)


def _beyond(exponent: Exponent, limit: LogRational, name: str, strict: bool = False) -> AtLeast:
    """The row exponent >= limit (> limit if strict)."""
    return AtLeast(LinearForm(exponent.terms), limit + LogRational(-exponent.constant), strict, name)


def _weighted(term: Probability, weights: Sequence[Fraction], limit: LogRational, row: ProbabilitySum) -> AtLeast:
    """The row (sum of weight * exponent - weight * ln(weight)) <= limit, which follows from ln(sum of e**exponent) <= limit."""
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
    """The tangent that excludes the exponents `values` of a probability that is too small; None if no tangent does."""
    term = _shares(row)[0]
    share = row.bound / term.factor
    if len(row.terms) > 1 or term.factor < 0 or not 0 < share < 1:
        return None
    limit = LogRational.ln((1 - share) / share)
    for grid in _GRIDS:
        weights = _weights(values[0], grid)
        made = _weighted(term, weights, limit, row)
        # At these exponents, the form of the row is minus the weighted sum; both include the constants.
        inside = -sum((w * v for w, v in zip(weights, values[0], strict=True)), Fraction(0))
        inside += sum((w * e.constant for w, e in zip(weights, term.exponents, strict=True)), Fraction(0))
        low, _ = made.bound.enclose(128)
        if inside < low:
            return made
    return None


def _weights(values: list[Fraction], grid: int) -> list[Fraction]:
    """The softmax of some exponents, as multiples of 1 / grid with sum 1."""
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
    and so with y: the derivative with respect to p is c ((1 - c) (1 - 2 p) + 2 p**2) over a square, and the bracket has no
    root. So g is convex, and every tangent x - g' y >= g - g' logit(p) holds.
    """

    one: Exponent
    other: Exponent
    least: Fraction

    @staticmethod
    def of(row: ProbabilitySum) -> _Difference | None:
        """The difference of two sigmoids to which a sum is equivalent; None if the sum has another form."""
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
        """The probability p of the boundary point whose distances in x and in y from the point (-one, -other) are equal."""
        low, high = 0.0, 2 * _REACH + abs(one) + abs(other)
        for _ in range(100):
            middle = (low + high) / 2
            if _sigmoid(middle - one) - _sigmoid(-other - middle) < self.least:
                low = middle
            else:
                high = middle
        return _sigmoid(-other - high)


def _float_probability(exponents: list[Fraction]) -> float:
    return 1 / (1 + sum(exp(min(float(v), 700.0)) for v in exponents))


def _sigmoid(x: float) -> float:
    return 1 / (1 + exp(min(-x, 700.0)))


def _tangent_of_difference(row: ProbabilitySum, values: list[list[Fraction]]) -> AtLeast | None:
    """The tangent that excludes the exponents `values` of a difference that is too small; None if no tangent does."""
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
        # The form of the row at these exponents, and the additional constants of the bound.
        slope = on_grid * (1 - on_grid) / ((found.least + on_grid) * (1 - found.least - on_grid))
        inside = found.one.constant - one + slope * (other - found.other.constant)
        low, _ = made.bound.enclose(128)
        if inside < low:
            return made
    return None


# --- corners -----------------------------------------------------------------------------------------------------------------


def _corner_at(row: ProbabilitySum, values: list[list[Fraction]]) -> Constraint | None:
    """The constraint that some exponent is strictly better than at a corner, at which the sum is still too small. The corner is
    better than the exponents `values` by the amount that the sum lacks; exponents that cannot suffice alone are omitted.
    """
    for grid in _GRIDS:
        corner = _corner(row, values, grid)
        if corner is not None and _too_small(row, corner):
            sides = (term.past(limits, row.name) for term, limits in zip(_shares(row), corner, strict=True))
            return AnyOf(tuple(side for of_term in sides for side in of_term))
    return None


def _too_small(row: ProbabilitySum, corner: Sequence[Sequence[Fraction | None]]) -> bool:
    """True if the sum is below its bound at the corner; omitted exponents contribute their suprema, which are never reached."""
    value = Value()
    value.constant = -row.bound
    for term, limits in zip(_shares(row), corner, strict=True):
        known = [v for v in limits if v is not None]
        if known:
            value.power_share(term.factor, known)
        else:
            value.constant += max(term.factor, Fraction(0))
    return value.bounds(96)[1] < 0


def _corner(row: ProbabilitySum, values: list[list[Fraction]], grid: int) -> list[list[Fraction | None]] | None:
    """A corner on a grid, computed in floats, at which the sum is slightly short of its bound."""
    shares = [_float_probability(v) for v in values]
    lacks = float(row.bound) - sum(float(t.factor) * p for t, p in zip(_shares(row), shares, strict=True))
    if lacks <= 0:
        return None
    lacks *= 1 - 1e-6
    # A probability with a small remaining range takes less than an equal share.
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
    """Splits an amount into equal parts; a part larger than its room is cut to the room, and other parts share the rest."""
    parts = [0.0] * len(rooms)
    for count, i in enumerate(sorted(range(len(rooms)), key=rooms.__getitem__)):
        parts[i] = min(rooms[i], (amount - sum(parts)) / (len(rooms) - count))
    return parts


def _moved(exponents: list[float], wanted: float, falling: bool) -> list[float]:
    """Changes exponents so that their powers of e add up to `wanted`; all powers change equally, as far as possible."""
    powers = [exp(min(v, 700.0)) for v in exponents]
    change = wanted - sum(powers)
    if not falling:
        return [log(power + change / len(powers)) for power in powers]
    parts = _parts(-change, powers)
    return [-inf if part >= power else log(power - part) for power, part in zip(powers, parts, strict=True)]


def _rounded(value: Fraction, limit: float, better: int, grid: int) -> Fraction | None:
    """A limit on the grid that is not better than `limit` and not worse than the value; None for an infinite limit."""
    if limit in (inf, -inf):
        return None
    steps = Fraction(limit) * grid
    found = Fraction(steps.__ceil__() if better < 0 else steps.__floor__(), grid)
    return min(found, value) if better < 0 else max(found, value)
