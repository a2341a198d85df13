"""Third set, faults 15, 17 and 22: what a table and a declaration say.

`1_000` and digits of other scripts were numbers, as they are to Python and to nobody else; `domain from DATA` wanted columns
that no tree asks about; text of a column that a pipeline drops could not be declared; several labels were called damage.

Fault 9: columns of whole numbers became real, so that answers had ages such as 33.500000000000014.
"""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import treesens as ts
from tests.asking import ask
from tests.command import run_command
from treesens.compiler.base.diagnostics import DiagnosticsError
from treesens.compiler.base.floats import float_of, fraction_of, whole_of
from treesens.data.tables import read_table
from treesens.errors import DataError, ModelError, TreesensError

xgb = pytest.importorskip("xgboost")
pytestmark = pytest.mark.fault

WIDE = "\uff11\uff12"
ARABIC = "\u0661\u0662"


@pytest.mark.parametrize("text", ["1_000", WIDE, ARABIC, "0x10", "1e1_0", "1 000", "--1", "1e", ".", "+", "infinit"])
def test_no_such_text_is_a_number(text: str, tmp_path: Path) -> None:
    assert float_of(text) is None
    assert whole_of(text) is None
    with pytest.raises(ValueError, match="is no number"):
        fraction_of(text)
    path = tmp_path / "d.csv"
    path.write_text(f"a,b\n{text},0\n1,1\n", encoding="utf-8")
    with pytest.raises(DataError, match="contains the text"):
        read_table(path).numbers("a")


@pytest.mark.parametrize("text", ["1000", "-1.5", ".5", "5.", "1e3", "+2E-3", "inf", "-Infinity"])
def test_decimals_are_numbers(text: str, tmp_path: Path) -> None:
    assert float_of(text) == float(text)
    path = tmp_path / "d.csv"
    path.write_text(f"a,b\n{text},0\n,1\n", encoding="utf-8")
    assert read_table(path).numbers("a")[0] == float(text)


def test_questions_and_options_know_ascii_digits_alone(tmp_path: Path) -> None:
    xgboost = pytest.importorskip("xgboost")
    x = pd.DataFrame({"a": np.arange(20.0), "b": np.zeros(20)})
    model = xgboost.XGBClassifier(n_estimators=1, max_depth=1).fit(x, x.a > 9)
    with pytest.raises(DiagnosticsError):
        ask(model, f"find a such that a.a >= {WIDE}")
    path = tmp_path / "m.json"
    model.save_model(path)
    options = [["info", "m.json", *option] for option in (["--rows", "1_0"], ["--rows", ARABIC], ["--seed", "1_0"])]
    options += [["audit", "m.json", "--data", "m.json", *o] for o in (["--gap", "0.1_0"], ["--threshold", "0.2_0"])]
    for arguments in [*options, ["audit", "m.json", "--data", "m.json", "--time-limit", "1_0"]]:
        done = run_command(tmp_path, *arguments)
        assert done.returncode != 0
        assert f"{arguments[-1]}` is no" in done.stderr


def test_a_domain_needs_no_column_that_no_tree_asks_about() -> None:
    """Fault 22: `b` is constant, and the table does not have it."""
    xgboost = pytest.importorskip("xgboost")
    x = pd.DataFrame({"a": np.arange(20.0), "b": np.zeros(20), "c": np.tile([0.0, 1.0], 10)})
    model = xgboost.XGBClassifier(n_estimators=2, max_depth=1).fit(x, x.a > 9)
    assert str(ask(model, "find a such that class(a) = 1", "domain from d", x[["a", "c"]]).verdict) == "found"
    with pytest.raises(DiagnosticsError, match="E116"):
        ask(model, "find a such that class(a) = 1", "domain from d", x[["b", "c"]])


def test_several_labels_at_once_are_refused_by_name() -> None:
    xgboost = pytest.importorskip("xgboost")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 2))
    model = xgboost.XGBClassifier(n_estimators=2).fit(x, (x > 0).astype(int))
    with pytest.raises(ModelError, match="several labels at once are not one model"):
        ts.load(model)


def test_text_that_a_pipeline_drops_can_be_declared() -> None:
    """Fault 17."""
    pytest.importorskip("sklearn")
    from sklearn.compose import ColumnTransformer
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import make_pipeline

    rng = np.random.default_rng(0)
    x = pd.DataFrame({"x": rng.normal(size=40), "town": rng.choice(["Bonn", "Ulm"], 40)})
    keep = ColumnTransformer([("keep", "passthrough", ["x"])], remainder="drop")
    model = make_pipeline(keep, RandomForestClassifier(3, random_state=0)).fit(x, x.x > 0)
    towns = "feature town: category {Bonn, Ulm}\ndomain from d"
    for town in ("Bonn", "Ulm"):
        found = ask(model, f"find a such that class(a) = 1; a.town = {town}", towns, x, replay="library")
        assert found.points["a"]["town"] == town
    row = ask(model, "find a such that a = row 0 of d", towns, x)
    assert row.points["a"] == {"x": pytest.approx(x.x[0]), "town": x.town[0]}


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
    assert "pass real=['age'] if fractions can occur" in note, "the remedy is one of Python"
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
