"""Records: what they say of regions."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

import treesens as ts

sklearn_ensemble = pytest.importorskip("sklearn.ensemble")


def test_runs_of_whole_numbers_that_follow_one_another_are_one() -> None:
    """Random thresholds leave cells without a whole number between 18 and 19."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"age": rng.integers(18, 75, 300), "amount": rng.normal(3, 1, 300)})
    model = sklearn_ensemble.ExtraTreesClassifier(20, max_depth=4, random_state=0)
    model.fit(rows, (rows.age / 20 + rows.amount > 5).astype(int))
    answer = ts.sensitivity(model, vary=["age"], gap=0.1, data=rows)
    region = answer.to_dict()["region"]
    runs = [run for box in region.values() for run in box.get("age", [])]
    assert any(high > low for low, high in runs)
    for point in ("a", "b"):
        mine = region[point]["age"]
        assert all(low > high + 1 for (_, high), (low, _) in itertools.pairwise(mine))
        # The library agrees at every age of the runs, and at both ends of the amounts.
        for low, high in mine:
            for age in range(low, high + 1):
                row = pd.DataFrame([{**answer.points[point], "age": age}])[list(rows)]
                share = model.predict_proba(row)[0, 1]
                assert share >= 0.6 if point == "a" else share <= 0.4


def test_a_pair_is_indexed_by_the_names_of_its_points() -> None:
    rows = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0]})
    model = sklearn_ensemble.RandomForestClassifier(3, random_state=0).fit(rows, [0, 0, 1, 1])
    pair = ts.sensitivity(model, vary=["x"], gap=0.1, data=rows).pair
    assert list(pair.index) == ["a", "b"]
    assert model.predict(pair).tolist() == [1, 0]
