"""Fault 5: `a.x = b.x` held for two missing values. No relation holds for a missing value, and `!=` is `not =`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.asking import verdict
from tests.corpus import boosted

pytestmark = pytest.mark.fault

DECLARED = "feature x: integer in [0, 3] or missing\nfeature c: category {u = 0, v = 1} or missing"


@pytest.fixture(scope="module")
def booster() -> Any:
    rng = np.random.default_rng(0)
    x = np.stack([rng.integers(0, 4, 60), rng.integers(0, 2, 60)], axis=1).astype(float)
    return boosted(x, (x.sum(axis=1) > 2).astype(int), 2, 2, names=["x", "c"])


@pytest.mark.parametrize("feature", ["x", "c"])
@pytest.mark.parametrize(
    ("relation", "both", "one"),
    [("a.{f} = b.{f}", "none", "none"), ("a.{f} != b.{f}", "found", "found"), ("not (a.{f} = b.{f})", "found", "found"),
     ("not (a.{f} != b.{f})", "none", "none")],
)  # fmt: skip
def test_no_relation_holds_for_a_missing_value(booster: Any, feature: str, relation: str, both: str, one: str) -> None:
    asked = relation.format(f=feature)
    assert (
        verdict(booster, f"find a, b such that {asked}; missing(a.{feature}); missing(b.{feature})", DECLARED) == both
    )
    assert (
        verdict(booster, f"find a, b such that {asked}; missing(a.{feature}); not missing(b.{feature})", DECLARED)
        == one
    )


def test_equal_points_may_miss_the_same_value(booster: Any) -> None:
    assert verdict(booster, "find a, b such that a = b except c; missing(a.x)", DECLARED) == "found"
    assert verdict(booster, "find a, b such that a = b except c; missing(a.x); a.x = b.x", DECLARED) == "none"
