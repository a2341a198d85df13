"""Stronger questions: whatever satisfies one satisfies the question, and close pairs are found by way of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.binder.setting import NAMES, one, values
from tests.trials import trials
from treesens.compiler.base.budget import Budget
from treesens.compiler.query.evaluate import holds, inputs_of
from treesens.solve.methods.refine import answer_refined, stronger_questions
from treesens.solve.options import Options
from treesens.solve.question import answer_question

DISTANCES = (
    "distance(a, b, l1) <= 0.5",
    "distance(a, b, l1) < 3",
    "distance(a, b, l2) <= 0.4",
    "distance(a, b, l2) < 1",
    "distance(a, b, l2) <= 0.3 or distance(a, b, l1) <= 0.2",
    "distance(a, b, l2) <= 1\n  distance(a, row 0 of rows, l1) <= 4",
)


@pytest.mark.parametrize("constraints", DISTANCES)
def test_what_answers_a_stronger_question_answers_the_question(constraints: str) -> None:
    rng = np.random.default_rng(0)
    query = one(constraints).query
    asked = list(stronger_questions(query))
    assert 2 <= len(asked) <= len(NAMES) + 1
    answers = 0
    for _ in trials(800):
        a = values(rng)
        b = a | {name: value for name, value in values(rng).items() if rng.random() < 0.2}
        near = {n: a[n] + (v - a[n]) * rng.choice([0.05, 0.3, 1]) if n in {"x", "y"} else v for n, v in b.items()}
        x = inputs_of(query, np.array([[p[n] for n in NAMES] for p in (a, near)]))
        for stronger in asked:
            if all(holds(c, x) for c in stronger.constraints):
                answers += 1
                assert all(holds(c, x) for c in query.constraints)
    assert answers > 20


@pytest.mark.parametrize(
    "constraints",
    ["margin(a) >= 1", "distance(a, row 0 of rows, l2) <= 1", "distance(a, b, l2) >= 1", "a.x <= b.x + 1"],
)
def test_nothing_else_is_made_stronger(constraints: str) -> None:
    assert list(stronger_questions(one(constraints).query)) == []


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_a_close_pair_is_found_by_way_of_a_stronger_question(norm: str) -> None:
    question = one(f"distance(a, b, {norm}) <= 0.01\n  margin(a) >= margin(b) + 0.1")
    result = answer_refined(question.query, Options(backend="native"), Budget.of(20))
    assert str(result.verdict) == "found"
    assert any("stronger" in note for note in result.notes)


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_the_closest_pair_across_a_threshold_is_proved_closest(norm: str) -> None:
    question = one("margin(a) >= margin(b) + 0.1")
    target = one(f"distance(a, b, {norm}) <= 1\n  margin(a) >= margin(b) + 0.1\nminimize distance(a, b, {norm})")
    result = answer_question(replace(question, query=target.query), Options(backend="native", time_limit=20))
    assert result.objective is not None
    assert result.objective.bound == 0.0
    assert 0 < result.objective.value < 1e-4
