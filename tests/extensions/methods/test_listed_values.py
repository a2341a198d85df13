"""Few values, tried all at once: what the table says against the exact meaning of every relation, one combination at a time."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from treesens.compiler.base.floats import NumberType
from treesens.compiler.query.values import DistanceTerm, LinearTerm, Place, ValueRange, ValueSum
from treesens.extensions.methods.listed_values import values_listed

LISTS: dict[Place, list[float]] = {
    (0, 0): [0.0, 1.0, 2.0, 3.0],
    (1, 0): [0.0, 1.0, 2.0, 3.0],
    (0, 1): [0.1, 0.5, float(np.float32(0.7)), 3.0],
    (1, 1): [-2.5, 1e-3],
    (0, 2): [7.0],
}
RANGES = {
    (0, 0): ValueRange(0.0, 3.0, NumberType.FLOAT64, whole=True),
    (1, 0): ValueRange(0.0, 3.0, NumberType.FLOAT64, whole=True),
    (0, 1): ValueRange(0.1, 3.0, NumberType.FLOAT64, values=np.array(LISTS[0, 1])),
    (1, 1): ValueRange(-2.5, 1e-3, NumberType.FLOAT64, values=np.array(LISTS[1, 1])),
    (0, 2): ValueRange(7.0, 7.0, NumberType.FLOAT64),
    (1, 2): None,
}


def draw(random: np.random.Generator) -> list[ValueSum]:
    """Some relations over the places."""
    found = []
    for _ in range(int(random.integers(1, 4))):
        factor = Fraction(int(random.integers(1, 5)) * int(random.choice([-1, 1])), int(random.integers(1, 4)))
        width, power = Fraction(int(random.integers(1, 8)), 3), int(random.integers(1, 3))
        every = [
            LinearTerm(0, 0, factor),
            LinearTerm(1, 1, -factor),
            LinearTerm(0, 2, Fraction(1, 7)),
            DistanceTerm(0, 0, 1, 0.0, width, power, factor=factor),
            DistanceTerm(0, 1, 1, 0.0, width, power),
            DistanceTerm(0, 1, None, 0.3, width, power, factor=-factor),
            DistanceTerm(0, 0, 1, 0.0, width, unordered=True, factor=factor),
            DistanceTerm(0, 2, 1, 0.0, width),
        ]
        terms = tuple(every[i] for i in random.permutation(len(every))[: int(random.integers(1, 4))])
        found.append(ValueSum(terms, Fraction(int(random.integers(-6, 7)), 2), bool(random.integers(2))))
    return found


@pytest.mark.parametrize("seed", range(150))
def test_all_at_once_is_one_by_one(seed: int) -> None:
    relations = draw(np.random.default_rng(seed))
    missing = {(1, 2): float("nan")}
    every = (missing | dict(zip(LISTS, values, strict=True)) for values in itertools.product(*LISTS.values()))
    possible = any(all(r.holds(values.__getitem__) for r in relations) for values in every)
    found = values_listed(RANGES, relations)
    assert found is not None
    assert bool(found) == possible
    if found:
        assert all(r.holds(found.__getitem__) for r in relations)
        assert all(found[place] in values for place, values in LISTS.items())


def test_too_many_values_are_not_tried() -> None:
    wide = {(p, f): ValueRange(0.0, 999.0, NumberType.FLOAT64, whole=True) for p in (0, 1) for f in (0, 1)}
    terms = tuple(DistanceTerm(0, f, 1, 0.0, Fraction(1)) for f in (0, 1))
    assert values_listed(wide, [ValueSum(terms, Fraction(1))]) is None
    real = {(0, 0): ValueRange(0.0, 1.0, NumberType.FLOAT64)}
    assert values_listed(real, [ValueSum((LinearTerm(0, 0, Fraction(1)),), Fraction(0))]) is None


def test_a_missing_value_satisfies_no_linear_relation() -> None:
    assert values_listed({(0, 0): None}, [ValueSum((LinearTerm(0, 0, Fraction(1)),), Fraction(5))]) is False
