"""Fault 25: `maximize distance(a, b, linf)` took 17 s on a domain of 6 x 4 x 6 values; fault 0: linf optima were false.

The expected values come from xgboost's own predictions on every value, or from decisions alone.

Found by the oracle: a false bound. The least linf distance was taken for the best distance of some pair of cells, although a
relation kept values of one cell apart.

Fault 35: `distance(a, row N of d, linf) >= 0` had no answer where every feature is sensitive, and `< 0` had some.

A distance over no features is 0, so that every comparison with it is one of 0 with a number.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.asking import ask, verdict
from tests.corpus import boosted, margins_of

pytestmark = pytest.mark.fault

SIZES = (6, 4, 6)
DECLARED = "\n".join(f"feature f{i}: integer in [0, {n - 1}]" for i, n in enumerate(SIZES))
REAL = "\n".join(f"feature f{i}: real in [0, 1]" for i in range(6))


def trained(x: np.ndarray, y: np.ndarray, trees: int) -> Any:
    names = [f"f{i}" for i in range(x.shape[1])]
    return boosted(x, y, trees, 4, names=names, eta=0.4, seed=1)


def margins(booster: Any, x: np.ndarray) -> np.ndarray:
    return np.asarray(margins_of(booster, x))


@pytest.mark.parametrize("sense", ["maximize", "minimize"])
def test_the_largest_distance_on_a_small_domain_is_found_at_once(sense: str) -> None:
    rng = np.random.default_rng(3)
    x = np.array(list(itertools.product(*map(range, SIZES))), float)
    booster = trained(x, (x.sum(axis=1) + rng.normal(0, 2, len(x)) > 6).astype(int), 12)
    scores = margins_of(booster, x)
    one, other = x[scores >= 0.5], x[scores <= -0.5]
    apart = (np.abs(one[:, None] - other[None]) / (np.array(SIZES) - 1)).max(axis=2)
    expected = apart.max() if sense == "maximize" else apart.min()
    question = f"find a, b such that margin(a) >= 0.5; margin(b) <= -0.5\n  {sense} distance(a, b, linf)"
    found = ask(booster, question, DECLARED, backend="native").result
    assert found.objective.value == pytest.approx(expected)
    assert found.objective.bound == pytest.approx(expected)


@pytest.mark.parametrize("seed", [0, 1])
def test_least_distances_to_rows_are_those_of_decisions(seed: int) -> None:
    rng = np.random.default_rng(5)
    x = rng.random((400, 6)).astype(np.float32)
    noisy = x[:, 0] * x[:, 1] + x[:, 2] + rng.normal(0, 0.2, 400)
    booster = trained(x, (noisy > 0.75).astype(int), 40)
    table = pd.DataFrame(x[:6].astype(float), columns=[f"f{i}" for i in range(6)])
    for row, margin in enumerate(margins_of(booster, x[:6])):
        wanted = f"find a such that class(a) = {0 if margin > 0 else 1}"
        near = f"distance(a, row {row} of d, linf)"
        found = ask(booster, f"{wanted}\n  minimize {near}", REAL, table, backend="native", seed=seed).result.objective
        assert found.bound == pytest.approx(found.value, abs=1e-9)
        assert verdict(booster, f"{wanted}; {near} <= {found.value + 1e-9!r}", REAL, table) == "found"
        assert verdict(booster, f"{wanted}; {near} <= {found.value - 1e-6!r}", REAL, table) == "none"


def test_the_greatest_distance_to_a_row_is_one_of_its_cells() -> None:
    rng = np.random.default_rng(8)
    x = rng.random((300, 6)).astype(np.float32)
    booster = trained(x, (x[:, 0] + x[:, 3] > 1).astype(int), 20)
    table = pd.DataFrame(x[:1].astype(float), columns=[f"f{i}" for i in range(6)])
    question = "find a such that class(a) = 1\n  maximize distance(a, row 0 of d, linf)"
    found = ask(booster, question, REAL, table, backend="native").result.objective
    # Some input of class 1 has a feature at an end of its domain, and no distance is greater.
    assert found.value == pytest.approx(max(max(v, 1 - v) for v in x[0].astype(float)))
    assert found.bound == pytest.approx(found.value)


RELATED = "feature y: integer in [0, 4]\nfeature z: integer in [1, 3]\nfeature w: integer in [-2, 3]"
WIDTHS = (4, 2, 5)


@pytest.fixture(scope="module")
def stump() -> Any:
    """Splits y alone, so that all values of z and w share a cell."""
    tree = pytest.importorskip("sklearn.tree")
    return tree.DecisionTreeClassifier(max_depth=1).fit(pd.DataFrame({"y": [0, 4], "z": [1, 1], "w": [0, 0]}), [0, 1])


@pytest.mark.parametrize("backend", ["native", "auto", "cpsat"])
@pytest.mark.parametrize("sense", ["minimize", "maximize"])
def test_the_least_distance_of_related_values(stump: Any, sense: str, backend: str) -> None:
    inputs = list(itertools.product(range(5), range(1, 4), range(-2, 4)))
    apart = [
        max(abs(p - q) / n for p, q, n in zip(a, b, WIDTHS, strict=True))
        for a in inputs
        for b in inputs
        if -b[2] == a[2] + 1
    ]
    expected = min(apart) if sense == "minimize" else max(apart)
    told = ask(stump, f"find a, b such that -b.w = a.w + 1\n  {sense} distance(a, b, linf)", RELATED, backend=backend)
    objective = told.to_dict()["objective"]
    assert objective["value"] == pytest.approx(expected, abs=1e-4)
    slack = 1e-9
    assert objective["bound"] is not None
    assert objective["bound"] <= expected + slack if sense == "minimize" else objective["bound"] >= expected - slack


TABLE = pd.DataFrame({"x": [0, 1, 1], "y": [1, 0, 1]})
UNITS = "feature x: integer in [0, 1]\nfeature y: integer in [0, 1]"


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
    found = verdict(model, question, UNITS, TABLE, backend="native", time_limit=10)
    assert (found == "found") is (holds is not negated)


@pytest.mark.parametrize("norm", ["l0", "l1", "l2", "linf"])
@pytest.mark.parametrize("sense", ["minimize", "maximize"])
@pytest.mark.parametrize("relation", ["", "\n a.x + b.y <= 1"])
def test_its_optimum_is_0(model: Any, norm: str, sense: str, relation: str) -> None:
    question = f"find a, b such that\n a = b except {{x, y}}{relation}\n {sense} distance(a, row 1 of d, {norm})"
    goal = ask(model, question, UNITS, TABLE, backend="native", time_limit=10).result.objective
    assert (goal.value, goal.bound) == (0, 0)
