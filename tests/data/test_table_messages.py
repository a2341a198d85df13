"""Fault 38: small wrongs that stopped people: a category left out, blanks in names, remedies that were of no help."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import treesens as ts
from tests.asking import ask
from treesens.cli import group

pytestmark = pytest.mark.fault


def frame(rows: int = 200) -> tuple[pd.DataFrame, np.ndarray[Any, Any]]:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"housing": rng.choice(["own", "rent", "free"], rows), "net income": rng.normal(50, 9, rows).round(2)}
    )
    return table, (table["net income"] + 10 * (table["housing"] == "own") > 55).astype(int).to_numpy()


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_rows_of_a_category_that_was_left_out_lie_outside_the_domain(library: str) -> None:
    x, y = frame()
    x = x.rename(columns={"net income": "income"}).assign(housing=pd.Categorical(x["housing"]))
    boosters = pytest.importorskip(library)
    if library == "xgboost":
        model = boosters.XGBClassifier(n_estimators=5, max_depth=3, enable_categorical=True).fit(x, y)
    else:
        model = boosters.LGBMClassifier(n_estimators=5, min_child_samples=5, verbose=-1).fit(x, y)
    declared = "feature housing: category {own, rent}\ndomain from d"
    with pytest.warns(ts.errors.TreesensWarning, match=r"E401.*most often of `housing`"):
        answer = ask(model, "count rows of d as a such that prob(a) >= 0.5", declared, x)
    inside = (x["housing"] != "free") & (model.predict_proba(x)[:, 1] >= 0.5)
    assert list(answer.count.rows) == np.flatnonzero(inside).tolist()
    assert answer.count.outside == int((x["housing"] == "free").sum())


def test_lightgbm_finds_the_columns_whose_blanks_it_has_replaced(tmp_path: Path) -> None:
    x, y = frame()
    x = x[["net income"]].assign(**{"age of car": np.arange(len(x)) % 7})
    model = pytest.importorskip("lightgbm").LGBMClassifier(n_estimators=5, min_child_samples=5, verbose=-1).fit(x, y)
    answer = ask(model, "count rows of d as a such that prob(a) >= 0.5", "domain from d", x)
    assert any(re.search("E406.*`net income` is `net_income`", note) for note in answer.notes)
    assert list(answer.count.rows) == np.flatnonzero(model.predict_proba(x)[:, 1] >= 0.5).tolist()
    model.booster_.save_model(tmp_path / "m.txt")
    x.assign(y=y).to_csv(tmp_path / "d.csv", index=False)
    arguments = ["audit", "m.txt", "--data", "d.csv", "--label", "y", "--gap", "0.1"]
    with pytest.MonkeyPatch.context() as here:
        here.chdir(tmp_path)
        ran = CliRunner().invoke(group, arguments)
    assert ran.exit_code == 0, ran.output
    assert "net_income" in ran.output


def test_a_column_with_the_very_name_goes_first_and_two_candidates_are_none() -> None:
    x, y = frame()
    x = x[["net income"]].assign(**{"a b c": np.arange(len(x)) % 7})
    model = pytest.importorskip("lightgbm").LGBMClassifier(n_estimators=5, min_child_samples=5, verbose=-1).fit(x, y)
    exact = x.rename(columns={"net income": "net_income", "a b c": "a_b_c"}).assign(**{"net income": 1000.0})
    answer = ask(model, "count rows of d as a such that prob(a) >= 0.5", "domain from d", exact)
    assert list(answer.count.rows) == np.flatnonzero(model.predict_proba(x)[:, 1] >= 0.5).tolist()
    two = x.rename(columns={"a b c": "a b_c"}).assign(**{"a_b c": 0.0})
    with pytest.raises(ts.errors.TreesensError, match="E116"):
        ask(model, "count rows of d as a such that prob(a) >= 0.5", "domain from d", two)


def test_messages_name_a_way_out(tmp_path: Path) -> None:
    x, y = frame()
    x = x[["net income"]].rename(columns={"net income": "income"})
    model = pytest.importorskip("xgboost").XGBRegressor(n_estimators=3, max_depth=2).fit(x, y)
    model.save_model(tmp_path / "m.json")
    (tmp_path / "q.sens").write_text(
        'model m from "m.json"\nfeature income: real in [0, 100]\nquery q: find a such that a.income > 1\n'
        "  maximize value(a)\n"
    )
    (tmp_path / "c.sens").write_text('// a comment\nmodel m from "m.json"\n')
    x.assign(y=y).to_csv(tmp_path / "d.csv", index=False)
    expected = {
        ("check", "c.sens"): "a comment starts with `#`",
        ("check", "q.sens"): "maximize value(",
        ("opt", "q.sens", "--print-ir-after", "nosuch"): "has no pass `nosuch`",
        ("audit", "m.json", "--data", "d.csv", "--label", "y", "--gap", "10%"): "write e.g. 0.1",
    }
    with pytest.MonkeyPatch.context() as here:
        here.chdir(tmp_path)
        for arguments, text in expected.items():
            ran = CliRunner().invoke(group, list(arguments))
            assert text in ran.output + str(ran.exception), arguments


def test_numbers_where_the_model_names_categories_are_told(tmp_path: Path) -> None:
    """A table of codes is read as the codes of the model; another order of categories would be another table."""
    boosters = pytest.importorskip("xgboost")
    x, y = frame()
    x = x.assign(housing=pd.Categorical(x["housing"]))
    model = boosters.XGBClassifier(n_estimators=5, max_depth=3, enable_categorical=True).fit(x, y)
    coded = x.assign(housing=x["housing"].cat.codes)
    words = r"E408.*numbers in `housing`.*\n.*0 is free, 1 is own, 2 is rent"
    named = ts.gap(model, x, vary="housing", time_limit=5)
    assert not any("E408" in note for note in named.notes)
    with pytest.warns(ts.errors.TreesensWarning, match=words):
        found = ts.gap(model, coded, vary="housing", time_limit=5)
    assert any(re.search(words, note) for note in found.notes)
    assert found.records[0]["largest_gap"] == named.records[0]["largest_gap"]
    for call in (ts.why, ts.audit, ts.robust):
        rows: dict[str, Any] = {} if call is ts.audit else {"rows": [0]}
        with pytest.warns(ts.errors.TreesensWarning, match=words):
            call(model, coded, time_limit=1, **rows)
    model.save_model(tmp_path / "m.json")
    coded.to_csv(tmp_path / "d.csv", index=False)
    done = CliRunner().invoke(
        group, ["gap", str(tmp_path / "m.json"), "--data", str(tmp_path / "d.csv"), "--vary", "housing"]
    )
    assert done.exit_code == 0
    assert re.search(words, done.stderr)


def test_columns_that_are_missing_have_a_remedy() -> None:
    xgboost = pytest.importorskip("xgboost")
    x = pd.DataFrame(np.random.default_rng(0).random((60, 2)), columns=["age", "message"])
    named = xgboost.XGBClassifier(n_estimators=3).fit(x, x.sum(axis=1) > 1)
    unnamed = xgboost.XGBClassifier(n_estimators=3).fit(x.to_numpy(), x.sum(axis=1) > 1)
    for model, table, remedy in (
        (unnamed, x, "rename the columns, in the order of training: f0, f1"),
        (named, x.drop(columns="age"), "add a column `age`"),
        (named, x.rename(columns={"age": "Age"}), "did you mean `Age`?"),
    ):
        with pytest.raises(ts.errors.DataError, match="lacks columns") as raised:
            ts.audit(model, table)
        assert raised.value.remedy == remedy


def test_a_category_called_like_a_missing_value_needs_a_data_frame(tmp_path: Path) -> None:
    """North America is NA; in a text file, the field may also mean that the value is missing."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"region": rng.choice(["NA", "EU", "APAC"], 120), "x": rng.normal(size=120)})
    typed = frame.astype({"region": "category"})
    boosters = pytest.importorskip("xgboost")
    model = boosters.XGBClassifier(n_estimators=4, enable_categorical=True, tree_method="hist")
    model.fit(typed, (frame.region == "NA") ^ (frame.x > 0))
    frame.to_csv(tmp_path / "rows.csv", index=False)
    question = 'model m from "m"\ndata d from "d"\ndomain from d\nquery q: count rows of d as a such that class(a) = 1'
    with pytest.raises(ts.errors.TreesensError, match="`NA`, which a file marks missing values with") as caught:
        ts.check_text(question, models={"m": model}, data={"d": str(tmp_path / "rows.csv")})
    assert "keep_default_na=False" in str(caught.value)
    count = ts.check_text(question, models={"m": model}, data={"d": frame})["q"].count
    assert list(count.rows) == np.flatnonzero(model.predict(typed)).tolist()
    pytest.importorskip("pyarrow")
    frame.assign(region=frame.region.where(frame.x < 1, None)).to_parquet(
        tmp_path / "rows"
    )  # a Parquet file has a type
    known = ts.check_text(question, models={"m": model}, data={"d": str(tmp_path / "rows")})["q"].count
    assert (
        list(known.rows) == np.flatnonzero(model.predict(typed.assign(region=typed.region.where(typed.x < 1)))).tolist()
    )
