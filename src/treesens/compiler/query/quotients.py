"""Quotients of functions of several scores, as terms of a sum of probabilities.

A calibration of several classes applies f_c(s_c) to the score of each class, and divides each by the sum of all. So a term is a
mean of weights w_c, weighted by f_c(s_c). It increases in the scores of weights above it and decreases in those of weights
below it.

At one input such a term is a rational number, or a quotient of sums of rational powers of e: several of them are multiplied
out, and a sum of powers is 0 only if every coefficient is (Lindemann and Weierstrass; `powers.py`).

Over a box of scores let q be the quotient, U the sum of all f_c, and M the sum of (w_c - t) f_c for any number t.
Then q - t = M / U, and U lies between L and H. So q - t is at most M / H if M <= 0, and at most M / L if not, and it is never
more than the greatest quotient of the box less t. A line in M above all this is a sum of functions of one score each, for which
there are rows of scores (`curve_sums.py`). For another part of the box there is another line: it makes a row that holds unless
some score is beyond that part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from typing import TypeAlias

import numpy as np

from treesens.compiler.base.arrays import FloatArray
from treesens.compiler.base.dyadic import ScaledIntegers, Unit
from treesens.compiler.query.curve_sums import beyond, breaks, curves_of, first_row, line_row, score_at, value_at
from treesens.compiler.query.curves import ROUNDING, Value, floats_of, share_bounds
from treesens.compiler.query.powers import Powers, added, multiplied
from treesens.compiler.query.query import (
    AllOf,
    AnyOf,
    AtLeast,
    Constraint,
    Curve,
    Probability,
    ProbabilitySum,
    Quotient,
)

Scores: TypeAlias = Sequence[Sequence[Fraction]] | Mapping[int, Sequence[Fraction]]
Part: TypeAlias = tuple[Fraction, bool]
"""The value of f at one input: a rational number (False), or the exponent v of 1 / (1 + e**v) (True)."""
Box: TypeAlias = tuple[tuple[Fraction, Fraction], ...]
"""Bounds of the scores of all parts."""

_BITS = 96
_COARSE, _FINE = 1 << 12, 1 << 30
"""Denominators of free parameters: of initial rows, and of rows that exclude an input."""
_CONSTANT = 1 << 48
"""Denominator of constants, which are rounded up to multiples of it."""
_HALVINGS = 12
_STEPS = 30


def quotients_of(row: ProbabilitySum) -> list[Quotient]:
    """The quotients of a sum."""
    return [term for term in row.terms if isinstance(term, Quotient)]


def has_quotients(row: ProbabilitySum) -> bool:
    """True if a sum has quotients among its terms."""
    return any(isinstance(term, Quotient) for term in row.terms)


def joined(terms: Sequence[Quotient]) -> tuple[Quotient, ...]:
    """Combines quotients of the same functions by adding their weights; empty if all weights are 0."""
    found: dict[tuple[Curve, ...], list[Fraction]] = {}
    for term in terms:
        own = found.setdefault(term.parts, [Fraction(0)] * len(term.parts))
        for i, weight in enumerate(term.weights):
            own[i] += term.factor * weight
    return tuple(Quotient(Fraction(1), tuple(weights), parts) for parts, weights in found.items() if any(weights))


# --- at one input -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ratio:
    """A quotient at one input with at least one irrational part."""

    weights: tuple[Fraction, ...]
    parts: tuple[Part, ...]

    def bounds(self, bits: int) -> tuple[Fraction, Fraction]:
        """An enclosure of the quotient."""
        ends = [share_bounds(v, bits) if is_power else (v, v) for v, is_power in self.parts]
        return mean_bounds(self.weights, [low for low, _ in ends], [high for _, high in ends])

    def powers(self) -> tuple[Powers, Powers]:
        """Numerator and denominator, multiplied by the denominators of all parts, as sums of powers of e."""
        one = {Fraction(0): Fraction(1)}
        below = [{Fraction(0): Fraction(1)} if not p else added(one, {v: Fraction(1)}) for v, p in self.parts]
        upper: Powers = {}
        lower: Powers = {}
        for i, ((v, is_power), weight) in enumerate(zip(self.parts, self.weights, strict=True)):
            mine = multiplied([one if is_power else {Fraction(0): v}, *(d for j, d in enumerate(below) if j != i)])
            lower = added(lower, mine)
            upper = added(upper, {power: weight * c for power, c in mine.items()})
        return upper, lower


def ratios_at(row: ProbabilitySum, scores: Scores) -> tuple[Fraction, list[Ratio]]:
    """The quotients' part of a sum at one input: a rational number, and quotients combined by their functions."""
    constant, found = Fraction(0), dict[tuple[Part, ...], list[Fraction]]()
    for term in quotients_of(row):
        parts = tuple(_part_at(part, scores) for part in term.parts)
        weights = [term.factor * w for w in term.weights]
        if not any(is_power for _, is_power in parts):
            constant += mean_bounds(weights, [v for v, _ in parts], [v for v, _ in parts])[0]
            continue
        own = found.setdefault(parts, [Fraction(0)] * len(parts))
        for i, weight in enumerate(weights):
            own[i] += weight
    ratios = []
    for parts, weights in found.items():
        if len(set(weights)) == 1:
            constant += weights[0]
        else:
            ratios.append(Ratio(tuple(weights), parts))
    return constant, ratios


