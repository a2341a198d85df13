"""Leads over two classes can be whole numbers of different units: the largest gap between classes still has its bound."""

from __future__ import annotations

import itertools
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treesens as ts
from treesens.compiler.base.dyadic import Unit, in_finer_units

pytestmark = pytest.mark.fault

VALUES = range(4)
"""Of each of the three features."""
ROUNDED = 1e-12
"""More than the library's sums are off."""


def lead(scores: Any, label: int) -> float:
    return float(scores[label] - max(score for k, score in enumerate(scores) if k != label))


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


def test_finer_units_keep_the_value() -> None:
    values = np.array([3, -5, 0])
    finer = in_finer_units(values, 7)
    assert [Unit(12).value(v) for v in finer.tolist()] == [Unit(5).value(v) for v in values.tolist()]


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
