"""Quotients of functions of several scores, as terms of a sum of probabilities.

A calibration of several classes computes f_c(s_c) for the score of each class, and divides each value by the sum of these
values. A term is therefore a mean of numbers w_c with the weights f_c(s_c). Such a mean increases in each score whose w_c is
above the mean, and decreases in each score whose w_c is below the mean.

Over a box of scores, let q be the quotient; U the sum of all f_c, which is between L and H; and M the sum of (w_c - t) f_c for
any number t. Since q - t = M / U, q - t is at most M / H if M <= 0, and at most M / L otherwise; it never exceeds the greatest
quotient on the box minus t. A line in M above these bounds is a sum of functions of one score each; rows of scores bound such
sums (`curve_sums.py`). A line for a part of the box yields a row that is enforced only if every score is inside the part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from treesens.compiler.base.arrays import FloatArray
from treesens.compiler.base.dyadic import Unit
from treesens.compiler.model import Ensemble
from treesens.compiler.query.exact_sums import Member, Value, share_bounds
from treesens.compiler.query.predicted_classes import resolution_of
from treesens.compiler.query.query import AllOf, AnyOf, AtLeast, Constraint, ProbabilitySum, Scores, ScoreTerm, Summand
from treesens.compiler.query.shares import Linear, Probability
from treesens.errors import InternalError
from treesens.extensions.formats.links.calibration import Sigmoid
from treesens.extensions.formats.links.curve_sums import Curve, breaks, curves_of, first_row, on_lines
from treesens.extensions.formats.links.curves import ROUNDING, floats_of, steepest, value_of

Box: TypeAlias = tuple[tuple[Fraction, Fraction], ...]
"""Bounds of the scores of all parts."""

_BITS = 96
_COARSE, _FINE = 1 << 12, 1 << 30
"""Denominators of the free parameters of initial rows, and of rows that exclude an input."""
_CONSTANT = 1 << 48
"""The denominator of constants, which are rounded up."""
_HALVINGS = 12
_STEPS = 30


@dataclass(frozen=True)
class Part(Member):
    """The value of f at one input: `number`, or 1 / (1 + e**number) if `is_share`."""

    number: Fraction
    is_share: bool

    def bounds(self, bits: int, less: Fraction) -> tuple[Fraction, Fraction]:  # noqa: ARG002 - divided by 1 alone
        return share_bounds(self.number, bits) if self.is_share else (self.number, self.number)


@dataclass(frozen=True)
class Quotient(Summand):
    """factor * (the sum of weight * f(score)) / (the sum of f(score)), over all `parts`; if every f(score) is 0, factor * the
    mean of the weights.

    Parts have the factor 1, and f(score) is between 0 and 1.
    """

    weights: tuple[Fraction, ...]
    parts: tuple[Curve, ...]
    rank = 3
    in_floats = True

    @property
    def own(self) -> list[Fraction]:
        """The weights times the factor."""
        return [self.factor * weight for weight in self.weights]

    @property
    def ends(self) -> tuple[Fraction, Fraction]:
        return min(self.own), max(self.own)

    def reads(self) -> tuple[ScoreTerm, ...]:
        return tuple(t for part in self.parts for t in part.scores)

    def arguments(self, scores: Scores) -> tuple[Fraction, ...]:
        return tuple(part.arguments(scores)[0] for part in self.parts)

    def add_to(self, value: Value, arguments: Sequence[Fraction]) -> None:
        members = [_part_at(part, score) for part, score in zip(self.parts, arguments, strict=True)]
        if not any(member.is_share for member in members):
            numbers = [member.number for member in members]
            value.constant += mean_bounds(self.own, numbers, numbers)[0]
            return
        factors: dict[Member, Fraction] = {}
        for member, weight in zip(members, self.own, strict=True):
            factors[member] = factors.get(member, Fraction(0)) + weight
        members.sort(key=lambda member: (member.is_share, member.number))
        value.share(members, factors)

    def on_rows(self, sums: Callable[[Sequence[ScoreTerm]], FloatArray]) -> tuple[FloatArray, FloatArray]:
        ends, weights = [_part_ends(part, sums(part.scores)) for part in self.parts], [float(w) for w in self.own]
        order = sorted(range(len(weights)), key=weights.__getitem__)
        means = []
        for split in range(len(order) + 1):
            for side in (0, 1):
                counts = [ends[i][side if place < split else 1 - side] for place, i in enumerate(order)]
                total = np.sum(counts, axis=0)
                above = np.sum([weights[i] * c for i, c in zip(order, counts, strict=True)], axis=0)
                even = np.full_like(total, sum(weights) / len(weights))
                means.append(np.divide(above, total, out=even, where=total > 0))
        return np.min(means, axis=0), np.max(means, axis=0)

    def better(self, arguments: Sequence[Fraction], name: str) -> list[AtLeast]:
        """Rows such that each better input satisfies one: a part is better or, if its weight is not extreme, different."""
        sides = []
        for weight, part, place in zip(self.own, self.parts, arguments, strict=True):
            if weight > min(self.own):
                sides += replace(part, factor=Fraction(1)).better([place], name)
            if weight < max(self.own):
                sides += replace(part, factor=Fraction(-1)).better([place], name)
        return sides

    def toward(self, arguments: Sequence[Fraction], share: Fraction) -> tuple[Fraction, ...]:  # noqa: ARG002
        """The unchanged arguments, because a part with a weight between the extremes has no best end."""
        return tuple(arguments)

    def relax(self, row: ProbabilitySum) -> Constraint:
        return first_line(row)

    def cut(self, row: ProbabilitySum, scores: Scores) -> Constraint | None:
        return cut_off_quotients(row, scores)

    def error(self, ensemble: Ensemble, off: Callable[[ScoreTerm], Fraction]) -> Fraction:
        """The sum of the errors of the parts, divided by the least sum of the parts.

        If this least sum may be 0, or is so small that rounding errors dominate, any mean of the weights is possible.
        """
        spread = max(self.own) - min(self.own)
        moves = (sum(map(off, part.scores), Fraction(0)) * steepest(part.calibration) for part in self.parts)
        total = sum((move + resolution_of(ensemble) for move in moves), Fraction(0))
        least = sum((value_of(part.calibration, part.low).bounds(64)[0] for part in self.parts), Fraction(0))
        return spread if least <= 2 * total else spread * (2 * total / least + ensemble.link.least_lead)

    def plus(self, other: Summand) -> Quotient | None:
        """The sum of two quotients of the same functions, which is a quotient with added weights; None for other summands."""
        if not isinstance(other, Quotient) or other.parts != self.parts:
            return None
        return Quotient(Fraction(1), tuple(a + b for a, b in zip(self.own, other.own, strict=True)), self.parts)

    def text(self, form: Callable[[Sequence[ScoreTerm], Fraction], str]) -> str:
        parts = [part.text(form) for part in self.parts]
        shown = {Fraction(1): "", Fraction(-1): "-"}
        above = [f"{shown.get(w, f'{w} · ')}{text}" for w, text in zip(self.weights, parts, strict=True) if w]
        return f"({' + '.join(above).replace('+ -', '- ')})/({' + '.join(parts)})"


def quotients_of(row: ProbabilitySum) -> list[Quotient]:
    """The quotients of a sum."""
    return [term for term in row.terms if isinstance(term, Quotient)]


def _part_at(part: Curve, score: Fraction) -> Part:
    if part.calibration.of_probability:
        raise InternalError("a share of functions of probabilities")
    if isinstance(part.calibration, Sigmoid):
        exponent = Fraction(part.calibration.slope) * score + Fraction(part.calibration.intercept)
        return Part(exponent, True) if exponent else Part(Fraction(1, 2), False)
    return Part(value_of(part.calibration, score).constant, False)


def mean_bounds(
    weights: Sequence[Fraction], low: Sequence[Fraction], high: Sequence[Fraction]
) -> tuple[Fraction, Fraction]:
    """The least and the greatest mean of `weights` with coefficients between `low` and `high`; if all are 0, the plain mean.

    At the maximum, all weights above a threshold have their greatest coefficient, and all weights below it have their least.
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


