"""Third set, fault 7: bounds of distances and likelihoods over categories ended in an exception with `--certificate`.

Third set, P11: certificates of a `none` with a likelihood were rejected: leaves named a wrong unit of a row.

A sum of two rows has one grid, the coarser one. A row beside them that is much longer gives the two different ones.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.command import run_command
from tests.corpus import boosted
from tests.extensions.certify.made import query_of
from treesens.extensions.certify.produce import refutation

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


@pytest.mark.parametrize("level", ["0.01", "0.05"])
@pytest.mark.parametrize("gap", ["3", "3.5"])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_likelihood_beside_two_margins(seed: int, gap: str, level: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 6, (400, 4)).astype(np.float32)
    y = (x[:, 0] + x[:, 1] - x[:, 2] + rng.normal(size=400) > 2).astype(int)
    boosted(x, y, 20, path=tmp_path / "m.json", base_score=0.5)
    rows = "\n".join(",".join(str(int(v)) for v in row) for row in x[:30])
    (tmp_path / "d.csv").write_text("f0,f1,f2,f3\n" + rows)
    features = "".join(f"feature f{i}: integer in [0, 5]\n" for i in range(4))
    text = f"find a, b in m such that a = b except f0; margin(a) >= {gap}; margin(b) <= -{gap}; likelihood(a, d) >= {level}"
    query = query_of(f'model m from "m.json"\ndata d from "d.csv"\n{features}query q: {text}', tmp_path)
    made = refutation(query)  # accepted by the checker, or NoCertificate
    assert made.document["about"]["left_out"] == []
    assert any(row["costs"] for row in made.document["statement"]["rows"])
