"""What one model costs beside another: by the library's own predictions and scikit-learn's losses, over all and by group."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import treesens as ts
from tests.extensions.repair.models import predict, train, write_table
from tests.extensions.studies.grids import two_classes
from treesens.cli import group
from treesens.data.tables import read_table
from treesens.errors import DataError, UsageError
from treesens.extensions.studies.losses import labelled

pytest.importorskip("clarabel")
metrics = pytest.importorskip("sklearn.metrics")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A model `m.json`, its repair `o.json` with the prices in `r.json`, and rows `d.csv`."""
    _, x, y = train("xgboost", tmp_path, 1)
    write_table(tmp_path / "d.csv", x, y)
    found = ts.repair(
        tmp_path / "m.json", tmp_path / "d.csv", vary=["f"], label="y", gap=0.05, method="blend", price_by=["a"],
        output=tmp_path / "o.json",
    )  # fmt: skip
    (tmp_path / "r.json").write_text(json.dumps(found.records[0]["prices"]["train"]))
    return tmp_path


def expected(place: Path, rows: Any) -> dict[str, Any]:
    """The price of some rows by the libraries."""
    y = rows[:, 4]
    old, new = (predict(place / name, rows[:, :4]).astype(np.float64) for name in ("m.json", "o.json"))
    return {
        "rows": len(rows),
        "loss_before": metrics.log_loss(y, old),
        "loss_after": metrics.log_loss(y, new),
        "auc_before": metrics.roc_auc_score(y, old),
        "auc_after": metrics.roc_auc_score(y, new),
        "decisions_changed": int(((old > 0.5) != (new > 0.5)).sum()),
    }