def _part_at(part: Curve, scores: Scores) -> Part:
    value = _value(part, score_at(part, scores))
    if value.is_rational:
        return value.constant, False
    ((exponent, factor),) = value.shares.items()
    # `Value` holds positive exponents: 1 / (1 + e**v) is 1 - 1 / (1 + e**-v).
    return (exponent, True) if factor > 0 else (-exponent, True)


def _value(part: Curve, score: Fraction) -> Value:
    value = Value()
    value.add(Fraction(1), part.calibration, score)
    return value


def mean_bounds(
    weights: Sequence[Fraction], low: Sequence[Fraction], high: Sequence[Fraction]
) -> tuple[Fraction, Fraction]:
    """The least and the greatest mean of weights if each one's coefficient is between `low` and `high`; if all are 0, equal.

    The maximum gives all weights above some threshold their greatest coefficient, and those below it their least.
    """
    order = sorted(range(len(weights)), key=weights.__getitem__)
    means = []
    for split in range(len(order) + 1):
        for upper, lower in ((high, low), (low, high)):
            counts = [lower[i] if place < split else upper[i] for place, i in enumerate(order)]
            total = sum(counts, Fraction(0))
            if total:
                means.append(sum((c * weights[i] for c, i in zip(counts, order, strict=True)), Fraction(0)) / total)
            else:
                means.append(sum(weights, Fraction(0)) / len(weights))
    return min(means), max(means)


def multiplied_out(
    ratios: Sequence[Ratio], shares: Mapping[Fraction, Fraction], constant: Fraction, most: int
) -> Powers | None:
    """constant + the sum of ratios + the sum of factor / (1 + e**exponent), times all denominators, which are positive: the
    non-zero coefficients by power of e. None if there are more than `most` products.
    """
    fractions = [ratio.powers() for ratio in ratios]
    one = Fraction(1)
    fractions += [({Fraction(0): factor}, {Fraction(0): one, v: one}) for v, factor in shares.items()]
    if prod(len(lower) for _, lower in fractions) * (1 + len(fractions)) > most:
        return None
    total = multiplied([{Fraction(0): constant} if constant else {}, *(lower for _, lower in fractions)])
    for i, (upper, _) in enumerate(fractions):
        total = added(total, multiplied([upper, *(lower for j, (_, lower) in enumerate(fractions) if j != i)]))
    return total


def quotient_ends(
    row: ProbabilitySum, scores: Mapping[int, ScaledIntegers], count: int
) -> tuple[FloatArray, FloatArray]:
    """Bounds on the quotients' part of a sum, for many inputs: float64[count] twice."""
    least, most = np.zeros(count), np.zeros(count)
    for term in quotients_of(row):
        ends = [_part_ends(part, scores, count) for part in term.parts]
        weights = [float(term.factor * w) for w in term.weights]
        order = sorted(range(len(weights)), key=weights.__getitem__)
        means = []
        for split in range(len(order) + 1):
            for side in (0, 1):
                counts = [ends[i][side if place < split else 1 - side] for place, i in enumerate(order)]
                total = np.sum(counts, axis=0)
                above = np.sum([weights[i] * c for i, c in zip(order, counts, strict=True)], axis=0)
                even = np.full(count, sum(weights) / len(weights))
                means.append(np.divide(above, total, out=even, where=total > 0))
        least, most = least + np.min(means, axis=0), most + np.max(means, axis=0)
    return least, most


