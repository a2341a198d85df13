"""Fault 35: `distance(a, row N of d, linf) >= 0` had no answer where every feature is sensitive, and `< 0` had some.

A distance over no features is 0, so that every comparison with it is one of 0 with a number.
"""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from tests.asking import ask, verdict

pytestmark = pytest.mark.fault

TABLE = pd.DataFrame({"x": [0, 1, 1], "y": [1, 0, 1]})
DECLARED = "feature x: integer in [0, 1]\nfeature y: integer in [0, 1]"


@pytest.fixture(scope="module")
def model() -> Any:
    tree = pytest.importorskip("sklearn.tree")
    return tree.DecisionTreeRegressor(max_depth=1).fit(TABLE, [0.0, 1.0, 2.0])


@pytest.mark.parametrize("norm", ["l0", "l1", "l2", "linf"])
@pytest.mark.parametrize(
    ("comparison", "holds"),
    [("<= 0", True), ("< 0", False), (">= 0", True), ("> 0", False), ("= 0", True), ("!= 0", False), ("< 1", True)],
)
@pytest.mark.parametrize("negated", [False, True])
def test_the_distance_over_no_features_is_0(model: Any, norm: str, comparison: str, holds: bool, negated: bool) -> None:
    where = f"distance(a, row 1 of d, {norm}) {comparison}"
    question = f"find a, b such that\n a = b except {{x, y}}\n {f'not ({where})' if negated else where}"
    found = verdict(model, question, DECLARED, TABLE, backend="native", time_limit=10)
    assert (found == "found") is (holds is not negated)


@pytest.mark.parametrize("norm", ["l0", "l1", "l2", "linf"])
@pytest.mark.parametrize("sense", ["minimize", "maximize"])
@pytest.mark.parametrize("relation", ["", "\n a.x + b.y <= 1"])
def test_its_optimum_is_0(model: Any, norm: str, sense: str, relation: str) -> None:
    question = f"find a, b such that\n a = b except {{x, y}}{relation}\n {sense} distance(a, row 1 of d, {norm})"
    goal = ask(model, question, DECLARED, TABLE, backend="native", time_limit=10).result.objective
    assert (goal.value, goal.bound) == (0, 0)
