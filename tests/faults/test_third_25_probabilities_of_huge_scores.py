"""Sums of probabilities of scores so large that no number of bits tells them from 0 or 1 (found by the oracle)."""

from __future__ import annotations

from fractions import Fraction

import pytest

from treesens.compiler.query.probabilities import reaches
from treesens.compiler.query.query import Exponent, Probability, ProbabilitySum, ScoreTerm


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