def _part_ends(part: Curve, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
    down, up = (floats_of(part.calibration, lift)(scores) for lift in (-1.0, 1.0))
    return np.maximum(down - ROUNDING, 0.0), up + ROUNDING


# --- rows -------------------------------------------------------------------------------------------------------------------


def first_line(row: ProbabilitySum) -> Constraint:
    """A row of scores that a sum with quotients implies. Each line touches its quotient at a share of the quotient's range; all
    lines use the same share, at which the sum reaches the bound.
    """
    boxes = [_whole_box(term) for term in quotients_of(row)]
    ends = [_ends_on(term, box) for term, box in zip(quotients_of(row), boxes, strict=True)]
    least = [float(low) for low, _ in ends]
    room = [float(high) - low for (_, high), low in zip(ends, least, strict=True)]
    others = sum(float(_most_of(term)) for term in row.terms if not isinstance(term, Quotient))
    lacks = float(row.bound) - others - sum(least)
    share = min(max(lacks / sum(room), 0.0), 1.0) if sum(room) > 0 else 1.0
    targets = [Fraction(round((low + share * r) * _COARSE), _COARSE) for low, r in zip(least, room, strict=True)]
    lines = _with_lines(row, boxes, targets, _COARSE)
    return first_row(lines) if curves_of(lines) else _without_curves(lines)


def _without_curves(row: ProbabilitySum) -> Constraint:
    """A constant constraint: True if the sum reaches the bound with the probabilities at their best values."""
    most = sum(map(_most_of, row.terms), Fraction(0))
    return AllOf(()) if most >= row.bound else AnyOf(())


def _most_of(term: Summand) -> Fraction:
    """The greatest value of a term."""
    if not isinstance(term, Curve):
        return term.ends[1]
    best = term.high if term.factor > 0 else term.low
    return term.factor * value_of(term.calibration, best).bounds(_BITS)[int(term.factor > 0)]


def cut_off_quotients(row: ProbabilitySum, scores: Scores) -> Constraint | None:
    """A constraint that the sum implies and that `scores` violate; None if lines are not close enough to the quotients.

    The range of a score is limited first in the direction that increases the term, and then on both sides.
    """
    terms, curves = quotients_of(row), curves_of(row)
    targets = [_target(term, scores) for term in terms]
    for halving, both in [(h, False) for h in range(_HALVINGS + 1)] + [(h, True) for h in range(2, 2 * _HALVINGS, 2)]:
        boxes, sides = [], []
        for term, target in zip(terms, targets, strict=True):
            box = []
            for weight, part in zip(term.own, term.parts, strict=True):
                gain = weight - target
                ends, beyond_it = _narrowed(part, part.arguments(scores)[0], halving, gain, both, row.name)
                box.append(ends)
                sides += beyond_it
            boxes.append(tuple(box))
        narrow = [_narrowed(c, c.arguments(scores)[0], halving, c.factor, False, row.name) for c in curves]
        sides += [side for _, own in narrow for side in own]
        lines = _with_lines(row, boxes, targets, _FINE, [ends for ends, _ in narrow])
        value = Value()
        value.constant = sum((_most_of(term) for term in lines.terms if isinstance(term, Probability)), -lines.bound)
        for c in curves_of(lines):
            c.add_to(value, c.arguments(scores))
        if value.bounds(64)[0] >= 0:
            continue  # rows of scores are no closer than the lines
        places = [(float(c.arguments(scores)[0]), float(c.low), float(c.high)) for c in curves_of(lines)]
        found = on_lines(lines, [(at, min(low, at), max(high, at)) for at, low, high in places])
        if breaks(found, scores):
            return AnyOf((*sides, found)) if sides else found
    return None


def _narrowed(
    part: Linear, place: Fraction, halving: int, gain: Fraction, both: bool, name: str
) -> tuple[tuple[Fraction, Fraction], list[AtLeast]]:
    """A part of a score's range that contains `place`, and rows such that every score outside the part satisfies one of them.
    The part is limited in the direction in which the term increases or, if `both`, on both sides.
    """
    low, high = min(part.low, place), max(part.high, place)
    if not halving:
        return (low, high), []
    sides: list[AtLeast] = []
    size = Unit(halving).size
    if gain > 0 or both:
        end = max(Fraction(float(place + (high - place) * size)), place)
        if end < high:
            high = end
            sides += replace(part, factor=Fraction(1)).better([end], name)
    if gain < 0 or both:
        end = min(Fraction(float(place - (place - low) * size)), place)
        if end > low:
            low = end
            sides += replace(part, factor=Fraction(-1)).better([end], name)
    return (low, high), sides


def _whole_box(term: Quotient) -> Box:
    return tuple((part.low, part.high) for part in term.parts)


def _values_on(term: Quotient, box: Box) -> tuple[list[Fraction], list[Fraction]]:
    """The least and the greatest value of each f on a box."""
    ends = [
        (value_of(part.calibration, low).bounds(_BITS)[0], value_of(part.calibration, high).bounds(_BITS)[1])
        for part, (low, high) in zip(term.parts, box, strict=True)
    ]
    return [max(low, Fraction(0)) for low, _ in ends], [high for _, high in ends]


def _ends_on(term: Quotient, box: Box) -> tuple[Fraction, Fraction]:
    return mean_bounds(term.own, *_values_on(term, box))


def _target(term: Quotient, scores: Scores) -> Fraction:
    """The approximate quotient at an input."""
    value = Value()
    term.add_to(value, term.arguments(scores))
    return Fraction(round(value.bounds(64)[0] * _FINE), _FINE)


def _with_lines(
    row: ProbabilitySum,
    boxes: Sequence[Box],
    targets: Sequence[Fraction],
    grid: int,
    ranges: Sequence[tuple[Fraction, Fraction]] | None = None,
) -> ProbabilitySum:
    """A sum that the row implies on these boxes, with lines in place of quotients. Other functions have the `ranges`."""
    bound, curves = row.bound, curves_of(row)
    if ranges is not None:
        curves = [replace(c, low=low, high=high) for c, (low, high) in zip(curves, ranges, strict=True)]
    made: list[Summand] = [*(t for t in row.terms if isinstance(t, Probability)), *curves]
    for term, box, target in zip(quotients_of(row), boxes, targets, strict=True):
        weights = [weight - target for weight in term.own]
        slope, constant = line_above(weights, *_values_on(term, box), grid)
        bound -= target + constant
        for weight, part, (low, high) in zip(weights, term.parts, box, strict=True):
            if slope * weight:
                made.append(replace(part, factor=slope * weight, low=low, high=high))
    return ProbabilitySum(tuple(made), bound, row.strict, row.name)


def line_above(
    weights: Sequence[Fraction], low: Sequence[Fraction], high: Sequence[Fraction], grid: int
) -> tuple[Fraction, Fraction]:
    """Numbers a >= 0 and b with M / U <= a M + b, where M is the sum of weight * f, U is the sum of f, and each f is between
    `low` and `high`.
    """
    most = mean_bounds(weights, low, high)[1]
    constant = Fraction((most * _CONSTANT).__ceil__(), _CONSTANT)
    smallest, largest = sum(low, Fraction(0)), sum(high, Fraction(0))
    if not smallest or most <= 0:
        return Fraction(0), constant
    worst = sum((w * (a if w > 0 else b) for w, a, b in zip(weights, low, high, strict=True)), Fraction(0))
    best = sum((w * (b if w > 0 else a) for w, a, b in zip(weights, low, high, strict=True)), Fraction(0))
    # Up to the bend M / L is the smaller bound; from the bend on, the greatest quotient is.
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
