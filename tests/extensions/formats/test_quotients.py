"""Quotients of calibrated scores at one input, ties included, and rows that follow from sums of them: judged in 60 decimals."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from treesens.compiler.base.dyadic import to_scaled
from treesens.compiler.query.evaluate import Inputs, holds
from treesens.compiler.query.probabilities import excluding, reaches, reaches_on_rows, relaxed
from treesens.compiler.query.query import ProbabilitySum, ScoreTerm
from treesens.compiler.query.shares import Exponent, Probability
from treesens.extensions.formats.links.calibration import Isotonic, Learnt, Sigmoid
from treesens.extensions.formats.links.curve_sums import Curve
from treesens.extensions.formats.links.quotients import Quotient, line_above, mean_bounds

FOLDS, CLASSES = 2, 3
OUTPUTS = FOLDS * CLASSES
LOW, HIGH = Fraction(-4), Fraction(4)
FLAT = Isotonic((-1.0, 0.0, 1.0), (0.0, 0.0, 0.5))


def decimal(number: Fraction) -> Decimal:
    return Decimal(number.numerator) / number.denominator


def calibration_of(random: np.random.Generator) -> Learnt:
    kind = random.integers(3)
    if kind == 0:
        return Sigmoid(-float(random.uniform(0.2, 6)), float(random.normal()))
    if kind == 1:
        return FLAT
    knots = np.unique(random.normal(0, 2, 5).round(3))
    values = np.sort(random.integers(0, 9, len(knots)) / 8)
    return Isotonic(tuple(knots.tolist()), tuple(values.tolist()))


def parts_of(random: np.random.Generator, point: int, fold: int) -> tuple[Curve, ...]:
    return tuple(
        Curve(
            Fraction(1),
            (ScoreTerm(point, CLASSES * fold + i, Fraction(1, 2)),),
            LOW / 2,
            HIGH / 2,
            calibration_of(random),
        )
        for i in range(CLASSES)
    )


def value_of(calibration: Learnt | None, score: Fraction) -> Decimal:
    """f at one score, from its definition."""
    if isinstance(calibration, Sigmoid):
        v = Fraction(calibration.slope) * score + Fraction(calibration.intercept)
        return 1 / (1 + decimal(v).exp())
    assert isinstance(calibration, Isotonic)
    x, y = [Fraction(v) for v in calibration.scores], [Fraction(v) for v in calibration.values]
    if score <= x[0]:
        return decimal(y[0])
    for left, right, low, high in zip(x, x[1:], y, y[1:], strict=False):
        if score <= right:
            return decimal(low + (high - low) * (score - left) / (right - left))
    return decimal(y[-1])


def decimal_value(row: ProbabilitySum, scores: list[list[Fraction]]) -> Decimal:
    """The sum minus its bound, in 60 decimals."""
    with localcontext(prec=60):
        total = -decimal(row.bound)
        for term in row.terms:
            if isinstance(term, Quotient):
                counts = [
                    value_of(p.calibration, sum(t.coefficient * scores[t.point][t.output] for t in p.scores))  # type: ignore[arg-type]
                    for p in term.parts
                ]
                weights = [decimal(w) for w in term.weights]
                whole = sum(counts)
                mean = (
                    sum(w * c for w, c in zip(weights, counts, strict=True)) / whole
                    if whole
                    else sum(weights) / len(weights)
                )
                total += decimal(term.factor) * mean
            elif isinstance(term, Curve):
                score = sum((t.coefficient * scores[t.point][t.output] for t in term.scores), Fraction(0))
                total += decimal(term.factor) * value_of(term.calibration, score)
            else:
                below = Decimal(1)
                for e in term.exponents:
                    v = e.constant + sum(t.coefficient * scores[t.point][t.output] for t in e.terms)
                    below += decimal(Fraction(v)).exp()
                total += decimal(term.factor) / below
        return total


def drawn(random: np.random.Generator) -> list[list[Fraction]]:
    """Scores within the ranges, some of them equal, or at the ends."""
    values = np.clip(random.normal(0, 2, (2, OUTPUTS)).round(int(random.integers(0, 4))), -4, 4)
    return [[Fraction(float(v)) for v in point] for point in values]


def random_row(random: np.random.Generator) -> ProbabilitySum:
    """The lead of a class over another one, the probability of one, or the difference of two points, in some folds."""
    form, factor = random.integers(3), Fraction(int(random.integers(1, 4)))
    terms: list[Quotient | Curve | Probability] = []
    for fold in range(FOLDS):
        here, there = parts_of(random, 0, fold), parts_of(random, 1, fold)
        one, other = (Fraction(1), Fraction(0), Fraction(0)), (Fraction(0), Fraction(1), Fraction(0))
        half = Fraction(1, FOLDS)
        if form == 0:
            lead = Quotient(half, one, here).plus(Quotient(-half * factor, other, here))
            assert lead is not None
            terms.append(lead)
        else:
            terms.append(Quotient(half, one, here))
        if form == 2:
            terms.append(Quotient(-half, one, there))
    if random.integers(3) == 0:
        terms.append(Curve(Fraction(1, 2), (ScoreTerm(1, 0, Fraction(1)),), LOW, HIGH, Sigmoid(-1.0, 0.0)))
    if random.integers(4) == 0:
        exponent = Exponent((ScoreTerm(0, 1, Fraction(1)),))
        terms.append(Probability(Fraction(-1, 3), (exponent,)))
    near = decimal_value(ProbabilitySum(tuple(terms), Fraction(0)), drawn(random))
    return ProbabilitySum(tuple(terms), Fraction(str(round(near, 3))), bool(random.integers(2)))


def inputs(scores: list[list[Fraction]]) -> Inputs:
    return Inputs(np.zeros((2, 1)), np.zeros((2, 1), np.int32), tuple(map(tuple, scores)))


@pytest.mark.parametrize("seed", range(14))
@pytest.mark.sampled
def test_rows_follow_from_the_sum_and_rule_out_what_breaks_it(seed: int) -> None:
    """The bound is hardly reached at one input, and others, near and far, are ruled out: this one never is."""
    random = np.random.default_rng(seed)
    free, kept = random_row(random), drawn(random)
    row = replace(free, bound=free.bound + Fraction(str(decimal_value(free, kept))) - Fraction(1, 10**9))
    others = [drawn(random) for _ in range(12)]
    for wide in (0.3, 0.01):
        others += [[[nudged(v, wide, random) for v in point] for point in kept] for _ in range(6)]
    assert reaches(row, kept)
    assert holds(relaxed(row), inputs(kept))
    ruled_out = 0
    for scores in others:
        if decimal_value(row, scores) > 0:
            assert reaches(row, scores)
            assert holds(relaxed(row), inputs(scores))
        elif ruled_out < 6:
            ruled_out += 1
            assert not reaches(row, scores)
            cut = excluding(row, scores)
            assert not holds(cut, inputs(scores))
            assert all(holds(cut, inputs(x)) for x in (kept, *others) if decimal_value(row, x) > 0)


def nudged(value: Fraction, wide: float, random: np.random.Generator) -> Fraction:
    """A score beside another one, or the same."""
    moved = float(value) + wide * float(random.normal()) * int(random.integers(2))
    return Fraction(min(max(moved, -4.0), 4.0))


@pytest.mark.parametrize("seed", range(30))
def test_a_line_is_above_every_quotient_of_its_box_and_touches(seed: int) -> None:
    random = np.random.default_rng(seed)
    weights = [Fraction(int(v), 4) for v in random.integers(-4, 5, 3)]
    target = Fraction(int(random.integers(-6, 7)), 8)
    low = [Fraction(int(v), 8) for v in random.integers(0, 4, 3)]
    high = [a + Fraction(int(v), 8) for a, v in zip(low, random.integers(0, 5, 3), strict=True)]
    leads = [w - target for w in weights]
    slope, constant = line_above(leads, low, high, 1 << 12)
    room = []
    for step in np.ndindex(7, 7, 7):
        counts = [a + (b - a) * Fraction(s, 6) for a, b, s in zip(low, high, step, strict=True)]
        total, lead = sum(counts), sum((w * c for w, c in zip(leads, counts, strict=True)), Fraction(0))
        room.append(slope * lead + constant - (lead / total if total else sum(leads, Fraction(0)) / 3))
    assert slope >= 0
    assert min(room) >= 0
    assert min(room) < Fraction(1, 2)


@pytest.mark.parametrize("seed", range(6))
def test_many_inputs_are_judged_as_each_of_them(seed: int) -> None:
    random = np.random.default_rng(100 + seed)
    row, points = random_row(random), [drawn(random) for _ in range(40)]
    tables = {p: to_scaled(np.array([[float(v) for v in scores[p]] for scores in points])) for p in range(2)}
    found = reaches_on_rows(row, tables, len(points))
    for scores, own in zip(points, found.tolist(), strict=True):
        exact = decimal_value(row, scores)
        assert own == (exact > 0 if abs(exact) > Decimal("1e-40") else not row.strict)


@pytest.mark.parametrize("gap", ["1e-12", "1e-25", "1e-45"])
def test_near_ties_are_told_apart(gap: str) -> None:
    parts = tuple(
        Curve(Fraction(1), (ScoreTerm(0, i, Fraction(1)),), LOW, HIGH, Sigmoid(-1.0 - i, 0.25 * i)) for i in range(3)
    )
    term = Quotient(Fraction(1), (Fraction(1), Fraction(-1), Fraction(0)), parts)
    scores = [[Fraction(1, 3), Fraction(1, 7), Fraction(-2)], [Fraction(0)] * 3]
    with localcontext(prec=80):
        exact = Fraction(str(decimal_value(ProbabilitySum((term,), Fraction(0)), scores)))
    assert reaches(ProbabilitySum((term,), exact - Fraction(gap)), scores)
    above = ProbabilitySum((term,), exact + Fraction(gap))
    assert not reaches(above, scores)
    assert not holds(excluding(above, scores), inputs(scores))


SIGMOIDS = tuple(Curve(Fraction(1), (ScoreTerm(0, i, Fraction(1)),), LOW, HIGH, Sigmoid(-2.0, 0.5)) for i in range(3))
FLATS = tuple(Curve(Fraction(1), (ScoreTerm(0, i, Fraction(1)),), LOW, HIGH, FLAT) for i in range(3))
ELSEWHERE = tuple(Curve(Fraction(1), (ScoreTerm(1, i, Fraction(1)),), LOW, HIGH, Sigmoid(-2.0, 0.5)) for i in range(3))
ONE = (Fraction(1), Fraction(0), Fraction(0))


@pytest.mark.parametrize(
    ("terms", "bound", "scores"),
    [
        # Equal functions of equal scores are equal shares.
        ((Quotient(Fraction(1), ONE, SIGMOIDS),), "1/3", [["1/7"] * 3, ["0"] * 3]),
        # Two classes are even, whatever the third one has.
        ((Quotient(Fraction(1), (Fraction(1), Fraction(-1), Fraction(0)), SIGMOIDS),), "0", [["1/7", "1/7", "2"]] * 2),
        # If every function is 0 all classes count the same; a class alone has everything.
        ((Quotient(Fraction(1), ONE, FLATS),), "1/3", [["-1", "0", "-2"], ["0"] * 3]),
        ((Quotient(Fraction(1), ONE, FLATS),), "1", [["1/2", "0", "-2"], ["0"] * 3]),
        # Of two equal points every difference is 0.
        ((Quotient(Fraction(1), ONE, SIGMOIDS), Quotient(Fraction(-1), ONE, ELSEWHERE)), "0", [["1", "2", "1/7"]] * 2),
        # What two folds say may cancel though their scores differ: 1 / (1 + 1 + 1) and the same by other functions.
        (
            (Quotient(Fraction(1, 2), ONE, SIGMOIDS), Quotient(Fraction(1, 2), ONE, ELSEWHERE)),
            "1/3",
            [["1"] * 3, ["2"] * 3],
        ),
    ],
)
def test_ties_are_ties(terms: tuple[Quotient, ...], bound: str, scores: list[list[str]]) -> None:
    at = [[Fraction(v) for v in point] for point in scores]
    assert reaches(ProbabilitySum(terms, Fraction(bound)), at)
    strict = ProbabilitySum(terms, Fraction(bound), strict=True)
    assert not reaches(strict, at)
    assert not holds(excluding(strict, at), inputs(at))


def test_means_over_a_box_are_those_of_its_corners() -> None:
    """Numbers between the ends never lead beyond them, and the ends are reached at corners."""
    random = np.random.default_rng(1)
    for _ in range(60):
        weights = [Fraction(int(v), 4) for v in random.integers(-4, 5, 3)]
        low = [Fraction(int(v), 8) for v in random.integers(0, 4, 3)]
        high = [a + Fraction(int(v), 8) for a, v in zip(low, random.integers(0, 5, 3), strict=True)]
        least, most = mean_bounds(weights, low, high)
        means = []
        for step in np.ndindex(5, 5, 5):
            counts = [a + (b - a) * Fraction(s, 4) for a, b, s in zip(low, high, step, strict=True)]
            total = sum(counts)
            even = sum(weights, Fraction(0)) / 3
            means.append(
                sum((w * c for w, c in zip(weights, counts, strict=True)), Fraction(0)) / total if total else even
            )
        assert (least, most) == (min(means), max(means))


def test_quotients_of_the_same_functions_are_one() -> None:
    one = Quotient(Fraction(1, 5), ONE, SIGMOIDS)
    whole = one.plus(Quotient(Fraction(-2, 5), ONE[::-1], SIGMOIDS))
    assert whole == Quotient(Fraction(1), (Fraction(1, 5), Fraction(0), Fraction(-2, 5)), SIGMOIDS)
    none = one.plus(Quotient(Fraction(-1, 5), ONE, SIGMOIDS))
    assert none is not None
    assert none.ends == (0, 0)
    assert one.plus(Quotient(Fraction(1), ONE, FLATS)) is None
    nothing, at = ProbabilitySum((none,), Fraction(0), strict=True), [[Fraction(1)] * 3] * 2
    assert reaches(replace(nothing, strict=False), at)
    assert not holds(excluding(nothing, at), inputs(at))
