"""The contract for YDF: the same scores, probabilities and classes as the library on every input, live and from its folder."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

import treesens as ts
from tests.command import run_command
from tests.frontends import mutants
from treesens.compiler.model import Accumulation, Ensemble
from treesens.errors import ModelError
from treesens.extensions.conformance import formats as conformance
from treesens.frontends import load

ydf = pytest.importorskip("ydf")
ydf.verbose(0)
INPUTS = ["age", "income", "town", "sex", "flag"]


@cache
def table() -> pandas.DataFrame:
    rng = np.random.default_rng(3)
    n = 800
    frame = pandas.DataFrame(
        {
            "age": rng.integers(18, 80, n).astype(float),
            "income": rng.normal(50, 20, n),
            "town": rng.choice(["north", "south", "a b"], n),
            "sex": rng.choice(["f", "m"], n),
            "flag": rng.choice([True, False], n),
        }
    )
    frame.loc[::17, "income"] = np.nan
    frame.loc[::13, "town"] = None
    old = (frame.age > 40) ^ (frame.sex == "f") ^ (frame.income > 60) ^ (rng.random(n) < 0.2)
    frame["two"] = np.where(old, "good", "bad")
    frame["code"] = old.astype(int)
    frame["three"] = np.where(frame.age < 30, "k1", np.where(frame.income > 50, "k2", "k3"))
    frame["value"] = frame.age * 2 + frame.income.fillna(0)
    return frame


def boosted(label: str, **options: Any) -> Any:
    options = {"num_trees": 12, "validation_ratio": 0.0} | options
    return ydf.GradientBoostedTreesLearner(label=label, features=INPUTS, **options).train(table())


def forest(label: str, **options: Any) -> Any:
    options = {"num_trees": 10, "max_depth": 6} | options
    return ydf.RandomForestLearner(label=label, features=INPUTS, **options).train(table())


NUMBERS = ydf.Task.REGRESSION
MODELS: dict[str, Callable[[], Any]] = {
    "two classes": lambda: boosted("two"),
    "two classes, many leaves": lambda: boosted("two", max_depth=10, min_examples=1, num_trees=4),
    "codes": lambda: boosted("code", task=ydf.Task.CLASSIFICATION),
    "three classes": lambda: boosted("three"),
    "value": lambda: boosted("value", task=NUMBERS),
    "focal loss": lambda: boosted("two", loss="BINARY_FOCAL_LOSS"),
    "bins": lambda: boosted("two", discretize_numerical_columns=True),
    "votes": lambda: forest("two"),
    "votes, sums below 1": lambda: forest("two", num_trees=50, max_depth=3),
    "shares": lambda: forest("two", winner_take_all=False),
    "votes of three": lambda: forest("three"),
    "shares of three": lambda: forest("three", winner_take_all=False),
    "forest of values": lambda: forest("value", task=NUMBERS),
    "one tree": lambda: ydf.CartLearner(label="two", features=INPUTS).train(table()),
}


@cache
def made(name: str) -> Any:
    return MODELS[name]()


@pytest.mark.parametrize("name", MODELS)
def test_trained_models_are_read_exactly(name: str, tmp_path: Path) -> None:
    conformance.check(load(made(name)), rows=150).raise_if_wrong()
    made(name).save(str(tmp_path / "model"))
    loaded = load(tmp_path / "model")
    assert loaded.ensemble.source.format == "ydf"
    assert len(loaded.ensemble.source.sha256) == 64
    assert loaded.ensemble.n_trees == made(name).num_trees()
    conformance.check(loaded, rows=40).raise_if_wrong()


def test_the_engine_of_the_library_determines_the_sum() -> None:
    ways = {name: load(made(name)).ensemble.accumulation for name in MODELS}
    assert ways["two classes"] is Accumulation.FLOAT32_BASE_FIRST
    assert ways["two classes, many leaves"] is Accumulation.FLOAT32_BASE_LAST


@pytest.mark.parametrize("name", ["votes", "votes of three", "votes, sums below 1"])
def test_sums_are_cut_off_at_one(name: str) -> None:
    """Ten times float32(1/10) is above 1, fifty times float32(1/50) below."""
    loaded, rows = load(made(name)), table()[INPUTS]
    shown = made(name).predict(rows).max()
    sums = loaded.margins(_numbers(rows, loaded)).max()
    assert shown <= 1
    assert (sums > 1) == (loaded.ensemble.n_trees == 10)
    assert shown == min(1, sums)


@pytest.mark.parametrize("names", [["<OOD>", "s", "a"], ["1", "1.0", "2"]])
def test_categories_may_have_odd_names(names: list[str]) -> None:
    """YDF calls all other texts `<OOD>`; texts that are the same number have no labels that are numbers."""
    called = dict(zip(["north", "south", "a b"], names, strict=True))
    frame = table().assign(town=table().town.map(called, na_action="ignore"))
    model = ydf.RandomForestLearner(label="two", features=INPUTS, num_trees=4).train(frame)
    loaded = load(model)
    conformance.check(loaded, rows=150).raise_if_wrong()
    assert set(loaded.ensemble.features[2].labels or ()) == {*names, "(every other text)"}
    assert (loaded.margins(_numbers(frame, loaded))[:, 1] == model.predict(frame)).all()


def _numbers(rows: pandas.DataFrame, loaded: Any) -> np.ndarray[Any, Any]:
    """The rows with the reader's codes of texts."""
    columns = []
    for feature in loaded.ensemble.features:
        column = rows[feature.name]
        codes = {label: code for code, label in enumerate(feature.labels or ())}
        columns.append(column.map(codes).to_numpy(float) if codes else column.to_numpy(float))
    return np.stack(columns, axis=1)