def _part_ends(part: Curve, scores: Mapping[int, ScaledIntegers], count: int) -> tuple[FloatArray, FloatArray]:
    at = np.zeros(count)
    for t in part.scores:
        at += float(t.coefficient) * Unit(scores[t.point].shift).doubles(scores[t.point].values[:, t.output])
    down, up = (floats_of(part.calibration, lift)(at) for lift in (-1.0, 1.0))
    return np.maximum(down - ROUNDING, 0.0), up + ROUNDING


# --- rows -------------------------------------------------------------------------------------------------------------------


def first_line(row: ProbabilitySum) -> Constraint:
    """A row of scores implied by a sum with quotients: by lines above them that touch where equal shares of all ranges reach
    the bound.
    """
    boxes = [_whole_box(term) for term in quotients_of(row)]
    ends = [_ends_on(term, box) for term, box in zip(quotients_of(row), boxes, strict=True)]
    least = [float(low) for low, _ in ends]
    room = [float(high) - low for (_, high), low in zip(ends, least, strict=True)]
    others = sum(float(_most_of(term)) for term in row.terms if isinstance(term, Probability | Curve))
    lacks = float(row.bound) - others - sum(least)
    share = min(max(lacks / sum(room), 0.0), 1.0) if sum(room) > 0 else 1.0
    targets = [Fraction(round((low + share * r) * _COARSE), _COARSE) for low, r in zip(least, room, strict=True)]
    lines = _with_lines(row, boxes, targets, _COARSE)
    return first_row(lines) if curves_of(lines) else _without_curves(lines)


def _without_curves(row: ProbabilitySum) -> Constraint:
    """The rest of a sum whose quotients count as numbers, with probabilities at their best values."""
    most = sum((_most_of(term) for term in row.terms if isinstance(term, Probability | Curve)), Fraction(0))
    return AllOf(()) if most >= row.bound else AnyOf(())


def _most_of(term: Probability | Curve) -> Fraction:
    """The greatest value of a term."""
    if isinstance(term, Probability):
        return max(term.factor, Fraction(0))
    return term.factor * _value(term, term.high if term.factor > 0 else term.low).bounds(_BITS)[int(term.factor > 0)]


def cut_off_quotients(row: ProbabilitySum, scores: Scores) -> Constraint | None:
    """A constraint implied by a sum with quotients and violated by scores; None if lines are not close enough to it.

    First the range of a score is limited in the direction in which it helps, then on both sides.
    """
    terms, curves = quotients_of(row), curves_of(row)
    targets = [_target(term, scores) for term in terms]
    for halving, both in [(h, False) for h in range(_HALVINGS + 1)] + [(h, True) for h in range(2, 2 * _HALVINGS, 2)]:
        boxes, sides = [], []
        for term, target in zip(terms, targets, strict=True):
            box = []
            for weight, part in zip(term.weights, term.parts, strict=True):
                gain = term.factor * weight - target
                ends, beyond_it = _narrowed(part, score_at(part, scores), halving, gain, both, row.name)
                box.append(ends)
                sides += beyond_it
            boxes.append(tuple(box))
        narrow = [_narrowed(c, score_at(c, scores), halving, c.factor, False, row.name) for c in curves]
        sides += [side for _, own in narrow for side in own]
        lines = _with_lines(row, boxes, targets, _FINE, [ends for ends, _ in narrow])
        chances = sum((_most_of(term) for term in lines.terms if isinstance(term, Probability)), Fraction(0))
        if value_at(lines, scores).bounds(64)[0] + chances >= lines.bound:
            continue  # no row of scores is closer than the lines themselves
        places = [(float(score_at(c, scores)), float(c.low), float(c.high)) for c in curves_of(lines)]
        found = line_row(lines, [(at, min(low, at), max(high, at)) for at, low, high in places])
        if breaks(found, scores):
            return AnyOf((*sides, found)) if sides else found
    return None


def _narrowed(
    part: Curve, place: Fraction, halving: int, gain: Fraction, both: bool, name: str
) -> tuple[tuple[Fraction, Fraction], list[AtLeast]]:
    """A part of a score's range around a position, and the condition for being outside it: in the direction in which it gains,
    or in both.
    """
    low, high = min(part.low, place), max(part.high, place)
    if not halving:
        return (low, high), []
    sides = []
    size = Unit(halving).size
    if gain > 0 or both:
        end = max(Fraction(float(place + (high - place) * size)), place)
        if end < high:
            high = end
            sides.append(beyond(replace(part, factor=Fraction(1)), end, name))
    if gain < 0 or both:
        end = min(Fraction(float(place - (place - low) * size)), place)
        if end > low:
            low = end
            sides.append(beyond(replace(part, factor=Fraction(-1)), end, name))
    return (low, high), sides


