"""Third set, fault 7: bounds of distances and likelihoods over categories ended in an exception with `--certificate`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.command import run_command

xgboost = pytest.importorskip("xgboost")
pytestmark = pytest.mark.fault


def test_costs_of_categories_have_certificates(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = pd.DataFrame({"i": rng.integers(0, 6, 200), "c": pd.Categorical(rng.integers(0, 4, 200), categories=range(4))})
    label = ((x.i > 2) ^ x.c.isin([1, 3])).astype(int)
    matrix = xgboost.DMatrix(x, label, enable_categorical=True)
    options = {"objective": "binary:logistic", "max_depth": 3, "base_score": 0.5, "max_cat_to_onehot": 1, "nthread": 1}
    xgboost.train(options, matrix, 8).save_model(tmp_path / "m.json")
    x.head(20).to_csv(tmp_path / "d.csv", index=False)
    (tmp_path / "q.sens").write_text(
        'model m from "m.json"\ndata rows from "d.csv"\nfeature i: integer in [0, 5]\nfeature c: category {0, 1, 2, 3}\n'
        "query near: find a such that class(a) = 1; a.i <= 3 minimize distance(a, row 3 of rows, l1)\n"
        "query likely: find a such that class(a) = 1 maximize likelihood(a, rows)\n"
    )
    done = run_command(tmp_path, "check", "q.sens", "--json", "--certificate", "out")
    assert done.returncode == 0, done.stderr
    for record in json.loads(done.stdout)["results"]:
        assert record["verdict"] == "found"
        assert [claim["claim"] for claim in record["certificates"]] == ["found", "bound"]
        assert all(claim["file"] for claim in record["certificates"]), record["certificates"]
