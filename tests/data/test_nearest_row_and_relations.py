"""Fault 12: the distance to the nearest row, where values are related, stopped early with 1.47 (the optimum was 0.333), and was
`unknown` where nothing satisfies the question.

The expected values come from xgboost's own predictions on every value of the domain.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.asking import ask
from tests.corpus import boosted, margins_of

pytestmark = pytest.mark.fault

SIZES = (7, 6, 5)
NAMES = [f"f{i}" for i in range(3)]
DECLARED = "\n".join(f"feature {f}: integer in [0, {n - 1}]" for f, n in zip(NAMES, SIZES, strict=True))
EVERY = np.array(list(itertools.product(*map(range, SIZES))), float)


@pytest.fixture(scope="module")
def booster() -> Any:
    rng = np.random.default_rng(1)
    noisy = EVERY @ [1, 2, -1] + rng.normal(0, 3, len(EVERY))
    return boosted(EVERY, (noisy > 7).astype(int), 10, names=NAMES, eta=0.5)


def margins(booster: Any) -> np.ndarray:
    return np.asarray(margins_of(booster, EVERY))


def distance(norm: str, rows: np.ndarray) -> np.ndarray:
    """From every input to the nearest row."""
    apart = np.abs(EVERY[:, None] - rows[None]) / (np.array(SIZES) - 1)
    found = {
        "l0": (apart > 0).sum(axis=2),
        "l1": apart.sum(axis=2),
        "l2": np.sqrt((apart**2).sum(axis=2)),
        "linf": apart.max(axis=2),
    }[norm]
    return np.asarray(found.min(axis=1))


@pytest.mark.parametrize("backend", ["native", "auto"])
@pytest.mark.parametrize("norm", ["l0", "l1", "l2", "linf"])
def test_the_nearest_row_under_relations(booster: Any, norm: str, backend: str) -> None:
    scores = margins_of(booster, EVERY)
    rng = np.random.default_rng(4)
    rows = EVERY[rng.choice(np.flatnonzero(scores < 0), 8, replace=False)]
    fits = (scores >= 0.5) & (EVERY[:, 0] + EVERY[:, 1] <= 6) & (2 * EVERY[:, 2] - EVERY[:, 0] >= 1)
    expected = distance(norm, rows)[fits].min()
    question = (
        "find a such that margin(a) >= 0.5; a.f0 + a.f1 <= 6; 2 * a.f2 - a.f0 >= 1\n"
        f"  minimize distance(a, nearest row of d, {norm})"
    )
    table = pd.DataFrame(rows, columns=NAMES)
    goal = ask(booster, question, DECLARED, table, backend=backend, time_limit=20).result.objective
    assert goal.value == pytest.approx(expected)
    assert goal.bound == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_the_nearest_row_is_closed_to_the_last_digit(booster: Any, norm: str) -> None:
    scores = margins_of(booster, EVERY)
    rows = EVERY[np.random.default_rng(7).choice(np.flatnonzero(scores < 0), 6, replace=False)]
    expected = distance(norm, rows)[scores >= 0.8].min()
    question = f"find a such that margin(a) >= 0.8\n  minimize distance(a, nearest row of d, {norm})"
    table = pd.DataFrame(rows, columns=NAMES)
    goal = ask(booster, question, DECLARED, table, backend="native", time_limit=20).result.objective
    assert goal.value == pytest.approx(expected, abs=1e-9)
    assert goal.bound == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("backend", ["native", "auto"])
def test_a_contradiction_between_values_is_none(booster: Any, backend: str) -> None:
    # Twice a whole number is never odd: cells alone do not know.
    question = "find a such that 2 * a.f0 - 2 * a.f1 + 4 * a.f2 = 3\n  minimize distance(a, nearest row of d, l1)"
    table = pd.DataFrame(EVERY[:5], columns=NAMES)
    assert str(ask(booster, question, DECLARED, table, backend=backend, time_limit=20).verdict) == "none"


def test_a_domain_of_one_combination_of_cells_has_a_nearest_row(booster: Any) -> None:
    declared = "feature f0: integer in [3, 3]\nfeature f1: integer in [2, 2]\nfeature f2: integer in [1, 1]"
    (score,) = margins_of(booster, EVERY)[(EVERY == [3, 2, 1]).all(axis=1)]
    sign = ">=" if score >= 0 else "<="
    question = f"find a such that margin(a) {sign} 0\n  minimize distance(a, nearest row of d, l0)"
    table = pd.DataFrame([[0, 0, 1], [3, 0, 1], [6, 5, 4]], columns=NAMES, dtype=float)
    goal = ask(booster, question, declared, table, backend="native").result.objective
    assert goal.value == goal.bound == 1
