"""The largest certified gap against all cells of a small model, against the published verdicts, and as a command.

Leads over two classes can be whole numbers of different units: the largest gap between classes still has its bound.
"""

from __future__ import annotations

import itertools
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.published import VERDICTS

import treesens as ts
from tests.data.settings import BENCH, needs_bench
from tests.extensions.studies.asked import found as found_by
from treesens.cli import main
from treesens.compiler.base.dyadic import Unit, in_finer_units
from treesens.compiler.result import Verdict

xgboost = pytest.importorskip("xgboost")


def small_model(folder: Path, seed: int) -> Path:
    """Three features with few thresholds each, trained on noise around a rule."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 4, (300, 3)).astype(np.float32)
    y = ((x[:, 0] + 2 * x[:, 1] * (x[:, 2] > 1) + rng.normal(0, 1, 300)) > 3.5).astype(int)
    model = xgboost.XGBClassifier(n_estimators=8, max_depth=3, learning_rate=0.5)
    model.fit(x, y)
    path = folder / f"small{seed}.json"
    model.save_model(path)
    return path


@pytest.mark.parametrize("seed", range(4))
def test_value_and_bound_enclose_the_optimum(tmp_path: Path, seed: int) -> None:
    loaded = ts.load(small_model(tmp_path, seed))
    inputs = np.array(list(itertools.product(np.arange(-1, 5), repeat=3)), np.float64)
    margins = np.asarray(loaded.margins(inputs), np.float64).reshape(6, 6, 6)
    names = loaded.ensemble.feature_names
    for close in (0.0, 0.02):
        options = {"vary": [[n] for n in names], "time_limit": 20, "threads": 1, "close": close}
        found = found_by("gap", loaded, **options).result
        for axis, result in enumerate(found):
            best = float(np.minimum(margins.max(axis=axis), -margins.min(axis=axis)).max())
            assert result.closed
            if best < 0:
                assert result.verdict is Verdict.NONE
                continue
            assert result.value is not None
            assert result.bound is not None
            assert result.value <= best + 1e-6
            assert result.bound >= best - 1e-6
            assert result.bound <= result.value * (1 + close) + 1e-6
            assert result.witness is not None
            high, low = result.witness.margins[0][0], result.witness.margins[1][0]
            assert min(high, -low) == pytest.approx(result.value, abs=1e-5)


def test_a_domain_of_one_input_leaves_nothing_open(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One row gives domains of one value: its score lies on one side, so no pair crosses, and that is proved."""
    path, table = small_model(tmp_path, 0), tmp_path / "one.csv"
    table.write_text("f0,f1,f2\n2,1,3\n")
    assert np.asarray(ts.load(path).margins(np.array([[2.0, 1.0, 3.0]])))[0, 0] != 0
    with pytest.raises(SystemExit) as ended:
        main(["gap", str(path), "--data", str(table), "--json"])
    records = json.loads(capsys.readouterr().out)["results"]
    assert [(one["verdict"], one["closed"]) for one in records] == [("none", True)] * 3
    assert ended.value.code == 0


@needs_bench
def test_published_verdicts_lie_on_the_right_side() -> None:
    known = [json.loads(line) for line in VERDICTS.read_text().splitlines()]
    loaded = ts.load(BENCH / "models/diabetes_unrobust.json")
    names = loaded.ensemble.feature_names
    found = {r.varied[0]: r for r in found_by("gap", loaded, time_limit=20).result}
    for item in known:
        if item["model"] != "diabetes_unrobust":
            continue
        result = found[names[item["feature"]]]
        if item["verdict"] == "found":
            assert result.bound is not None
            assert result.bound >= item["margin"]
        elif result.value is not None:
            assert result.value < item["margin"]


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = small_model(tmp_path, 1)
    with pytest.raises(SystemExit) as ended:
        main(["gap", str(path), "--json", "-v", "f0,f1"])
    assert ended.value.code == 0
    (record,) = json.loads(capsys.readouterr().out)["results"]
    assert record["varied"] == ["f0", "f1"]
    assert 0 < record["largest_gap"] <= record["largest_gap_bound"] <= record["largest_gap"] * 1.0201
    assert record["points"]["a"]["f2"] == record["points"]["b"]["f2"]


def test_time_limit_keeps_pair_and_bound(tmp_path: Path) -> None:
    loaded = ts.load(small_model(tmp_path, 2))
    (result,) = found_by("gap", loaded, vary=[["f1"]], time_limit=1e-6, threads=1).result
    assert not result.closed or result.value is not None
    assert result.verdict in {Verdict.UNKNOWN, Verdict.FOUND, Verdict.NONE}
    if not result.closed:
        assert "time" in result.reason


