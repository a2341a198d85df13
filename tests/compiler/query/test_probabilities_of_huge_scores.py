"""Sums of probabilities of scores so large that no number of bits tells them from 0 or 1 (found by the oracle)."""

from __future__ import annotations

from fractions import Fraction

import pytest

from treesens.compiler.query.probabilities import reaches
from treesens.compiler.query.query import ProbabilitySum, ScoreTerm
from treesens.compiler.query.shares import Exponent, Probability

pytestmark = pytest.mark.fault


def sigmoid(point: int, factor: int) -> Probability:
    """factor / (1 + e**-score)."""
    return Probability(Fraction(factor), (Exponent((ScoreTerm(point, 0, Fraction(-1)),)),))


@pytest.mark.parametrize("size", [10, 5_000, 10**7])
@pytest.mark.parametrize("strict", [False, True])
def test_a_probability_is_never_0_or_1(size: int, strict: bool) -> None:
    sum_of_one = ProbabilitySum((sigmoid(0, 1), sigmoid(1, -1)), Fraction(1), strict)
    assert not reaches(sum_of_one, [[Fraction(size)], [Fraction(-size)]])
    at_least_none = ProbabilitySum((sigmoid(0, 1), sigmoid(1, -1)), Fraction(-1), strict)
    assert reaches(at_least_none, [[Fraction(-size)], [Fraction(size)]])


@pytest.mark.parametrize("size", [10, 5_000, 10**7, -(10**7)])
def test_the_greater_score_has_the_greater_probability(size: int) -> None:
    more = ProbabilitySum((sigmoid(0, 1), sigmoid(1, -1)), Fraction(0), True)
    least, near = Fraction(size), Fraction(size) + Fraction(1, 1 << 20)
    assert reaches(more, [[near], [least]])
    assert not reaches(more, [[least], [near]])
    assert not reaches(more, [[least], [least]])


def softmax(point: int, label: int, classes: int, factor: int) -> Probability:
    """factor * e**score of the label / sum of e**scores."""
    others = [k for k in range(classes) if k != label]
    return Probability(
        Fraction(factor),
        tuple(Exponent((ScoreTerm(point, k, Fraction(1)), ScoreTerm(point, label, Fraction(-1)))) for k in others),
    )


@pytest.mark.parametrize("size", [1, 40, 700, 5_000, 64_935, 10**9])
@pytest.mark.parametrize("strict", [False, True])
def test_a_sum_of_classes_is_told_from_its_bound(size: int, strict: bool) -> None:
    """p_0 + p_1 - p_2 = 1 - 2 p_2 lies below 1 and above -1, however small p_2 or 1 - p_2 is."""
    row = tuple(softmax(0, k, 3, 1 if k < 2 else -1) for k in range(3))
    for scores in ([0, size, 0], [size, 0, 0], [0, 0, size], [-size, size, -size], [0, 0, -size]):
        at = [list(map(Fraction, scores))]
        assert not reaches(ProbabilitySum(row, Fraction(1), strict), at)
        assert reaches(ProbabilitySum(row, Fraction(-1), strict), at)
    level = [[Fraction(size), Fraction(0), Fraction(size) + Fraction(1, 1 << 40)]]
    assert not reaches(ProbabilitySum((row[0], row[2]), Fraction(0), strict), level), "p_2 > p_0"
    even = [[Fraction(size)] * 3]
    assert reaches(ProbabilitySum(row, Fraction(1, 3), False), even)
    assert not reaches(ProbabilitySum(row, Fraction(1, 3), True), even)


@pytest.mark.parametrize("size", [3, 50, 3_000, 10**6])
def test_two_inputs_with_sums_of_classes(size: int) -> None:
    """p_0(a) + p_1(b) against 1, if b has the scores of a in the other order: equal; a little more or less, not."""
    row = (softmax(0, 0, 2, 1), softmax(1, 1, 2, 1))
    least = Fraction(1, 1 << 30)
    for more, reached in ((Fraction(0), (True, False)), (least, (True, True)), (-least, (False, False))):
        scores = [[Fraction(size) + more, Fraction(0)], [Fraction(size), Fraction(0)]]
        assert (
            reaches(ProbabilitySum(row, Fraction(1), False), scores),
            reaches(ProbabilitySum(row, Fraction(1), True), scores),
        ) == reached
