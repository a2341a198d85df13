"""Fault 33: a row of the table that lies outside the domain, in a cell that holds legal values, was itself an answer.

`minimize distance(a, nearest row of d)` tried the rows as they stand, and the replay judged constraints alone. The expected
values come from xgboost's own predictions on the complete domain.

Fault 39: the largest linf distance to a row that lies more than a width outside of the domain had 1 for a proved bound.
"""

from __future__ import annotations

import itertools
import warnings
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest

import treesens as ts
from tests.asking import ask
from tests.corpus import boosted, margins_of, regressed

pytestmark = pytest.mark.fault

DECLARED = "feature f0: integer in [0, 3]\nfeature f1: integer in [0, 3]"
EVERY = np.array(list(itertools.product(range(4), repeat=2)), float)


@pytest.fixture(scope="module")
def booster() -> Any:
    rows = np.array(list(itertools.product(range(6), repeat=2)), float)
    return regressed(rows, rows[:, 0] * (rows[:, 1] > 1), 2, 2, names=["f0", "f1"], eta=1.0, base_score=0.0)


@pytest.mark.parametrize("norm", ["l0", "l1", "l2", "linf"])
def test_a_row_outside_the_domain_is_no_answer(booster: Any, norm: str) -> None:
    import xgboost as xgb

    scores = booster.predict(xgb.DMatrix(EVERY, feature_names=["f0", "f1"])).reshape(4, 4)
    flips = [f1 for f1 in range(4) if scores[:, f1].max() - scores[:, f1].min() >= 0.5]
    assert 3 in flips
    table = pd.DataFrame({"f0": [1, 2], "f1": [5, 4]})
    where = "a = b except f0\n value(a) - value(b) >= 0.5"
    question = f"find a, b such that\n {where}\n minimize distance(a, nearest row of d, {norm})"
    answer = ask(booster, question, DECLARED, table, backend="native", time_limit=20)
    points = answer.to_dict()["points"]
    assert all(0 <= value <= 3 for point in points.values() for value in point.values()), points
    # Only f1 counts: f0 is sensitive. The rows have 5 and 4, one third of the width beyond the domain.
    expected = 1.0 if norm == "l0" else 1 / 3
    assert answer.result.objective.value == pytest.approx(expected, abs=1e-9)


VALUES = [2.0, 3.0, 4.0]
ROWS = pd.DataFrame({"x": [6.0, 2.0, 9.0, -3.0], "y": [3.0, 7.0, 3.0, -8.0], "z": [2.0, 4.0, 14.0, 3.0]})
DOMAIN = "\n".join(f"feature {name}: integer in [2, 4]" for name in "xyz")
POINTS = np.array(list(product(VALUES, repeat=3)))


@pytest.fixture(scope="module")
def model() -> Any:
    rng = np.random.default_rng(0)
    x = rng.integers(2, 5, (200, 3)).astype(np.float64)
    return boosted(x, (x @ [1, 2, -1] > 5).astype(int), 6, names=["x", "y", "z"])


def distance(points: np.ndarray[Any, Any], row: int, norm: str) -> np.ndarray[Any, Any]:
    """In widths of the domains, which are 2, by the reference."""
    away = np.abs(points - ROWS.to_numpy()[row]) / 2
    match norm:
        case "l0":
            return (away > 0).sum(axis=1)
        case "l1":
            return away.sum(axis=1)
        case "l2":
            return np.sqrt((away**2).sum(axis=1))
        case _:
            return away.max(axis=1)


@pytest.mark.parametrize("norm", ["l0", "l1", "l2", "linf"])
@pytest.mark.parametrize("sense", ["minimize", "maximize"])
@pytest.mark.parametrize("relation", ["", "-a.z + a.y <= 1"])
def test_optima_are_those_of_the_reference(model: Any, norm: str, sense: str, relation: str) -> None:
    margins = margins_of(model, POINTS)
    inside = POINTS[(margins > 0) & ((POINTS[:, 1] - POINTS[:, 2] <= 1) | (not relation))]
    for row in range(len(ROWS)):
        constraints = "; ".join(filter(None, ["margin(a) > 0", relation]))
        question = f"find a such that {constraints}\n  {sense} distance(a, row {row} of d, {norm})"
        with pytest.warns(UserWarning, match="E401"):
            shown = ask(model, question, DOMAIN, ROWS, backend="native").result.objective
        away = distance(inside, row, norm)
        expected = away.min() if sense == "minimize" else away.max()
        assert shown.value == pytest.approx(expected, abs=1e-6), row
        assert shown.bound == pytest.approx(expected, abs=1e-4), row


@pytest.mark.parametrize("norm", ["l0", "l1", "l2", "linf"])
def test_decisions_beyond_a_width(model: Any, norm: str) -> None:
    for row in range(len(ROWS)):
        away = distance(POINTS, row, norm)
        for limit in sorted({*away.tolist(), away.max() + 0.25})[::3]:
            question = f"find a such that margin(a) > -100; distance(a, row {row} of d, {norm}) >= {limit - 0.001:.6f}"
            with pytest.warns(UserWarning, match="E401"):
                answer = ask(model, question, DOMAIN, ROWS, backend="native")
            assert str(answer.verdict) == ("found" if (away >= limit - 0.001).any() else "none"), (row, limit)


@pytest.mark.parametrize("row", [4.5, 5.0, 6.0, 0.0, 1.0])
@pytest.mark.parametrize("relation", ["a.x - a.y <= 2", "a.y - a.x <= 2", "a.x + a.y >= 1", "a.z + a.x <= 9"])
def test_a_first_answer_one_width_away_is_not_the_farthest(model: Any, row: float, relation: str) -> None:
    """The search stopped at a distance of 1, "the width of the domain", whatever lay beyond it."""
    rows = pd.DataFrame({"x": [row], "y": [3.0], "z": [3.0]})
    expected = max(abs(row - 2), abs(row - 4), 1) / 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ts.errors.TreesensWarning)
        question = f"find a such that {relation}\n  maximize distance(a, row 0 of d, linf)"
        shown = ask(model, question, DOMAIN, rows, backend="native").result.objective
    assert (shown.value, shown.bound) == (expected, expected)