def test_errors_name_the_remedy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = small_model(tmp_path, 1)
    with pytest.raises(SystemExit) as ended:
        main(["gap", str(path), "-v", "f9"])
    assert ended.value.code == 1
    assert "no feature `f9`" in capsys.readouterr().err
    with pytest.raises(ts.errors.UsageError, match="no feature"):
        found_by("gap", ts.load(path), vary=[["f9"]])


VALUES = range(4)
"""Of each of the three features."""
ROUNDED = 1e-12
"""More than the library's sums are off."""


def lead(scores: Any, label: int) -> float:
    return float(scores[label] - max(score for k, score in enumerate(scores) if k != label))


@pytest.mark.fault
@pytest.mark.parametrize("seed", range(6))
def test_the_gap_between_classes_is_that_of_brute_force(seed: int, tmp_path: Path) -> None:
    """Base scores of very different size: a lead without the small one is a whole number of a coarser unit."""
    ensemble = pytest.importorskip("sklearn.ensemble")
    rng = np.random.default_rng(seed)
    table = np.array(list(itertools.product(VALUES, repeat=3)), np.float64)
    model = ensemble.HistGradientBoostingClassifier(max_iter=1, max_depth=3, min_samples_leaf=2, learning_rate=0.5)
    model.fit(np.repeat(table, 3, axis=0), rng.integers(0, 3, 3 * len(table)))
    model._baseline_prediction[0, 2] *= 2.0**-6
    (tmp_path / "m.pickle").write_bytes(pickle.dumps(model))
    loaded = ts.load(tmp_path / "m.pickle", trust_pickle=True)
    names = list(loaded.ensemble.feature_names)
    (tmp_path / "d.sens").write_text("".join(f"feature {name}: integer in [0, 3]\n" for name in names))
    scores = {tuple(map(int, row)): of for row, of in zip(table, model.decision_function(table), strict=True)}
    gaps = ts.gap(loaded, vary=[[names[0]]], domain=tmp_path / "d.sens", close=1e-6)
    assert len(gaps) == 3
    for record in gaps.records:
        first, second = map(int, record["classes"])
        best = max(
            min(lead(one, first), lead(scores[value, *row[1:]], second))
            for row, one in scores.items()
            for value in VALUES
        )
        assert (record["verdict"] == "found") == (best >= 0)
        if best >= 0:
            assert record["closed"], record["reason"]
            assert record["largest_gap"] == pytest.approx(best, rel=1e-5, abs=ROUNDED)
            assert record["largest_gap_bound"] >= best - ROUNDED


@pytest.mark.fault
def test_finer_units_keep_the_value() -> None:
    values = np.array([3, -5, 0])
    finer = in_finer_units(values, 7)
    assert [Unit(12).value(v) for v in finer.tolist()] == [Unit(5).value(v) for v in values.tolist()]


@pytest.mark.fault
@pytest.mark.parametrize("exponent", [3, 9, 12, 15])
def test_a_gap_beside_a_leaf_of_another_size(exponent: int, tmp_path: Path) -> None:
    """One leaf is so large that the row of its score is rounded; the gap beside it is closed all the same."""
    lightgbm = pytest.importorskip("lightgbm")
    rng = np.random.default_rng(exponent)
    table = np.array(list(itertools.product(VALUES, repeat=2)), np.float64)
    data = lightgbm.Dataset(np.repeat(table, 8, axis=0), rng.integers(0, 2, 8 * len(table)), feature_name=["x", "y"])
    options = {"num_leaves": 4, "objective": "binary", "min_data_in_leaf": 1, "verbose": -1, "num_threads": 1}
    booster = lightgbm.train({**options, "learning_rate": 0.7}, data, 4)
    booster.set_leaf_output(1, 0, 10.0**exponent)
    booster.save_model(tmp_path / "m.txt")
    (tmp_path / "d.sens").write_text("feature x: integer in [0, 3]\nfeature y: integer in [0, 3]\n")
    scores = dict(zip(map(tuple, table.astype(int).tolist()), booster.predict(table, raw_score=True), strict=True))
    # The library's sums are off by parts of their size.
    off = 10.0**exponent * 2.0**-50
    found = ts.gap(tmp_path / "m.txt", vary=[["x"], ["y"]], domain=tmp_path / "d.sens", close=1e-6)
    for varied, record in enumerate(found.records):
        pairs = [(a, b) for a in scores for b in scores if a[1 - varied] == b[1 - varied]]
        best = max(min(scores[a], -scores[b]) for a, b in pairs)
        assert (record["verdict"] == "found") == (best >= 0)
        if best >= 0:
            assert record["closed"] or exponent > 9, record["reason"]
            assert record["largest_gap"] == pytest.approx(best, rel=1e-9, abs=off)
            assert best - off <= record["largest_gap_bound"] <= best + off + 1e-6 * best
