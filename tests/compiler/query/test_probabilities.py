"""Sums of probabilities at one input, ties included, and rows that follow from them: judged in 60 decimals.

Sums of probabilities of scores so large that no number of bits tells them from 0 or 1 (found by the oracle).
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from treesens.compiler.query.evaluate import Inputs, holds
from treesens.compiler.query.probabilities import excluding, reaches, relaxed
from treesens.compiler.query.query import ProbabilitySum, ScoreTerm
from treesens.compiler.query.shares import Exponent, Probability

OUTPUTS = 4


def softmax(point: int, wanted: int, factor: Fraction) -> Probability:
    others = [i for i in range(OUTPUTS) if i != wanted]
    terms = [(ScoreTerm(point, i, Fraction(1)), ScoreTerm(point, wanted, Fraction(-1))) for i in others]
    return Probability(factor, tuple(Exponent(pair) for pair in terms))


def sigmoid(point: int, output: int, factor: Fraction) -> Probability:
    return Probability(factor, (Exponent((ScoreTerm(point, output, Fraction(-3, 2)),), Fraction(1, 4)),))


def decimal_value(row: ProbabilitySum, scores: list[list[Fraction]]) -> Decimal:
    """The sum minus its bound, in 60 decimals."""
    with localcontext(prec=60):
        total = -Decimal(row.bound.numerator) / row.bound.denominator
        for term in row.terms:
            below = Decimal(1)
            for e in term.exponents:
                v = e.constant + sum(t.coefficient * scores[t.point][t.output] for t in e.terms)
                below += (Decimal(v.numerator) / v.denominator).exp()
            total += Decimal(term.factor.numerator) / term.factor.denominator / below
        return total


def inputs(scores: list[list[Fraction]]) -> Inputs:
    return Inputs(np.zeros((2, 1)), np.zeros((2, 1), np.int32), tuple(map(tuple, scores)))


def drawn(random: np.random.Generator, wide: float = 3.0) -> list[list[Fraction]]:
    return [[Fraction(float(v)) for v in random.normal(0, wide, OUTPUTS)] for _ in range(2)]


def random_row(random: np.random.Generator) -> ProbabilitySum:
    makers = [softmax, sigmoid]
    terms = tuple(
        makers[random.integers(2)](int(random.integers(2)), int(random.integers(OUTPUTS)), Fraction(factor))
        for factor in random.choice(["1", "-1", "1/2", "-2"], random.integers(1, 4))
    )
    near = ProbabilitySum(terms, Fraction(0))
    bound = Fraction(str(round(decimal_value(near, drawn(random)), 3)))
    return ProbabilitySum(terms, bound, bool(random.integers(2)))


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.sampled
def test_rows_follow_from_the_sum_and_rule_out_what_breaks_it(seed: int) -> None:
    random = np.random.default_rng(seed)
    row = random_row(random)
    points = [drawn(random, wide) for wide in (0.5, 3, 3, 3, 30) for _ in range(12)]
    breaking = [scores for scores in points if decimal_value(row, scores) < 0][:8]
    cuts = [excluding(row, scores) for scores in breaking]
    for scores, cut in zip(breaking, cuts, strict=True):
        assert not reaches(row, scores)
        assert not holds(cut, inputs(scores))
    for scores in points:
        if decimal_value(row, scores) > 0:
            assert reaches(row, scores)
            assert all(holds(c, inputs(scores)) for c in (relaxed(row), *cuts))


@pytest.mark.parametrize("gap", ["1e-12", "1e-25", "1e-45"])
def test_near_ties_are_told_apart(gap: str) -> None:
    random = np.random.default_rng(3)
    scores = drawn(random)
    free = ProbabilitySum((softmax(0, 1, Fraction(1)), sigmoid(1, 2, Fraction(-1))), Fraction(0))
    with localcontext(prec=80):
        exact = Fraction(str(decimal_value(free, scores)))
    assert reaches(ProbabilitySum(free.terms, exact - Fraction(gap)), scores)
    assert not reaches(ProbabilitySum(free.terms, exact + Fraction(gap)), scores)
    cut = excluding(ProbabilitySum(free.terms, exact + Fraction(gap)), scores)
    assert not holds(cut, inputs(scores))


@pytest.mark.parametrize(
    ("terms", "bound", "scores"),
    [
        # Equal scores are equal probabilities.
        ((softmax(0, 0, Fraction(1)),), Fraction(1, 4), [["1/3"] * 4, ["0"] * 4]),
        # All probabilities of a softmax are 1.
        (tuple(softmax(0, i, Fraction(1)) for i in range(4)), Fraction(1), [["1/3", "2", "-5", "1/7"], ["0"] * 4]),
        # Of two equal points every difference is 0.
        ((softmax(0, 2, Fraction(1)), softmax(1, 2, Fraction(-1))), Fraction(0), [["1", "2", "-5", "1/7"]] * 2),
    ],
)
def test_ties_are_ties(terms: tuple[Probability, ...], bound: Fraction, scores: list[list[str]]) -> None:
    at = [[Fraction(v) for v in point] for point in scores]
    assert reaches(ProbabilitySum(terms, bound), at)
    assert not reaches(ProbabilitySum(terms, bound, strict=True), at)
    cut = excluding(ProbabilitySum(terms, bound, strict=True), at)
    assert not holds(cut, inputs(at))


def signed_sigmoid(point: int, factor: int) -> Probability:
    """factor / (1 + e**-score)."""
    return Probability(Fraction(factor), (Exponent((ScoreTerm(point, 0, Fraction(-1)),)),))


@pytest.mark.fault
@pytest.mark.parametrize("size", [10, 5_000, 10**7])
@pytest.mark.parametrize("strict", [False, True])
def test_a_probability_is_never_0_or_1(size: int, strict: bool) -> None:
    sum_of_one = ProbabilitySum((signed_sigmoid(0, 1), signed_sigmoid(1, -1)), Fraction(1), strict)
    assert not reaches(sum_of_one, [[Fraction(size)], [Fraction(-size)]])
    at_least_none = ProbabilitySum((signed_sigmoid(0, 1), signed_sigmoid(1, -1)), Fraction(-1), strict)
    assert reaches(at_least_none, [[Fraction(-size)], [Fraction(size)]])


@pytest.mark.fault
@pytest.mark.parametrize("size", [10, 5_000, 10**7, -(10**7)])
def test_the_greater_score_has_the_greater_probability(size: int) -> None:
    more = ProbabilitySum((signed_sigmoid(0, 1), signed_sigmoid(1, -1)), Fraction(0), True)
    least, near = Fraction(size), Fraction(size) + Fraction(1, 1 << 20)
    assert reaches(more, [[near], [least]])
    assert not reaches(more, [[least], [near]])
    assert not reaches(more, [[least], [least]])


def signed_softmax(point: int, label: int, classes: int, factor: int) -> Probability:
    """factor * e**score of the label / sum of e**scores."""
    others = [k for k in range(classes) if k != label]
    return Probability(
        Fraction(factor),
        tuple(Exponent((ScoreTerm(point, k, Fraction(1)), ScoreTerm(point, label, Fraction(-1)))) for k in others),
    )


@pytest.mark.fault
@pytest.mark.parametrize("size", [1, 40, 700, 5_000, 64_935, 10**9])
@pytest.mark.parametrize("strict", [False, True])
def test_a_sum_of_classes_is_told_from_its_bound(size: int, strict: bool) -> None:
    """p_0 + p_1 - p_2 = 1 - 2 p_2 lies below 1 and above -1, however small p_2 or 1 - p_2 is."""
    row = tuple(signed_softmax(0, k, 3, 1 if k < 2 else -1) for k in range(3))
    for scores in ([0, size, 0], [size, 0, 0], [0, 0, size], [-size, size, -size], [0, 0, -size]):
        at = [list(map(Fraction, scores))]
        assert not reaches(ProbabilitySum(row, Fraction(1), strict), at)
        assert reaches(ProbabilitySum(row, Fraction(-1), strict), at)
    level = [[Fraction(size), Fraction(0), Fraction(size) + Fraction(1, 1 << 40)]]
    assert not reaches(ProbabilitySum((row[0], row[2]), Fraction(0), strict), level), "p_2 > p_0"
    even = [[Fraction(size)] * 3]
    assert reaches(ProbabilitySum(row, Fraction(1, 3), False), even)
    assert not reaches(ProbabilitySum(row, Fraction(1, 3), True), even)


@pytest.mark.fault
@pytest.mark.parametrize("size", [3, 50, 3_000, 10**6])
def test_two_inputs_with_sums_of_classes(size: int) -> None:
    """p_0(a) + p_1(b) against 1, if b has the scores of a in the other order: equal; a little more or less, not."""
    row = (signed_softmax(0, 0, 2, 1), signed_softmax(1, 1, 2, 1))
    least = Fraction(1, 1 << 30)
    for more, reached in ((Fraction(0), (True, False)), (least, (True, True)), (-least, (False, False))):
        scores = [[Fraction(size) + more, Fraction(0)], [Fraction(size), Fraction(0)]]
        assert (
            reaches(ProbabilitySum(row, Fraction(1), False), scores),
            reaches(ProbabilitySum(row, Fraction(1), True), scores),
        ) == reached
