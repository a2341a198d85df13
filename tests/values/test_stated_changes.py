"""Constraints that two points cannot agree under say the least number of changes, so that no search has to prove it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import isnan
from typing import Any

import numpy as np
import pytest

import treesens as ts
from tests.corpus import boosted, margins_of

NAN = float("nan")
VALUES = (0.0, 1.0, 2.0, NAN)
Point = tuple[float, float]


def differs(one: float, other: float) -> bool:
    """As `changes` counts it (docs/language.md): missing is equal to missing, and to no value."""
    return one != other and not (isnan(one) and isnan(other))


def unequal(a: Point, b: Point) -> bool:
    """`a.x != b.x` is `not a.x = b.x`, and no relation holds for a missing value."""
    return a[0] != b[0]


def apart(a: Point, b: Point) -> bool:
    """Every distance is 0 for points that agree, and above 0 for all others."""
    return any(map(differs, a, b))


LIMITS: dict[str, Callable[[Point, Point], bool]] = {
    "distance(a, b, l1) > 0": apart,
    "distance(a, b, l2) > 0": apart,
    "distance(a, b, linf) > 0": apart,
    "not distance(a, b, l1) <= 0": apart,
    "distance(a, b, l1) >= 0": lambda a, b: True,
    "a.x != b.x": unequal,
    "a.x < b.x": lambda a, b: a[0] < b[0],
    "abs(a.y - b.y) > 0": lambda a, b: abs(a[1] - b[1]) > 0,
    "(a.x < b.x or distance(a, b, l2) > 0)": apart,
    "(a.x < b.x or changes(a, b) >= 2)": lambda a, b: a[0] < b[0] or sum(map(differs, a, b)) >= 2,
    "(a.x < b.x or a.x >= 1)": lambda a, b: a[0] < b[0] or a[0] >= 1,
    "(a.x < b.x and a.y > b.y)": lambda a, b: a[0] < b[0] and a[1] > b[1],
    "changes(a, b) >= 2": lambda a, b: sum(map(differs, a, b)) >= 2,
}


@pytest.fixture(scope="module")
def booster() -> Any:
    points = np.array([*product(VALUES, VALUES)])
    labels = (np.nan_to_num(points[:, 0], nan=3.0) + np.nan_to_num(points[:, 1], nan=-1.0) > 1.5).astype(int)
    return boosted(np.repeat(points, 4, axis=0), np.repeat(labels, 4), 4, 2, names=["x", "y"], eta=0.5)


@pytest.mark.parametrize("kind", ["integer in [0, 2] or missing", "real in [0, 2]"])
@pytest.mark.parametrize("limit", LIMITS)
def test_the_fewest_changes_are_proved(limit: str, kind: str, booster: Any) -> None:
    values = VALUES if "missing" in kind else VALUES[:3]
    points: list[Point] = [*product(values, values)]
    margins = margins_of(booster, np.array(points))
    low = [p for p, m in zip(points, margins, strict=True) if m <= 0.25]
    fewest = min(sum(map(differs, a, b)) for a, b in product(low, points) if LIMITS[limit](a, b))
    text = (
        f'model m from "m"\nfeature x: {kind}\nfeature y: {kind}\n'
        f"query q:\n  find a, b in m such that\n    margin(a) <= 0.25\n    {limit}\n  minimize changes(a, b)\n"
    )
    answer = ts.check_text(text, models={"m": booster})["q"].to_dict()["objective"]
    # More values than the whole ones make no fewer changes: whether a value differs is all that these limits ask.
    assert (answer["value"], answer["bound"]) == (fewest, fewest)
