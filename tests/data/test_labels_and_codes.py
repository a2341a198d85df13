"""Fault 6: categories that are called by numbers were taken for codes, in questions and in tables."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import treesens as ts
from tests.asking import ask, verdict
from treesens.binder.domains import number_codes
from treesens.cli import group
from treesens.data.tables import Categories, Table, decimal_of, read_table
from treesens.errors import TreesensError
from treesens.extensions.studies.losses import rows_of

pytestmark = pytest.mark.fault

GRADES = [1, 2, 3, 4]


def table(rows: int = 400) -> tuple[pd.DataFrame, np.ndarray[Any, Any]]:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"grade": rng.choice(GRADES, rows), "income": rng.normal(50, 15, rows).round(2)})
    return frame, (frame["income"] + 10 * frame["grade"].isin([2, 4]) > 55).astype(int).to_numpy()


def categorical(frame: pd.DataFrame, labels: list[Any] = GRADES) -> pd.DataFrame:
    return frame.assign(grade=pd.Categorical(frame["grade"], categories=labels))


@pytest.fixture(scope="module", params=["xgboost", "lightgbm", "sklearn"])
def model(request: pytest.FixtureRequest) -> Any:
    frame, label = table()
    library = pytest.importorskip(request.param)
    if request.param == "xgboost":
        return library.XGBClassifier(n_estimators=5, max_depth=3, enable_categorical=True).fit(
            categorical(frame), label
        )
    if request.param == "lightgbm":
        return library.LGBMClassifier(n_estimators=5, min_child_samples=5, verbose=-1).fit(categorical(frame), label)
    ensemble = pytest.importorskip("sklearn.ensemble")
    return ensemble.HistGradientBoostingClassifier(max_iter=5, categorical_features="from_dtype").fit(
        categorical(frame), label
    )


@pytest.mark.parametrize("as_written", [lambda f: f, categorical], ids=["whole numbers", "categories"])
def test_a_number_in_a_question_is_a_label(model: Any, as_written: Any) -> None:
    frame, _ = table()
    for constraint, labels in [
        ("a.grade = 2", [2]),
        ("a.grade = `2`", [2]),
        ("a.grade in {1, 4}", [1, 4]),
        ("a.grade != 3", [1, 2, 4]),
    ]:
        answer = ask(model, f"count rows of d as a such that {constraint}", "domain from d", as_written(frame))
        assert list(answer.count.rows) == np.flatnonzero(frame["grade"].isin(labels)).tolist(), constraint
        assert answer.points["a"]["grade"] in labels


def test_a_column_without_the_last_label_is_not_shifted(model: Any) -> None:
    frame, _ = table()
    frame = frame[frame["grade"] <= 3].reset_index(drop=True)
    expected = int((model.predict_proba(categorical(frame))[:, 1] >= 0.5).sum())
    assert (
        len(ask(model, "count rows of d as a such that prob(a) >= 0.5", "domain from d", frame).count.rows) == expected
    )


def test_a_number_that_is_no_label_is_an_error_and_not_a_code(model: Any) -> None:
    with pytest.raises(TreesensError, match="no category"):
        ask(model, "find a such that a.grade = 0")
    frame, _ = table(20)
    with pytest.raises(TreesensError, match="contains 0 in row 0, which is no category of the model") as caught:
        ask(model, "find a such that a = row 0 of d", "", frame.assign(grade=0))
    assert "1, 2, 3, 4" in str(caught.value)


def test_declared_numbers_are_labels_too(model: Any) -> None:
    declared = "feature grade: category {low = 1, high = 4}\nfeature income: real in [0, 100]"
    answer = ask(model, "find a such that a.grade = high", declared)
    row = pd.DataFrame({"grade": [4], "income": [answer.points["a"]["income"]]})
    expected = model.predict_proba(categorical(row))[0, 1]
    assert answer.to_dict()["scores"]["a"]["prob"] == pytest.approx(expected, abs=1e-6)
    assert verdict(model, "find a such that a.grade = low", declared) == "found"


def test_the_audit_of_a_csv_file_sees_what_the_library_sees(tmp_path: Path) -> None:
    xgb = pytest.importorskip("xgboost")
    frame, label = table()
    model = xgb.XGBClassifier(n_estimators=5, max_depth=3, enable_categorical=True).fit(categorical(frame), label)
    chances = np.stack([model.predict_proba(categorical(frame.assign(grade=g)))[:, 1] for g in GRADES])
    own = model.predict_proba(categorical(frame))[:, 1]
    up, down = (own <= 0.4) & (chances >= 0.6).any(axis=0), (own >= 0.6) & (chances <= 0.4).any(axis=0)
    frame.to_csv(tmp_path / "d.csv", index=False)
    found = ts.audit(model, data=tmp_path / "d.csv", vary=["grade"], gap=0.1)
    assert list(found["rows_flipped"]) == [int((up | down).sum())]


def test_classes_that_are_called_by_numbers_are_no_positions() -> None:
    ensemble = pytest.importorskip("sklearn.ensemble")
    x = np.arange(12.0)[:, None]
    for labels in ([1, 2], ["1", "2"], [0, 5]):
        y = np.array(labels)[(x[:, 0] > 5).astype(int)]
        model = ensemble.RandomForestClassifier(3, random_state=0).fit(x, y)
        for label in labels:
            answer = ask(model, f"find a such that class(a) = {label}", "feature f0: integer in [0, 11]")
            assert model.predict([[answer.points["a"]["f0"]]])[0] == label
        flip = ask(model, "sensitive m to f0", "feature f0: integer in [0, 11]")
        a, b = (model.predict([[flip.points[p]["f0"]]])[0] for p in "ab")
        assert (a, b) == (labels[1], labels[0])


def test_text_of_a_column_is_no_code_either() -> None:
    lgb = pytest.importorskip("lightgbm")
    frame, label = table()
    names = {1: "one", 2: "two", 3: "three", 4: "four"}
    named = frame.assign(grade=pd.Categorical(frame["grade"].map(names)))
    model = lgb.LGBMClassifier(n_estimators=3, min_child_samples=5, verbose=-1).fit(named, label)
    mixed = frame.assign(grade=["one", "2"] * 200)
    with pytest.raises(TreesensError, match="`2` in row 1"):
        ask(model, "find a such that a = row 0 of d", "", mixed)


def test_names_that_xgboost_cuts_off_are_not_dropped_in_silence(tmp_path: Path) -> None:
    xgb = pytest.importorskip("xgboost")
    frame = pd.DataFrame({"town": pd.Categorical(["Zürich", "Genf", "日本", "Ö"] * 20)})
    xgb.XGBClassifier(n_estimators=1, enable_categorical=True).fit(frame, [0, 1, 1, 0] * 20).save_model(
        tmp_path / "m.json"
    )
    loaded = ts.load(tmp_path / "m.json")
    assert loaded.ensemble.features[0].labels is None
    assert any("`town`" in note and "non-ASCII names" in note for note in loaded.notes)


@pytest.mark.parametrize(
    "text", ["1e999999999", "-1e999999999", "1e-999999999", "1" * 5000, "nan", "inf", "1_0", "1/2"]
)
def test_a_name_that_reads_as_a_huge_number_is_no_number(text: str) -> None:
    """The exact value of such a name would take a gigabyte."""
    assert decimal_of(text) is None
    assert number_codes(["a", text]) == {}
    table = Table("t", {"g": np.array([text], object)}, 1)
    with pytest.raises(TreesensError, match="no category"):
        table.numbers("g", Categories({"a": 0.0}, {Fraction(1): 1.0}))


def test_the_facts_of_the_model_name_the_labels(tmp_path: Path) -> None:
    """`treesens info` ended in a traceback, since it took labels for texts."""
    frame, label = table()
    library = pytest.importorskip("xgboost")
    model = library.XGBClassifier(n_estimators=5, max_depth=3, enable_categorical=True)
    model.fit(categorical(frame), label).save_model(tmp_path / "m.json")
    ran = CliRunner().invoke(group, ["info", str(tmp_path / "m.json")], catch_exceptions=False)
    assert ran.exit_code == 0
    assert "4 categories: 1 · 2 · 3 · 4" in ran.output


def test_truth_values_are_names_of_categories(tmp_path: Path) -> None:
    """A CSV file has `True` for a category with this name, whose code was taken to be 1."""
    xgb = pytest.importorskip("xgboost")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"flag": rng.choice(["True", "False"], 200), "income": rng.normal(50, 15, 200).round(2)})
    label = ((frame["income"] > 50) ^ (frame["flag"] == "True")).astype(int)
    frame.to_csv(tmp_path / "d.csv", index=False)
    for names in (["True", "False"], ["no", "False", "True"]):
        rows = frame.assign(flag=pd.Categorical(frame["flag"], categories=names))
        model = xgb.XGBClassifier(n_estimators=3, max_depth=3, enable_categorical=True).fit(rows, label)
        loaded = ts.load(model)
        read = rows_of(loaded, read_table(tmp_path / "d.csv"))
        assert loaded.ensemble.probabilities(loaded.margins(read))[:, -1] == pytest.approx(
            model.predict_proba(rows)[:, 1]
        )
