"""Fault 39: the largest linf distance to a row that lies more than a width outside of the domain had 1 for a proved bound."""

from __future__ import annotations

import warnings
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest

import treesens as ts
from tests.asking import ask
from tests.corpus import boosted, margins_of

pytestmark = pytest.mark.fault

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
