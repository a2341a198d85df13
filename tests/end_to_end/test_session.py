"""Many questions in one session: the answers of a file with one of them, and no memory that grows with their number."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

import treesens as ts
from tests.extensions.methods.test_least_radius import DOMAIN, NAMES, training_set, xgboost_model
from treesens.errors import UsageError
from treesens.python.questions import Session

QUESTIONS = (
    "find a such that class(a) = 1\n  minimize distance(a, row 0 of d, linf)",
    "find a such that class(a) = 0\n  minimize distance(a, row 1 of d, linf)",
    "sensitive m to f1 margin 0.5",
    "sensitive m to {f0, f1} margin 9",
    "find a such that class(a) = 1; a.f0 <= 0.25; a.f2 >= 3",
    "find a such that class(a) = 1\n  minimize distance(a, row 2 of d, l1)",
    "count rows of d as a such that class(a) = 1",
)


@pytest.fixture
def setting() -> tuple[Any, pd.DataFrame]:
    booster, _, _ = xgboost_model(3)
    return booster, pd.DataFrame(training_set(400, 20)[0], columns=list(NAMES))


def facts(answer: Any) -> tuple[Any, ...]:
    goal = answer.result.objective
    count = None if answer.count is None else answer.count.rows
    return str(answer.verdict), None if goal is None else (goal.value, goal.bound), count


def test_answers_are_those_of_files_with_one_question(setting: tuple[Any, pd.DataFrame]) -> None:
    model, data = setting
    with ts.session(model, data, declarations=DOMAIN, time_limit=20) as s:
        asked = [s.ask(question) for question in (*QUESTIONS, *reversed(QUESTIONS))]
    head = f'model m from "m"\ndata d from "d"\n{DOMAIN}'
    for question, answer in zip((*QUESTIONS, *reversed(QUESTIONS)), asked, strict=True):
        alone = ts.check_text(f"{head}query q: {question}\n", models={"m": model}, data={"d": data}, time_limit=20)
        assert facts(answer) == facts(alone["q"]), question


def test_new_constants_do_not_pile_up(setting: tuple[Any, pd.DataFrame]) -> None:
    model, data = setting
    with ts.session(model, data, declarations=DOMAIN) as s:
        for i in range(80):
            answer = s.ask(f"find a such that class(a) = 1; a.f0 <= {0.3 + i / 1000}")
            if answer.points is not None:
                assert answer.points["a"]["f0"] <= 0.3 + i / 1000
        assert isinstance(s, Session)
        assert s._declared is not None
        (inputs,) = [found for found in s._declared._binder.inputs.values() if found is not None]
        assert len(inputs.cache) < 60


def test_mistakes_end_one_question_and_not_the_session(setting: tuple[Any, pd.DataFrame]) -> None:
    model, data = setting
    with ts.session(model, data, declarations=DOMAIN) as s:
        with pytest.raises(Exception, match="no feature"):
            s.ask("sensitive m to age")
        with pytest.raises(UsageError, match="several questions"):
            s.ask("sensitive m to f0\nquery other: sensitive m to f1")
        assert str(s.ask(QUESTIONS[2]).verdict) in {"found", "none"}
    with pytest.raises(UsageError, match="closed"):
        s.ask(QUESTIONS[2])