@pytest.mark.parametrize(
    ("model", "mutant"),
    [
        ("two classes", mutants.other_inputs),
        ("two classes", mutants.other_comparison),
        ("two classes", mutants.missing_turned),
        ("two classes", mutants.last_bits),
        ("value", mutants.no_base),
    ],
)
def test_wrong_readers_are_caught(model: str, mutant: Callable[[Ensemble], Ensemble]) -> None:
    loaded = load(made(model))
    assert not conformance.check(replace(loaded, ensemble=mutant(loaded.ensemble)), rows=150).ok


def test_a_pair_flips_in_the_library() -> None:
    model = made("two classes")
    answer = ts.sensitivity(model, vary=["sex"], gap=0.1, data=table())
    assert answer.verdict == "found"
    a, b = (point[INPUTS] for _, point in answer.pair.iterrows())
    assert a.drop("sex").equals(b.drop("sex"))
    assert a.sex != b.sex
    shown = sorted(model.predict(pandas.DataFrame([a, b]).astype({"age": float, "income": float, "flag": bool})))
    assert shown[0] <= 0.4
    assert shown[1] >= 0.6


def test_a_folder_and_a_table_are_audited(tmp_path: Path) -> None:
    """The table is read by name, and stdout begins with the headline."""
    made("votes, sums below 1").save(str(tmp_path / "model"))
    table().drop(columns=["code", "three", "value"]).to_csv(tmp_path / "rows.csv", index=False)
    for order in (["model", "rows.csv"], ["rows.csv", "model"]):
        done = run_command(tmp_path, "audit", *order, "-t", "2")
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("At gap 0.1, "), done.stdout
        assert "label: `two`" in done.stderr


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: boosted("value", task=NUMBERS, loss="POISSON"), "not sums of its leaves"),
        (lambda: boosted("two", loss="MULTINOMIAL_LOG_LIKELIHOOD"), "YDF refused to predict"),
        (lambda: ydf.RandomForestLearner(label="one", features=INPUTS).train(table().assign(one="k")), "of one class"),
        (lambda: boosted("two", split_axis="SPARSE_OBLIQUE"), "NumericalSparseObliqueCondition"),
        (lambda: ydf.IsolationForestLearner(features=["age", "income"]).train(table()), "ANOMALY_DETECTION"),
        (
            lambda: boosted("two", allow_na_conditions=True, missing_value_policy="LOCAL_IMPUTATION"),
            "only the slow engine",
        ),
    ],
)
def test_other_models_are_refused_by_name(make: Callable[[], Any], words: str) -> None:
    with pytest.raises(ModelError, match=words) as refused:
        load(make())
    assert "train" in (refused.value.remedy or "")


def test_logits_as_output_are_refused() -> None:
    model = boosted("two")
    model.set_output_logits(True)
    with pytest.raises(ModelError, match="with logits as output"):
        load(model)


@pytest.mark.parametrize("name", ["nodes-00000-of-00001", "header.pb", "data_spec.pb"])
def test_damaged_folders_are_refused(name: str, tmp_path: Path) -> None:
    made("two classes").save(str(tmp_path / "right"))
    right = (tmp_path / "right" / name).read_bytes()
    for number, data in enumerate((b"", right[: len(right) // 2], bytes(255 - byte for byte in right))):
        folder = tmp_path / str(number)
        shutil.copytree(tmp_path / "right", folder)
        (folder / name).write_bytes(data)
        with pytest.raises(ModelError):
            load(folder)


def test_texts_that_are_rare_in_training_are_the_other_texts() -> None:
    """The library drops texts with fewer than five rows by default, so that a table of training contains them."""
    frame = table()[[*INPUTS, "two"]].copy()
    frame.loc[frame.index[:3], "town"] = ["rare", "rarer", "rarest"]
    learner = ydf.GradientBoostedTreesLearner(label="two", features=INPUTS, num_trees=8, validation_ratio=0.0)
    model = learner.train(frame)
    loaded = load(model)
    conformance.check(loaded, rows=60).raise_if_wrong()
    labels = {f.name: f.labels for f in loaded.ensemble.features}["town"]
    assert labels is not None
    assert set(labels) == {"north", "south", "a b", "(every other text)"}
    head = 'model m from "m"\ndata d from "d" label two\ndomain from d\n'
    question = "query q: count rows of d as a such that class(a) = good"
    count = ts.check_text(head + question, models={"m": model}, data={"d": frame})["q"].count
    assert list(count.rows) == np.flatnonzero(model.predict_class(frame) == "good").tolist()
