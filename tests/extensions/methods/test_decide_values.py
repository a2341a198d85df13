"""Values inside one combination of cells: what z3 decides against a grid of values, and that rounding makes no answer up."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from treesens.compiler.base.floats import NumberType
from treesens.compiler.query.query import LinearForm, Objective
from treesens.compiler.query.values import DistanceTerm, LinearTerm, ValueRange, ValueSum, sum_of
from treesens.extensions.methods.decide_values import bound_objective, decide_values
from treesens.values.concretise import Alternatives

WHOLE = ValueRange(0.0, 4.0, NumberType.FLOAT32, whole=True)
LISTED = ValueRange(0.5, 3.0, NumberType.FLOAT32, values=np.array([0.5, 1.0, 3.0]))
REAL = ValueRange(0.0, 1.0, NumberType.FLOAT32)


def alternatives(relations: list[ValueSum], goal: tuple[DistanceTerm, ...] = ()) -> Alternatives:
    ranges = {(0, 0): WHOLE, (1, 0): WHOLE, (0, 1): LISTED, (1, 1): None}
    return Alternatives(((tuple(relations), ranges),), goal, lambda found: np.array(list(found.values())), True)


def random_relations(rng: np.random.Generator) -> list[ValueSum]:
    terms = [
        LinearTerm(0, 0, Fraction(int(rng.integers(-2, 3)) or 1)),
        LinearTerm(1, 0, Fraction(int(rng.integers(-2, 3)) or 1)),
        LinearTerm(0, 1, Fraction(int(rng.integers(-2, 3)) or 1, 2)),
        DistanceTerm(0, 0, 1, 0.0, Fraction(4), factor=Fraction(int(rng.choice([-2, 1, 3])))),
        DistanceTerm(0, 1, 1, 0.0, Fraction(2)),
        DistanceTerm(0, 0, 1, 0.0, Fraction(4), power=2, factor=Fraction(int(rng.choice([-4, 4])))),
        DistanceTerm(0, 0, 1, 0.0, Fraction(1), unordered=True, factor=Fraction(int(rng.choice([-1, 1])))),
    ]
    found = []
    for _ in range(int(rng.integers(1, 4))):
        chosen = [terms[i] for i in rng.permutation(len(terms))[: int(rng.integers(1, 4))]]
        found.append(ValueSum(tuple(chosen), Fraction(int(rng.integers(-4, 5)), 2), bool(rng.integers(2))))
    return found


def answers(relations: list[ValueSum]) -> list[dict[tuple[int, int], float]]:
    whole, listed = range(5), (0.5, 1.0, 3.0)
    every = (
        {(0, 0): float(x), (1, 0): float(y), (0, 1): z, (1, 1): np.nan}
        for x, y, z in itertools.product(whole, whole, listed)
    )
    return [v for v in every if all(r.holds(v.__getitem__) for r in relations)]


@pytest.mark.parametrize("seed", range(40))
def test_values_are_found_where_there_are_some_and_optima_are_those_of_trying_all(seed: int) -> None:
    relations = random_relations(np.random.default_rng(seed))
    every = answers(relations)
    inside = decide_values(alternatives(relations), lambda: 10.0)
    assert inside.none == (not every)
    assert (inside.values is not None) == bool(every)
    terms = (DistanceTerm(0, 0, 1, 0.0, Fraction(4)), DistanceTerm(0, 1, None, 1.0, Fraction(2)))
    for maximize in (True, False):
        goal = Objective(LinearForm(), maximize, "distance l1", values=terms)
        known = bound_objective(alternatives(relations, terms), goal, lambda: 10.0)
        values = [sum_of(terms, v.__getitem__) for v in every]
        squares = any(isinstance(t, DistanceTerm) and t.power == 2 for r in relations for t in r.terms)
        if known.bound is not None or not squares:
            assert known.bound == (max if maximize else min)(values, default=None)


def test_a_rational_that_is_no_float_is_no_answer_and_no_proof() -> None:
    """3 x = 1 has a solution, but no float is a third."""
    third = [ValueSum((LinearTerm(0, 0, Fraction(s * 3)),), Fraction(s)) for s in (1, -1)]
    case = Alternatives(((tuple(third), {(0, 0): REAL}),), (), lambda found: np.array(list(found.values())), True)
    inside = decide_values(case, lambda: 10.0)
    assert inside.values is None
    assert not inside.none
