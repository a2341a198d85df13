"""The least value of several terms about one value: below all values of a cell, and reached if the cell's values are few."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pytest

from tests.trials import trials
from treesens.compiler.base.floats import NumberType
from treesens.compiler.query.values import DistanceTerm, LinearTerm, Term, ValueRange
from treesens.extensions.certify.distance_bounds import MOST_VALUES, least_together

ROWS = (0.0, 1.0, 2.5, 3.0, math.nan)


def term(dice: random.Random, unordered: bool) -> Term:
    factor = Fraction(dice.choice((-3, -1, 1, 2)), dice.choice((1, 2, 3)))
    if dice.random() < 0.25 and not unordered:
        return LinearTerm(0, 0, factor)
    power = dice.choice((1, 2))
    return DistanceTerm(0, 0, None, dice.choice(ROWS), Fraction(dice.choice((1, 3, 4))), power, unordered, factor)


def value(terms: list[Term], x: Fraction | None) -> Fraction | None:
    """By the definition of distances: 1 from a missing value to any other one, and between unequal ones without an order."""
    total = Fraction(0)
    for one in terms:
        if isinstance(one, LinearTerm):
            if x is None:
                return None
            total += one.factor * x
            continue
        row = None if math.isnan(one.row) else Fraction(one.row)
        if x is None or row is None:
            away = Fraction(0 if x is row else 1)
        elif one.unordered:
            away = Fraction(0 if x == row else 1)
        else:
            away = abs(x - row) / one.width
        total += one.factor * away**one.power
    return total


def least(terms: list[Term], reach: ValueRange | None) -> Fraction | None:
    (place, (found,)) = least_together((0, 0), terms, [reach], np.array([True]))
    assert place == (0, 0)
    return found


@pytest.mark.parametrize("unordered", [False, True])
def test_it_is_below_all_values_of_an_interval_and_not_far_below(unordered: bool) -> None:
    dice = random.Random(5)
    for _ in trials(300):
        terms = [term(dice, unordered) for _ in range(dice.randint(1, 4))]
        low, high = sorted(dice.sample([Fraction(i, 4) for i in range(-4, 17)], 2))
        found = least(terms, ValueRange(float(low), float(high), NumberType.FLOAT32))
        steps = [low + (high - low) * i / 240 for i in range(241)]
        reached = min(v for v in (value(terms, x) for x in steps) if v is not None)
        assert found is not None
        assert found <= reached
        if not unordered:
            # Of 240 steps one is so near the vertex of a parabola: slopes change by less than 4 * 2 * 3 per unit.
            assert reached - found <= 24 * ((high - low) / 240) ** 2


@pytest.mark.parametrize("unordered", [False, True])
def test_it_is_reached_by_one_of_a_few_values(unordered: bool) -> None:
    dice = random.Random(6)
    for _ in trials(300):
        terms = [term(dice, unordered) for _ in range(dice.randint(1, 4))]
        listed = sorted(dice.sample([i / 2 for i in range(-4, 9)], dice.randint(1, 5)))
        whole = sorted(dice.sample(range(-2, 6), 2))
        given = [
            (ValueRange(listed[0], listed[-1], NumberType.FLOAT32, values=np.array(listed)), listed),
            (ValueRange(whole[0], whole[1], NumberType.FLOAT32, whole=True), range(whole[0], whole[1] + 1)),
            (ValueRange(listed[0], listed[0], NumberType.FLOAT32), listed[:1]),
        ]
        for reach, values in given:
            assert least(terms, reach) == min(value(terms, Fraction(x)) or Fraction(0) for x in values)
        assert least(terms, None) == value(terms, None)


def test_many_whole_numbers_are_an_interval() -> None:
    terms: list[Term] = [
        DistanceTerm(0, 0, None, 10.0, Fraction(3), 2, factor=Fraction(1)),
        LinearTerm(0, 0, Fraction(-1)),
    ]
    reach = ValueRange(0.0, float(MOST_VALUES), NumberType.FLOAT32, whole=True)
    # (x - 10)^2 / 9 - x is least at 14.5, and is -49 / 4 there.
    assert least(terms, reach) == Fraction(-49, 4)
    cell = least_together((1, 2), terms, [reach, None, reach], np.array([False, True, True]))
    assert cell == ((1, 2), [None, None, Fraction(-49, 4)])