def check(price: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Whether a price is what the libraries say: probabilities of a library are float32."""
    for name, value in wanted.items():
        assert price[name] == pytest.approx(value, abs=1e-5), name


def test_prices_are_those_of_the_libraries(place: Path) -> None:
    rows = np.loadtxt(place / "d.csv", delimiter=",", skiprows=1)
    price = json.loads((place / "r.json").read_text())
    check(price, expected(place, rows))
    assert price["loss_after"] != price["loss_before"]
    assert [one["values"] for one in price["groups"]] == [[0], [1], [2], [3]]
    for one in price["groups"]:
        mine = rows[rows[:, 1] == one["values"][0]]
        check(one, expected(place, mine))
        assert one["positive_before"] == (predict(place / "m.json", mine[:, :4]) > 0.5).mean()
        assert one["positive_after"] == (predict(place / "o.json", mine[:, :4]) > 0.5).mean()


def test_diff_says_what_repair_says(place: Path) -> None:
    found = ts.diff(
        place / "m.json",
        place / "o.json",
        place / "d.csv",
        label="y",
        price_by=["a"],
        gap=0.05,
        vary=["f"],
        time_limit=2.0,
    )
    assert found.prices == json.loads((place / "r.json").read_text())


def test_diff_reads_both_models_by_the_names_of_their_features(place: Path) -> None:
    """A version whose features are in another order has the same price."""
    import xgboost

    booster = xgboost.Booster(model_file=place / "m.json")
    rows = np.loadtxt(place / "d.csv", delimiter=",", skiprows=1)
    turned = ["c", "b", "a", "f"]
    matrix = xgboost.DMatrix(rows[:, [3, 2, 1, 0]], rows[:, 4], feature_names=turned)
    other = xgboost.train({"objective": "binary:logistic", "max_depth": 2, "nthread": 1}, matrix, 4)
    found = ts.diff(booster, other, place / "d.csv", label="y", time_limit=2.0)
    assert found.prices is not None
    assert found.prices["loss_after"] == pytest.approx(metrics.log_loss(rows[:, 4], other.predict(matrix)), abs=1e-5)


def test_the_command_shows_prices_by_group(place: Path) -> None:
    words = ["diff", str(place / "m.json"), str(place / "o.json"), "--data", str(place / "d.csv"), "--label", "y"]
    shown = CliRunner().invoke(group, [*words, "--price-by", "a"], standalone_mode=False)
    assert "log loss" in shown.stdout
    assert "a 3" in shown.stdout
    price = json.loads((place / "r.json").read_text())
    assert f"{price['loss_before']:.4f} → {price['loss_after']:.4f}" in shown.stdout


def test_groups_need_labels_and_a_label_that_is_none_costs_the_prices_alone(place: Path) -> None:
    with pytest.raises(UsageError, match="needs labelled rows"):
        ts.diff(place / "m.json", place / "o.json", place / "d.csv", price_by=["a"])
    (place / "odd.csv").write_text("f,a,b,c,y\n0,0,0,0,7\n")
    found = ts.diff(place / "m.json", place / "o.json", place / "odd.csv", label="y", time_limit=2.0)
    assert any("no prices" in note for note in found.notes)
    assert found.prices is None
    assert found.verdict == "different"


def test_the_price_of_a_regressor_is_its_squared_error(tmp_path: Path) -> None:
    path, x, y = train("xgboost-value", tmp_path, 3)
    write_table(tmp_path / "d.csv", x, y)
    found = ts.repair(
        path, tmp_path / "d.csv", vary=["f"], label="y", gap=0.5, method="blend", output=tmp_path / "o.json"
    )
    price = found.records[0]["prices"]["train"]
    assert price["loss_after"] == pytest.approx(
        metrics.mean_squared_error(y, predict(tmp_path / "o.json", x)), rel=1e-5
    )
    assert "auc_after" not in price


def test_labels_may_be_the_names_of_classes() -> None:
    """A table of people says granted and refused, the model 0 and 1: the labels, and so the prices, are the same."""
    trained = two_classes("xgboost")
    numbers = (trained.frame["p"] > 2).astype(int)
    named = ts.load(trained.estimator, classes={0: "granted", 1: "refused"})
    tables = [trained.frame.assign(y=numbers), trained.frame.assign(y=numbers.map({0: "granted", 1: "refused"}))]
    one, other = (labelled(named, read_table(table, label="y"), "y") for table in tables)
    assert one.labels.tolist() == other.labels.tolist() == numbers.tolist()
    with pytest.raises(DataError, match="not a label of the model") as told:
        labelled(named, read_table(trained.frame.assign(y="declined"), label="y"), "y")
    assert "`0` or `granted`" in str(told.value.remedy)


def test_a_category_that_misses_values_is_repaired_over_all_its_values(tmp_path: Path) -> None:
    """Every category of the model, and none: the repaired file is judged by the library that reads it."""
    lightgbm = pytest.importorskip("lightgbm")
    rng = np.random.default_rng(4)
    kinds = ["long", "short", "never"]
    frame = pd.DataFrame({"f": rng.integers(0, 4, 400).astype(float), "c": pd.Categorical(rng.choice(kinds, 400))})
    frame.loc[::7, "c"] = None
    y = ((frame["f"] > 1) ^ (frame["c"] == "long")).astype(int)
    model = lightgbm.LGBMClassifier(n_estimators=8, num_leaves=6, verbose=-1, n_jobs=1).fit(frame, y)
    model.booster_.save_model(tmp_path / "m.txt")
    found = ts.repair(
        tmp_path / "m.txt", frame.assign(y=y), vary=["c"], gap=0.1, label="y", time_limit=5.0, output=tmp_path / "o.txt"
    )
    assert found.records[0]["proved"], found.records[0]["reason"]
    repaired = lightgbm.Booster(model_file=str(tmp_path / "o.txt"))
    for value in range(4):
        every = pd.DataFrame({"f": float(value), "c": pd.Categorical([*kinds, None], categories=sorted(kinds))})
        chances = np.asarray(repaired.predict(every))
        assert not (chances.max() >= 0.6 and chances.min() <= 0.4)
