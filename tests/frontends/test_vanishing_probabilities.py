"""Classes whose probabilities are all 0 to the library: it predicts the first, and no `none` may say otherwise."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

import treesens as ts

lightgbm = pytest.importorskip("lightgbm")
pytestmark = pytest.mark.fault
VALUES = range(3)


@pytest.mark.parametrize("objective", ["multiclassova", "multiclass"])
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.sampled
def test_no_none_is_contradicted_by_the_library(objective: str, seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    table = np.array(list(itertools.product(VALUES, repeat=2)), np.float64)
    data = lightgbm.Dataset(np.repeat(table, 6, axis=0), rng.integers(0, 3, 6 * len(table)), feature_name=["x", "y"])
    options = {"objective": objective, "num_class": 3, "num_leaves": 4, "min_data_in_leaf": 1, "verbose": -1}
    booster = lightgbm.train({**options, "num_threads": 1}, data, 2)
    trees = booster.trees_to_dataframe().query("left_child.isna()")
    for tree, size in trees.groupby("tree_index").size().items():
        for leaf in range(size):
            booster.set_leaf_output(tree, leaf, float(-rng.choice([1e12, 5e12, 4e13, 300.0, 1.0])))
    booster.save_model(tmp_path / "m.txt")
    predicted = {int(k) for k in booster.predict(table).argmax(axis=1)}
    ties = [int(k) for k in range(3) if k not in predicted]
    text = ['model m from "m.txt"', "feature x: integer in [0, 2]", "feature y: integer in [0, 2]"]
    for k in range(3):
        text += [f"query is{k}:", f"  find a in m such that class(a) = {k}"]
        text += [f"query not{k}:", f"  find a in m such that class(a) != {k}"]
    (tmp_path / "q.sens").write_text("\n".join(text) + "\n")
    for replay in ("emulated", "library"):
        answers = {
            name: one.to_dict()
            for name, one in ts.check(tmp_path / "q.sens", replay=replay, backend="native", time_limit=60).items()
        }
        for k in range(3):
            said = {"is": k in predicted, "not": predicted != {k}}
            for word, has in said.items():
                one = answers[f"{word}{k}"]
                if one["verdict"] == "found":
                    x, y = (one["points"]["a"][name] for name in ("x", "y"))
                    label = int(booster.predict(np.array([[x, y]], float)).argmax())
                    assert (label == k) == (word == "is")
                if one["verdict"] == "none" and one["proof"] == "library":
                    assert not has, f"{word}{k}: the library has such an input; it never predicts {ties}"