def past_quotients(row: ProbabilitySum, scores: Scores) -> list[AtLeast]:
    """The condition "strictly better than at an input" in some part of a quotient, or only different if the weight is neither
    the greatest nor the least: an input that violates it has no greater quotient.
    """
    sides = []
    for term in quotients_of(row):
        weights = [term.factor * w for w in term.weights]
        for weight, part in zip(weights, term.parts, strict=True):
            place = score_at(part, scores)
            if weight > min(weights):
                sides.append(beyond(replace(part, factor=Fraction(1)), place, row.name))
            if weight < max(weights):
                sides.append(beyond(replace(part, factor=Fraction(-1)), place, row.name))
    return sides


def _whole_box(term: Quotient) -> Box:
    return tuple((part.low, part.high) for part in term.parts)


def _values_on(term: Quotient, box: Box) -> tuple[list[Fraction], list[Fraction]]:
    """Bounds of each f on a box."""
    ends = [
        (_value(part, low).bounds(_BITS)[0], _value(part, high).bounds(_BITS)[1])
        for part, (low, high) in zip(term.parts, box, strict=True)
    ]
    return [max(low, Fraction(0)) for low, _ in ends], [high for _, high in ends]


def _ends_on(term: Quotient, box: Box) -> tuple[Fraction, Fraction]:
    return mean_bounds([term.factor * w for w in term.weights], *_values_on(term, box))


def _target(term: Quotient, scores: Scores) -> Fraction:
    """The quotient at an input, approximately."""
    constant, ratios = ratios_at(ProbabilitySum((term,), Fraction(0)), scores)
    near = constant + sum((ratio.bounds(64)[0] for ratio in ratios), Fraction(0))
    return Fraction(round(near * _FINE), _FINE)


def _with_lines(
    row: ProbabilitySum,
    boxes: Sequence[Box],
    targets: Sequence[Fraction],
    grid: int,
    ranges: Sequence[tuple[Fraction, Fraction]] | None = None,
) -> ProbabilitySum:
    """A sum implied on these boxes, with lines in place of its quotients. Other functions of scores have the `ranges`."""
    bound, curves = row.bound, curves_of(row)
    if ranges is not None:
        curves = [replace(c, low=low, high=high) for c, (low, high) in zip(curves, ranges, strict=True)]
    made: list[Probability | Curve] = [*(t for t in row.terms if isinstance(t, Probability)), *curves]
    for term, box, target in zip(quotients_of(row), boxes, targets, strict=True):
        weights = [term.factor * w - target for w in term.weights]
        slope, constant = line_above(weights, *_values_on(term, box), grid)
        bound -= target + constant
        for weight, part, (low, high) in zip(weights, term.parts, box, strict=True):
            if slope * weight:
                made.append(replace(part, factor=slope * weight, low=low, high=high))
    return ProbabilitySum(tuple(made), bound, row.strict, row.name)


def line_above(
    weights: Sequence[Fraction], low: Sequence[Fraction], high: Sequence[Fraction], grid: int
) -> tuple[Fraction, Fraction]:
    """a >= 0 and b with M / U <= a M + b, where M is the sum of weight * f, U the sum of f, and each f is between `low` and
    `high`.
    """
    most = mean_bounds(weights, low, high)[1]
    constant = Fraction((most * _CONSTANT).__ceil__(), _CONSTANT)
    smallest, largest = sum(low, Fraction(0)), sum(high, Fraction(0))
    if not smallest or most <= 0:
        return Fraction(0), constant
    worst = sum((w * (a if w > 0 else b) for w, a, b in zip(weights, low, high, strict=True)), Fraction(0))
    best = sum((w * (b if w > 0 else a) for w, a, b in zip(weights, low, high, strict=True)), Fraction(0))
    # Up to the bend M / L is the smaller one, from there on the greatest quotient is.
    bend = min(best, smallest * most)
    at_bend = bend / smallest
    if worst >= bend:
        return Fraction(0), constant
    at_worst = worst / (largest if worst < 0 else smallest)
    slope = Fraction(round((at_bend - at_worst) / (bend - worst) * grid), grid)
    # The maximum is convex from the worst point to the bend, and beyond the bend only the line increases.
    places = (worst, at_worst), (bend, at_bend)
    if slope <= 0:
        return Fraction(0), constant
    found = max(value - slope * m for m, value in places)
    return slope, Fraction((found * _CONSTANT).__ceil__(), _CONSTANT)
