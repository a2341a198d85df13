"""Fault 32: on domains of a few hundred inputs the distance to the nearest row kept a gap: the bound of `linf` was 2^-10 of its
value too low, and there was none beside relations between values. Where every feature is sensitive, a distance over no features
is 0; asking for it was an error.

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

NAMES = ["f0", "f1", "f2", "f3"]
LOWEST, HIGHEST = np.array([1, 0, -1, 2]), np.array([7, 2, 0, 6])
DECLARED = (
    "\n".join(f"feature {n}: integer in [{a}, {b}]" for n, a, b in zip(NAMES, LOWEST, HIGHEST, strict=True))
    + " or missing"
)
PRESENT = np.array(list(itertools.product(*(range(a, b + 1) for a, b in zip(LOWEST, HIGHEST, strict=True)))), float)
LACKING = np.where([False, False, False, True], np.nan, PRESENT[PRESENT[:, 3] == LOWEST[3]])
EVERY = np.vstack([PRESENT, LACKING])
ALL = "{" + ", ".join(NAMES) + "}"


@pytest.fixture(scope="module")
def booster() -> Any:
    rng = np.random.default_rng(3)
    noisy = PRESENT @ [1, -2, 3, 1] + rng.normal(0, 3, len(PRESENT))
    return boosted(PRESENT, (noisy > np.median(noisy)).astype(int), 6, names=NAMES, eta=0.5)


def margins(booster: Any) -> np.ndarray:
    return np.asarray(margins_of(booster, EVERY))


def distances(norm: str, rows: np.ndarray) -> np.ndarray:
    """From every input to every row, float64[inputs, rows]."""
    one, other = EVERY[:, None], rows[None]
    apart = np.abs(one - other) / (HIGHEST - LOWEST)
    apart = np.where(np.isnan(one) | np.isnan(other), np.isnan(one) != np.isnan(other), apart)
    return np.asarray(
        {
            "l0": (apart > 0).sum(axis=2),
            "l1": apart.sum(axis=2),
            "l2": np.sqrt((apart**2).sum(axis=2)),
            "linf": apart.max(axis=2),
        }[norm]
    )


def rows_of(scores: np.ndarray, seed: int) -> np.ndarray:
    """Twelve inputs that the model refuses, so that none of them is an answer; every third has no f3."""
    refused = np.flatnonzero(scores[: len(PRESENT)] < 0)
    rows = PRESENT[np.random.default_rng(seed).choice(refused, 12, replace=False)]
    rows[::3, 3] = np.nan
    return rows


def check(booster: Any, where: str, norm: str, rows: np.ndarray, expected: float) -> None:
    question = f"find a such that {where}\n  minimize distance(a, nearest row of d, {norm})"
    table = pd.DataFrame(rows, columns=NAMES)
    goal = ask(booster, question, DECLARED, table, backend="native", time_limit=20).result.objective
    assert goal.value == pytest.approx(expected, abs=1e-12)
    assert goal.bound == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("norm", ["l0", "l1", "l2", "linf"])
@pytest.mark.parametrize("seed", [1, 3])
def test_distances_that_are_compared_leave_no_gap(booster: Any, norm: str, seed: int) -> None:
    scores = margins_of(booster, EVERY)
    rows = rows_of(scores, seed)
    near = distances("l1", rows)
    fits = (scores >= 0.4) & (near[:, 3] >= near[:, 4]) & (near[:, 1] < 1)
    where = "not (distance(a, row 3 of d, l1) < distance(a, row 4 of d, l1)); distance(a, row 1 of d, l1) < 1"
    check(booster, f"{where}; margin(a) >= 0.4", norm, rows, distances(norm, rows)[fits].min())


@pytest.mark.parametrize("norm", ["l0", "l1", "l2", "linf"])
def test_relations_far_from_all_rows_leave_no_gap(booster: Any, norm: str) -> None:
    # Every row lies outside the domain.
    rows = rows_of(margins_of(booster, EVERY), 0) + np.array([8, 0.5, 0, 0])
    fits = (EVERY[:, 0] + 2 * EVERY[:, 1] == 2) & (EVERY[:, 2] == 0)
    check(booster, "a.f0 + 2 * a.f1 = 2; a.f2 = 0", norm, np.vstack([rows, rows]), distances(norm, rows)[fits].min())


@pytest.mark.parametrize("norm", ["l0", "l1", "l2", "linf"])
@pytest.mark.parametrize("backend", ["native", "auto"])
@pytest.mark.parametrize("where", ["", "; (margin(b) <= 0 implies a = row 1 of d)"])
def test_a_distance_over_no_features_is_zero(booster: Any, norm: str, backend: str, where: str) -> None:
    scores = margins_of(booster, EVERY)
    rows = rows_of(scores, 1)
    question = f"find a, b such that a = b except {ALL}{where}\n  minimize distance(b, nearest row of d, {norm})"
    answer = ask(booster, question, DECLARED, pd.DataFrame(rows, columns=NAMES), backend=backend, time_limit=20)
    assert answer.result.objective.value == answer.result.objective.bound == 0
    a, b = answer.result.witness.values
    (score,) = scores[[np.array_equal(b, x, equal_nan=True) for x in EVERY]]
    assert not where or score > 0 or np.array_equal(a, rows[1], equal_nan=True)


def test_no_pair_at_all_is_none_over_no_features(booster: Any) -> None:
    question = (
        f"find a, b such that a = b except {ALL}; margin(a) >= {margins_of(booster, EVERY).max() + 1}\n"
        "  minimize distance(b, nearest row of d, linf)"
    )
    rows = pd.DataFrame(PRESENT[:4], columns=NAMES)
    assert str(ask(booster, question, DECLARED, rows, backend="native", time_limit=20).verdict) == "none"
