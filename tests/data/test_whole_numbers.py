"""Fault 9: columns of whole numbers became real, so that answers had ages such as 33.500000000000014."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

import treesens as ts
from tests.asking import ask
from treesens.errors import TreesensError

xgb = pytest.importorskip("xgboost")
pytestmark = pytest.mark.fault


def data() -> tuple[pd.DataFrame, np.ndarray[Any, Any]]:
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(
        {"age": rng.integers(18, 80, 400), "amount": rng.integers(0, 20000, 400), "rate": rng.random(400)}
    )
    return frame, ((frame["age"] * 200 + frame["amount"]) * (0.5 + frame["rate"]) > 18000).astype(int).to_numpy()


@pytest.fixture(scope="module")
def model() -> Any:
    frame, label = data()
    return xgb.XGBClassifier(n_estimators=20, max_depth=4).fit(frame, label)


@pytest.mark.parametrize("near", [None, "distance", "likelihood"])
@pytest.mark.parametrize("vary", ["age", "amount"])
def test_answers_have_whole_numbers(model: Any, vary: str, near: Any) -> None:
    frame, _ = data()
    answer = ts.sensitivity(model, vary=[vary], gap=0.05, data=frame, near=near)
    assert answer.points is not None
    for point in answer.points.values():
        assert float(point["age"]).is_integer()
        assert float(point["amount"]).is_integer()
    a, b = (model.predict_proba(pd.DataFrame([answer.points[p]])[list(frame.columns)])[0, 1] for p in "ab")
    assert a >= 0.55 - 1e-6
    assert b <= 0.45 + 1e-6


def test_features_that_the_model_file_calls_integers_are_whole(model: Any) -> None:
    assert "int" in model.get_booster().feature_types
    assert float(ask(model, "find a such that a.age > 30.5; a.age < 31.5").points["a"]["age"]) == 31
    with pytest.raises(TreesensError, match=r"E306|E309"):
        ask(model, "find a such that a.age > 30; a.age < 31")


def test_a_note_says_so_and_fractions_can_be_allowed(model: Any) -> None:
    frame, _ = data()
    (note,) = ts.sensitivity(model, vary=["age"], gap=0.05, data=frame).notes
    assert re.search(r"E403.*`age`, `amount`", note)
    assert "give real=['age'] if fractions can occur" in note, "the remedy is one of Python"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = ask(model, "find a such that a.age > 30; a.age < 31", "feature age: real\ndomain from d", frame)
    assert 30 < found.points["a"]["age"] < 31
    for beyond in ("a.age >= 79", "a.age <= 18"):
        assert ask(model, f"find a such that {beyond}", "feature age: real\ndomain from d", frame).verdict == "found"


def test_the_audit_takes_whole_numbers_unless_told_otherwise(model: Any) -> None:
    frame, _ = data()
    whole = ts.audit(model, frame, vary=["age"], gap=0.05)
    real = ts.audit(model, frame, vary=["age"], gap=0.05, real=["age", "amount"])
    assert int(whole["rows_flipped"][0]) <= int(real["rows_flipped"][0])
    ages = range(int(frame["age"].min()), int(frame["age"].max()) + 1)
    chances = np.stack([model.predict_proba(frame.assign(age=age))[:, 1] for age in ages])
    flips = ((chances >= 0.55).any(axis=0) & (chances <= 0.45).any(axis=0)).sum()
    assert int(whole["rows_flipped"][0]) == int(flips)
