"""The best value of a sum of features: against every combination of values that can be best, by the library itself."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import treesens as ts
from tests.corpus import boosted
from tests.extensions.methods.test_least_radius import DOMAIN, candidates, forest_model, training_set, xgboost_model
from treesens.compiler.base.diagnostics import DiagnosticsError

ENDS = np.array([[0, 0, 0], [1, 4, 9]], np.float32)


def every_end(cuts: dict[str, list[float]]) -> Any:
    """float32[n, 3]: the floats beside thresholds, and the ends of the domain: a best value is at one of them."""
    both = [candidates(row, cuts) for row in ENDS]
    columns = [np.unique(np.concatenate([part[:, i] for part in both])) for i in range(3)]
    return np.array(list(itertools.product(*columns)), np.float32)


def best_of(text: str, model: Any) -> Any:
    return ts.check_text(f'model m from "m"\n{DOMAIN}query q: {text}', models={"m": model})["q"]


@pytest.mark.parametrize("make", [xgboost_model, forest_model])
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("form", "weights", "offset"),
    [
        ("a.f0", (1, 0, 0), 0),
        ("0.5 * a.f1 - 3 * a.f0 + 2", (-3, 0.5, 0), 2),
        ("a.f0 + a.f1 / 4 - a.f2", (1, 0.25, -1), 0),
    ],
)
@pytest.mark.parametrize("sense", ["minimize", "maximize"])
@pytest.mark.sampled
def test_the_best_sum_is_that_of_trying_all_values(
    make: Callable[[int], Any], seed: int, form: str, weights: tuple[float, ...], offset: float, sense: str
) -> None:
    model, classes, cuts = make(seed)
    points = every_end(cuts)
    for wanted in (0, 1):
        inside = points[classes(points) == wanted].astype(np.float64)
        sums = inside @ np.array(weights) + offset
        answer = best_of(f"find a such that class(a) = {wanted} {sense} {form}", model)
        if len(sums) == 0:
            assert str(answer.verdict) == "none"
            continue
        expected = float(sums.min() if sense == "minimize" else sums.max())
        goal = answer.result.objective
        assert goal.value == pytest.approx(expected, rel=1e-9, abs=1e-9)
        worse = 1 if sense == "minimize" else -1
        assert worse * (expected - goal.bound) >= -1e-12
        assert worse * (expected - goal.bound) <= 1e-5
        values = answer.result.witness.values.astype(np.float32)
        assert int(classes(values)[0]) == wanted
        assert float(values[0] @ np.array(weights)) + offset == pytest.approx(goal.value, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_a_difference_of_two_points_beside_a_relation(seed: int) -> None:
    """The least rise of one feature that turns the class, the others being equal."""
    model, classes, cuts = xgboost_model(seed)
    points = every_end(cuts)
    rises = []
    for _, group in itertools.groupby(
        sorted(points.tolist(), key=lambda p: (p[1], p[2], p[0])), key=lambda p: (p[1], p[2])
    ):
        line = np.array(list(group), np.float32)
        own = classes(line)
        rises += [
            float(high[0]) - float(low[0])
            for (low, one), (high, other) in itertools.combinations(zip(line, own, strict=True), 2)
            if one == 0 and other == 1
        ]
    text = "find a, b such that a = b except {f0}; a.f0 <= b.f0; class(a) = 0; class(b) = 1 minimize b.f0 - a.f0"
    answer = best_of(text, model)
    assert (str(answer.verdict) == "found") is bool(rises)
    if rises:
        goal = answer.result.objective
        assert goal.value == pytest.approx(min(rises), abs=1e-4)
        assert 0 <= goal.bound <= min(rises)


def test_units_are_those_that_people_type() -> None:
    x, y = training_set(1)
    x[:, 0] = np.round(x[:, 0] * 73) / 73

    model = boosted(x, y, 3, names=["age", "q", "r"])
    text = (
        'model m from "m"\nfeature age: integer in [17, 90] stored as [0, 1]\n'
        "query q: find a such that a.age <= 40 maximize 2 * a.age + 1\n"
        "query r: find a such that a.age != 17 minimize a.age"
    )
    answers = ts.check_text(text, models={"m": model})
    assert [answers[name].result.objective.value for name in "qr"] == pytest.approx([81, 18])
    assert [answers[name].result.objective.bound for name in "qr"] == pytest.approx([81, 18])


def test_a_missing_value_is_no_best_value() -> None:
    rng = np.random.default_rng(2)
    x = rng.random((200, 2)).astype(np.float32)
    y = (x[:, 0] > 0.6).astype(int)
    x[rng.random(200) < 0.3, 0] = np.nan
    booster = boosted(x, y, 4, 2)
    declared = 'model m from "m"\nfeature f0: real in [0, 1] or missing\n'
    low = ts.check_text(declared + "query q: find a minimize a.f0", models={"m": booster})["q"]
    assert low.result.objective.value == 0
    with pytest.raises(DiagnosticsError, match="E309"):
        ts.check_text(declared + "query q: find a such that missing(a.f0) minimize a.f0", models={"m": booster})


def test_terms_that_cancel_leave_the_constant() -> None:
    model, _, _ = xgboost_model(0)
    answer = best_of("find a, b such that a = b except {f1}; class(a) != class(b) minimize a.f0 - b.f0 + 3", model)
    assert answer.result.objective.value == 3
    assert answer.result.objective.bound == 3
