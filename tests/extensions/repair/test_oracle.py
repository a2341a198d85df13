"""No pair of the whole domain breaks the promise, by the stock library's own predictions of the written file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treesens as ts
from tests.extensions.repair.models import GRID, framed, opened, predict, train, write_table
from tests.extensions.repair.oracle import METHODS, check, extremes
from treesens.errors import ModelError, UsageError

pytest.importorskip("clarabel")
pytest.importorskip("skops")


@pytest.mark.parametrize("seed", range(44))
@pytest.mark.sampled
def test_no_pair_of_the_domain_breaks_the_promise(seed: int, tmp_path: Path) -> None:
    check(seed, tmp_path, 1.0)


REGRESSORS = (
    "xgboost-value",
    "lightgbm-value",
    "sklearn-forest-value-joblib",
    "sklearn-extra-value-xz",
    "sklearn-boosting-value-pkl",
    "sklearn-histogram-value-skops",
)
CLASSIFIERS = (
    "xgboost-classes",
    "lightgbm-classes",
    "sklearn-forest-classes-joblib",
    "sklearn-boosting-classes-gz",
    "sklearn-histogram-classes-skops",
)


@pytest.mark.parametrize("kind", REGRESSORS)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.sampled
def test_values_of_a_regressor_move_by_less(kind: str, method: Any, tmp_path: Path) -> None:
    path, x, y = train(kind, tmp_path, 1)
    data, output = write_table(tmp_path / "d.csv", x, y), tmp_path / f"out{path.suffix}"
    model = ts.load(path, trust_pickle=True)
    ts.repair(model, data, vary=["f"], label="y", gap=0.3, output=output, method=method, time_limit=1.0)
    low, high = extremes(predict(path, GRID), [0])
    assert (high - low).max() > 0.3
    low, high = extremes(predict(output, GRID), [0])
    assert (high - low).max() < 0.3


@pytest.mark.parametrize("kind", CLASSIFIERS)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.sampled
def test_classes_do_not_change_places_with_a_lead(kind: str, method: Any, tmp_path: Path) -> None:
    path, x, y = train(kind, tmp_path, 1)
    data, output = write_table(tmp_path / "d.csv", x, y), tmp_path / f"out{path.suffix}"
    forest = "forest" in kind
    if forest and method == "leaves":
        pytest.skip("leaves of probabilities are mixed, and not searched for")
    model = ts.load(path, trust_pickle=True)
    found = ts.repair(model, data, vary=["f"], label="y", margin=0.2, output=output, method=method, time_limit=1.0)
    assert len(found.records[0]["proofs"]) == 3
    values = predict(output, GRID).astype(np.float64)
    scores = values if forest else np.log(values)
    ranked = np.sort(scores, axis=1)
    first, lead = scores.argmax(axis=1), ranked[:, -1] - ranked[:, -2]
    sure = lead >= 0.2
    _, group = np.unique(GRID[:, 1:], axis=0, return_inverse=True)
    assert all(len(set(first[sure & (group == g)])) <= 1 for g in range(group.max() + 1))


def test_rounds_keep_their_numbers(tmp_path: Path) -> None:
    """After early stopping the wrapper predicts with the first rounds alone: also from the repaired file."""
    import xgboost

    path, x, y = train("xgboost", tmp_path, 2)
    booster = xgboost.Booster(model_file=path)
    booster.set_attr(best_iteration="3")
    booster.save_model(path)
    data, output = write_table(tmp_path / "d.csv", x, y), tmp_path / "out.json"
    ts.repair(path, data, vary=["f"], label="y", gap=0.0, output=output, method="average", time_limit=1.0)
    before, after = xgboost.Booster(model_file=path), xgboost.Booster(model_file=output)
    assert after.attr("best_iteration") == "3"
    assert after.num_boosted_rounds() == before.num_boosted_rounds()
    # Each round of the repaired model is the mean of that round over the rows' values of `f`.
    values, counts = np.unique(x[:, 0], return_counts=True)
    for rounds in (1, 4):
        mean = np.zeros(len(GRID))
        for value, count in zip(values, counts, strict=True):
            moved = GRID.copy()
            moved[:, 0] = value
            matrix = xgboost.DMatrix(moved, feature_names=["f", "a", "b", "c"])
            mean += count / len(x) * before.predict(matrix, output_margin=True, iteration_range=(0, rounds))
        matrix = xgboost.DMatrix(GRID, feature_names=["f", "a", "b", "c"])
        found = after.predict(matrix, output_margin=True, iteration_range=(0, rounds))
        assert np.allclose(found, mean, atol=1e-5)


def test_files_that_do_not_say_where_rounds_end(tmp_path: Path) -> None:
    """XGBoost before 1.7 writes no `iteration_indptr`: trees of nothing fill the last round."""
    path, x, y = train("xgboost-classes", tmp_path, 2)
    document = json.loads(path.read_text())
    del document["learner"]["gradient_booster"]["model"]["iteration_indptr"]
    path.write_text(json.dumps(document))
    data, output = write_table(tmp_path / "d.csv", x, y), tmp_path / "out.json"
    found = ts.repair(path, data, vary=["f"], label="y", margin=0.3, output=output, method="blend", time_limit=1.0)
    assert found.records[0]["proved"]
    loaded = ts.load(output)
    assert np.array_equal(loaded.ensemble.margins_emulated(GRID), loaded.margins(GRID))


def test_a_forest_keeps_probabilities_and_what_it_does_not_change(tmp_path: Path) -> None:
    """2^k times as many trees, whose leaves are 2^k times as large: the mean of trees that nobody changed has the same bits."""
    path, x, y = train("sklearn-forest-classes-joblib", tmp_path, 3)
    data, output = write_table(tmp_path / "d.csv", x, y), tmp_path / "out.joblib"
    model = ts.load(path, trust_pickle=True)
    ts.repair(model, data, vary=["f"], label="y", margin=0.1, output=output, method="average", time_limit=1.0)
    before, after = opened(path), opened(output)
    assert len(after.estimators_) in {2**k * len(before.estimators_) for k in range(6)}
    found = after.predict_proba(framed(GRID))
    assert np.allclose(found.sum(axis=1), 1, atol=1e-12)
    assert found.min() >= 0
    # The mean of the library's own probabilities over the rows' values of `f`.
    mean = np.zeros_like(found)
    for value, count in zip(*np.unique(x[:, 0], return_counts=True), strict=True):
        moved = GRID.copy()
        moved[:, 0] = value
        mean += count / len(x) * before.predict_proba(framed(moved))
    assert np.allclose(found, mean, atol=1e-12)


def test_a_file_that_keeps_its_promise_already_predicts_the_same_bits(tmp_path: Path) -> None:
    path, x, y = train("sklearn-extra-label-gz", tmp_path, 3)
    data, output = write_table(tmp_path / "d.csv", x, y), tmp_path / "out.gz"
    model = ts.load(path, trust_pickle=True)
    ts.repair(model, data, vary=["f"], label="y", gap=0.49, output=output, method="blend", time_limit=1.0)
    assert np.array_equal(predict(path, GRID), predict(output, GRID))


def test_leaves_of_probabilities_are_not_searched_for(tmp_path: Path) -> None:
    path, x, y = train("sklearn-forest-label-joblib", tmp_path, 3)
    data, output = write_table(tmp_path / "d.csv", x, y), tmp_path / "out.joblib"
    model = ts.load(path, trust_pickle=True)
    with pytest.raises(UsageError, match='choose method="blend"'):
        ts.repair(model, data, vary=["f"], label="y", gap=0.1, output=output, method="leaves")
    assert not output.exists()


@pytest.mark.parametrize("store", ["joblib", "pkl"])
def test_a_pickle_is_opened_only_for_those_who_trust_it(store: str, tmp_path: Path) -> None:
    path, x, y = train(f"sklearn-forest-label-{store}", tmp_path, 3)
    data, output = write_table(tmp_path / "d.csv", x, y), tmp_path / f"out.{store}"
    with pytest.raises(ModelError, match="trust"):
        ts.repair(path, data, vary=["f"], label="y", gap=0.1, output=output)
    assert not output.exists()


def test_an_estimator_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    import joblib
    from sklearn.tree import DecisionTreeClassifier

    path, x, y = train("sklearn-forest-label-joblib", tmp_path, 3)
    joblib.dump(DecisionTreeClassifier(max_depth=3).fit(framed(x), y), path)
    data, output = write_table(tmp_path / "d.csv", x, y), tmp_path / "out.joblib"
    model = ts.load(path, trust_pickle=True)
    with pytest.raises(ModelError, match="DecisionTreeClassifier cannot be written back"):
        ts.repair(model, data, vary=["f"], label="y", gap=0.1, output=output)
    assert not output.exists()


@pytest.mark.parametrize("booster", ["gbtree", "dart"])
def test_a_model_without_trees_keeps_every_promise(booster: str, tmp_path: Path) -> None:
    import xgboost

    _, x, y = train("xgboost", tmp_path, 2)
    matrix = xgboost.DMatrix(x, y, feature_names=["f", "a", "b", "c"])
    options = {"objective": "binary:logistic", "booster": booster, "base_score": 0.3}
    xgboost.train(options, matrix, 0).save_model(tmp_path / "m.json")
    data, output = write_table(tmp_path / "d.csv", x, y), tmp_path / "out.json"
    found = ts.repair(tmp_path / "m.json", data, vary=["f"], label="y", gap=0.0, output=output, time_limit=1.0)
    assert found.records[0]["proved"]
    shown = xgboost.Booster(model_file=output).predict(matrix)
    assert np.array_equal(shown, xgboost.Booster(model_file=tmp_path / "m.json").predict(matrix))
