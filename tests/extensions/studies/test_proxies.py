"""Which columns carry another one, against the mutual information of scikit-learn."""

from __future__ import annotations

import itertools
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import treesens as ts
from treesens.data.tables import read_table
from treesens.errors import UsageError
from treesens.extensions.studies.report.audit_facts import proxies, uncertainty_coefficient


def test_the_coefficient_is_that_of_scikit_learn() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(0)
    for values in (2, 5):
        target = rng.integers(0, values, 4000)
        column = np.where(rng.random(4000) < 0.6, target, rng.integers(0, values, 4000))
        entropy = -sum(p * math.log(p) for p in np.bincount(target) / 4000)
        wanted = (metrics.mutual_info_score(target, column) - (values - 1) ** 2 / 8000) / entropy
        assert uncertainty_coefficient(target, column) == pytest.approx(wanted, abs=1e-9)


def test_copies_tell_all_noise_tells_nothing_and_the_label_is_left_out() -> None:
    rng = np.random.default_rng(1)
    sex = rng.integers(0, 2, 3000)
    frame = pd.DataFrame(
        {
            "sex": np.where(sex == 1, "M", "F"),
            "job": np.where(sex == 1, "a", "b"),
            "height": sex * 10 + rng.normal(170, 8, 3000),
            "noise": rng.normal(size=3000),
            "code": rng.integers(0, 400, 3000),
            "one": 1,
            "y": sex,
        }
    )
    frame.loc[::7, "height"] = np.nan
    found = proxies(read_table(frame, label="y"), "sex")
    assert [one.feature for one in found] == ["job", "height"]
    assert found[0].told == 1.0  # the same in every row
    frame.loc[0, "job"] = "b" if frame.loc[0, "job"] == "a" else "a"
    assert 0.99 < proxies(read_table(frame, label="y"), "sex")[0].told < 1
    assert 0.02 < found[1].told < 0.6
    assert proxies(read_table(frame), "one") == []


def test_a_copy_is_said_to_determine_the_feature() -> None:
    xgb = pytest.importorskip("xgboost")
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"sex": rng.integers(0, 2, 300), "age": rng.integers(20, 60, 300), "x": rng.normal(size=300)})
    frame = frame.assign(copy=frame["sex"] * 3 + 1, decade=frame["age"] // 4)
    model = xgb.XGBClassifier(n_estimators=4, max_depth=2, n_jobs=1).fit(frame, frame["x"] + frame["sex"] > 0)
    text = " ".join(
        str(ts.audit(ts.load(model, protected=["sex", "age"]), frame, vary=["sex", "age"], gap=0.1)).split()
    )
    assert "copy determines sex in every row of the table; largest swing" in text
    assert "decade explains" in text  # of 40 ages in bins


def test_columns_of_many_texts_and_of_infinities_need_no_table_of_all_pairs() -> None:
    """100,000 names beside 100,000 others: a table of all pairs would take 80 GB."""
    rows = 100_000
    names = [f"n{i}" for i in range(rows)]
    beyond = np.arange(rows, dtype=float)
    beyond[:60_000:2], beyond[1:60_000:2] = np.inf, -np.inf
    frame = pd.DataFrame({"name": names, "other": names[::-1], "beyond": beyond, "sex": np.arange(rows) % 2})
    table = read_table(frame)
    assert [one.feature for one in proxies(table, "name")] == []  # all of it could be chance
    assert [(one.feature, round(one.told, 3)) for one in proxies(table, "sex")] == [("beyond", 0.6)]


def loans() -> tuple[Any, pd.DataFrame]:
    """A booster and its rows: `job` reveals `sex`, which no tree splits on."""
    xgb = pytest.importorskip("xgboost")
    rng = np.random.default_rng(2)
    sex = rng.integers(0, 2, 400)
    frame = pd.DataFrame({"sex": sex, "job": sex * 2 + rng.integers(0, 3, 400), "age": rng.integers(20, 60, 400)})
    frame = frame.assign(y=((frame["job"] + rng.integers(0, 3, 400)) > 3).astype(int))
    model = xgb.XGBClassifier(n_estimators=8, max_depth=3, n_jobs=1).fit(
        frame[["sex", "job", "age"]].assign(sex=0), frame["y"]
    )
    return model, frame


def test_listed_proxies_are_audited_although_they_were_not_named() -> None:
    model, frame = loans()
    audit = ts.audit(ts.load(model, protected=["sex"]), frame, label="y", vary=["sex"], gap=0.1)
    assert [record["varied"] for record in audit.records] == [["sex"]]
    text = str(audit)
    found = re.search(r"proxy: job explains [\d.]+ % of sex in the table; largest swing: ([\d.]+)", text)
    assert found is not None
    grid = pd.DataFrame(list(itertools.product([0, 1], range(5), range(20, 60))), columns=["sex", "job", "age"])
    score = pd.Series(model.predict(grid, output_margin=True)).groupby([grid["sex"], grid["age"]])
    assert float(found[1]) == pytest.approx(float((score.max() - score.min()).max()), rel=1e-3)


def test_a_protected_feature_that_no_tree_splits_on_is_proved_to_change_nothing() -> None:
    model, frame = loans()
    audit = ts.audit(ts.load(model, protected=["sex"]), frame, label="y", gap=0.1)
    first = audit.records[0]
    assert (first["varied"], first["verdict"], first["max_swing"]) == (["sex"], "none", 0.0)


def test_prices_of_repairs_are_those_of_held_out_rows(tmp_path: Path) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    model, frame = loans()
    train, test = frame.iloc[:300], frame.iloc[300:]
    model.save_model(tmp_path / "m.json")
    file = tmp_path / "m.json"
    audit = ts.audit(file, train, label="y", vary=["job"], gap=0.1, repair_gap=0.1, test=test, time_limit=5)
    audit.report(tmp_path / "r.html")
    facts = json.loads((tmp_path / "r.audit.json").read_text())
    (one,) = facts["mending"]["sets"]
    assert one["proved"]
    assert one["rows"] == 100
    chances = model.predict_proba(test[["sex", "job", "age"]])[:, 1]
    assert one["loss_before"] == pytest.approx(metrics.log_loss(test["y"], chances), rel=1e-5)
    assert one["auc_before"] == pytest.approx(metrics.roc_auc_score(test["y"], chances), rel=1e-9)
    assert "prices are computed on the rows of" in (tmp_path / "r.html").read_text()
    with pytest.raises(UsageError, match="no repair is requested"):
        ts.audit(model, train, label="y", gap=0.1, test=test)
