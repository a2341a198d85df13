"""Fault 11: bounds below zero for a distance. No bound lies outside what the quantity can be, or contradicts a value."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.asking import ask
from tests.corpus import boosted
from treesens.solve.bounds import ContradictoryBound, consistent, within_range

pytestmark = pytest.mark.fault

REAL = "\n".join(f"feature f{i}: real in [0, 2]" for i in range(3))


@pytest.fixture(scope="module")
def booster() -> Any:
    rng = np.random.default_rng(0)
    x = rng.random((200, 3)) * 2
    return boosted(x, (x.sum(axis=1) > 3).astype(int), 8, names=["f0", "f1", "f2"])


@pytest.mark.parametrize(
    ("objective", "least", "most"),
    [
        ("distance(a, b, l1)", 0, 3),
        ("distance(a, b, l2)", 0, 3),  # squared, as the form has it
        ("distance(a, b, linf)", 0, 1),
        ("distance(a, b, l0)", 0, 3),
        ("changes(a, b)", 0, 3),
        ("distance(a, row 0 of d, l1)", 0, 2.25),
        ("distance(a, row 0 of d, linf)", 0, 0.75),
    ],
)
def test_bounds_lie_where_the_quantity_does(booster: Any, objective: str, least: float, most: float) -> None:
    table = pd.DataFrame({"f0": [0.5, 1.5], "f1": [1.5, 0.5], "f2": [0.5, 1.0]})
    for sense, limit, beyond in (("minimize", least, -91.4), ("maximize", most, 1e9)):
        question = f"find a, b such that margin(a) > 0; margin(b) < 0\n  {sense} {objective}"
        answer = ask(booster, question, REAL, table, backend="native")
        assert within_range(answer.question.query, beyond) == pytest.approx(limit)
        goal = answer.result.objective
        assert goal.value == pytest.approx(goal.bound, abs=1e-4)
        assert least - 1e-9 <= goal.value <= most + 1e-9


@pytest.fixture(scope="module")
def six() -> Any:
    """A model of six whole numbers, each of whose cells holds many of them."""
    x = np.random.default_rng(0).integers(0, 100, (300, 6))
    names = [f"f{i}" for i in range(6)]
    return boosted(x, (x.sum(axis=1) > 300).astype(int), 10, names=names)


@pytest.mark.parametrize(
    ("goal", "constraint", "value"),
    [
        ("minimize distance(a, b, l0)", "changes(a, b) >= 4", 4),
        ("minimize distance(b, a, l0)", "changes(a, b) > 3", 4),
        ("minimize changes(a, b)", "distance(a, b, l0) > 3.5", 4),
        ("maximize changes(a, b)", "distance(b, a, l0) < 3", 2),
        ("maximize distance(a, b, l0)", "2 * changes(a, b) <= 5", 2),
    ],
)
def test_what_a_constraint_says_of_the_same_sum_bounds_it(six: Any, goal: str, constraint: str, value: int) -> None:
    """Two values of one cell may differ and need not: cells alone left the optimum open at any limit.

    The expected value follows from the constraint: whole numbers differ within a cell as they like, and few changes flip.
    """
    domain = "\n".join(f"feature f{i}: integer in [0, 100]" for i in range(6))
    question = f"find a, b such that margin(a) > 0; margin(b) < 0; {constraint}\n  {goal}"
    shown = ask(six, question, domain, time_limit=30).result.objective
    assert (shown.value, shown.bound) == (value, value)


def test_the_most_that_can_be_is_a_bound_without_a_search(booster: Any) -> None:
    """A row outside of the domain differs in every feature, whatever the search over equal points proves."""
    domain = "\n".join(f"feature f{i}: integer in [0, 3]" for i in range(3))
    table = pd.DataFrame({"f0": [9.0], "f1": [9.0], "f2": [9.0]})
    question = "find a, b such that not (margin(a) >= 5 or changes(a, b) != 0)\n  maximize distance(b, row 0 of d, l0)"
    with pytest.warns(UserWarning, match="E401"):
        goal = ask(booster, question, domain, table, backend="native").result.objective
    assert (goal.value, goal.bound) == (3, 3)


def test_a_bound_that_a_value_contradicts_is_an_internal_error() -> None:
    assert consistent(1.0, 1.0 + 1e-12, maximize=True, exact=True, who="x") == 1.0 + 1e-12
    assert consistent(2.0, 1.0, maximize=True, exact=True, who="x") == 2.0
    with pytest.raises(ContradictoryBound, match="x proved"):
        consistent(0.11699, 0.103015, maximize=False, exact=True, who="x")
    with pytest.raises(ContradictoryBound):
        consistent(0.5, 0.6, maximize=True, exact=False, who="x")
