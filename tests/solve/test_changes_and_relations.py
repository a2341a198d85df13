"""Fault 2: `changes` and the l0 distance compared cells, not values; features that no tree asks about never counted.

Fault 5: `a.x = b.x` held for two missing values. No relation holds for a missing value, and `!=` is `not =`.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.asking import ask, verdict
from tests.corpus import boosted

pytestmark = pytest.mark.fault

DECLARED = "feature f0: integer in [0, 5]\nfeature f1: category {red = 0, blue = 1}"
ROWS = pd.DataFrame({"f0": [0, 5], "f1": [0, 1]})


@pytest.fixture(scope="module")
def stump() -> Any:
    """Splits f0 at 2.5 and never asks about f1."""
    tree = pytest.importorskip("sklearn.tree")
    return tree.DecisionTreeClassifier(max_depth=1).fit(ROWS.assign(f1=0), [0, 1])


def pairs(stump: Any) -> list[tuple[tuple[int, int], tuple[int, int], bool]]:
    """All pairs of inputs, and whether the library predicts one class for both."""
    inputs = list(itertools.product(range(6), range(2)))
    classes = dict(zip(inputs, stump.predict(pd.DataFrame(inputs, columns=["f0", "f1"])), strict=True))
    return [(a, b, classes[a] == classes[b]) for a in inputs for b in inputs]


def differing(a: tuple[int, int], b: tuple[int, int]) -> int:
    return sum(x != y for x, y in zip(a, b, strict=True))


LIMITS = [">= 2", "<= 0", "= 1", "> 1", "< 1", "!= 0"]
QUANTITIES = ["changes(a, b)", "distance(a, b, l0)"]
BESIDES = ["a.f0 = 0; b.f0 in [1, 2]", "a.f1 = red; b.f1 = blue", "b.f0 >= a.f0 + 1", "a.f0 = b.f0"]
ASKED = [
    *(("native", *asked) for asked in itertools.product(QUANTITIES, LIMITS, BESIDES)),
    # Compiled alike for every solver, so that a part of it shows whether one takes it.
    *((b, q, limit, BESIDES[2]) for b, q, limit in itertools.product(["cpsat", "z3", "auto"], QUANTITIES, LIMITS[:4])),
]


@pytest.mark.parametrize(("backend", "quantity", "limit", "besides"), ASKED)
@pytest.mark.sampled
def test_differing_values_are_counted(stump: Any, quantity: str, limit: str, besides: str, backend: str) -> None:
    holds = {
        "a.f0 = 0; b.f0 in [1, 2]": lambda a, b: a[0] == 0 and b[0] in (1, 2),
        "a.f1 = red; b.f1 = blue": lambda a, b: a[1] == 0 and b[1] == 1,
        "b.f0 >= a.f0 + 1": lambda a, b: b[0] >= a[0] + 1,
        "a.f0 = b.f0": lambda a, b: a[0] == b[0],
    }[besides]
    operator = {"=": "==", "!=": "!="}.get(limit.split(maxsplit=1)[0], limit.split(maxsplit=1)[0])
    expected = any(
        same and holds(a, b) and eval(f"{differing(a, b)} {operator} {limit.split()[1]}") for a, b, same in pairs(stump)
    )
    question = f"find a, b such that {quantity} {limit}; {besides}; class(a) = class(b)"
    assert verdict(stump, question, DECLARED, backend=backend) == ("found" if expected else "none")


@pytest.mark.parametrize(("sense", "best"), [("minimize", min), ("maximize", max)])
@pytest.mark.parametrize("quantity", ["changes(a, b)", "distance(a, b, l0)"])
@pytest.mark.parametrize("backend", ["native", "cpsat", "highs"])
def test_the_optimum_is_one_of_values(stump: Any, sense: str, best: Any, quantity: str, backend: str) -> None:
    expected = best(differing(a, b) for a, b, same in pairs(stump) if same and b[0] >= a[0] + 1)
    question = f"find a, b such that class(a) = class(b); b.f0 >= a.f0 + 1\n  {sense} {quantity}"
    answer = ask(stump, question, DECLARED, backend=backend)
    objective = answer.to_dict()["objective"]
    assert (objective["value"], objective["bound"]) == (expected, expected)
    a, b = answer.points["a"], answer.points["b"]
    assert sum(a[f] != b[f] for f in a) == expected


def test_rows_are_counted_by_the_values_of_their_partners(stump: Any) -> None:
    answer = ask(
        stump, "count rows of d as a, b such that changes(a, b) = 1; class(a) = class(b); a.f0 = b.f0", DECLARED, ROWS
    )
    assert len(answer.count.rows) == 2  # f1 alone differs, and no tree asks about it


def test_missing_equals_missing_and_differs_from_values(stump: Any) -> None:
    declared = "feature f0: integer in [0, 5] or missing\nfeature f1: category {red = 0, blue = 1}"
    assert (
        verdict(stump, "find a, b such that changes(a, b) <= 0; missing(a.f0); not missing(b.f0)", declared) == "none"
    )
    assert verdict(stump, "find a, b such that changes(a, b) <= 0; missing(a.f0); missing(b.f0)", declared) == "found"


def test_two_limits_on_one_sum_of_values_clash(stump: Any) -> None:
    """The greatest number of changes within an l0 ball was left open, since no single limit rules the better ones out."""
    answer = ask(stump, "find a, b such that distance(a, b, l0) <= 1\n  maximize changes(a, b)", DECLARED).to_dict()
    assert (answer["objective"]["value"], answer["objective"]["bound"]) == (1, 1)


OR_MISSING = "feature x: integer in [0, 3] or missing\nfeature c: category {u = 0, v = 1} or missing"


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
        verdict(booster, f"find a, b such that {asked}; missing(a.{feature}); missing(b.{feature})", OR_MISSING) == both
    )
    assert (
        verdict(booster, f"find a, b such that {asked}; missing(a.{feature}); not missing(b.{feature})", OR_MISSING)
        == one
    )


def test_equal_points_may_miss_the_same_value(booster: Any) -> None:
    assert verdict(booster, "find a, b such that a = b except c; missing(a.x)", OR_MISSING) == "found"
    assert verdict(booster, "find a, b such that a = b except c; missing(a.x); a.x = b.x", OR_MISSING) == "none"
