"""Third set, faults 4 and 8: a model without trees had another margin than in XGBoost, and ended searches in exceptions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import treesens as ts
from tests.command import run_command
from tests.corpus import margins_of

xgboost = pytest.importorskip("xgboost")
pytestmark = pytest.mark.fault


def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    x = pd.DataFrame({"a": rng.normal(size=40).round(2), "b": rng.integers(0, 3, 40).astype(float)})
    return x.assign(label=(x.a > 0).astype(int))


def empty(folder: Path, **options: Any) -> Path:
    d = table()
    matrix = xgboost.DMatrix(d[["a", "b"]], d.label)
    path = folder / "m.json"
    xgboost.train({"verbosity": 0, "objective": "binary:logistic", **options}, matrix, 0).save_model(path)
    d.to_csv(folder / "d.csv", index=False)
    return path


@pytest.mark.parametrize("objective", ["binary:logistic", "reg:squarederror", "count:poisson", "reg:logistic"])
@pytest.mark.parametrize("base", [None, 0.3])
def test_the_margin_is_that_of_the_library(objective: str, base: float | None, tmp_path: Path) -> None:
    path = empty(tmp_path, objective=objective, **({} if base is None else {"base_score": base}))
    library = xgboost.Booster(model_file=path)
    expected = margins_of(library, table()[["a", "b"]])[:1]
    found = ts.load(path).ensemble.margins_emulated(np.zeros((1, 2)))
    assert found.ravel().tolist() == expected.tolist()


def test_every_search_answers(tmp_path: Path) -> None:
    empty(tmp_path, base_score=0.3)
    file = tmp_path / "q.sens"
    file.write_text(
        'model m from "m.json"\ndata d from "d.csv" label "label"\ndomain from d\n'
        "query near: find a such that prob(a) >= 0.2 minimize distance(a, row 1 of d, l1) top 3\n"
        "query pair: find a, b such that a = b except a; prob(a) > 0.35; prob(b) < 0.25\n"
        "query other: find a, b such that a = b except a; prob(a) > 0.25; prob(b) < 0.25\n"
        "query swing: find a, b such that a = b except a maximize margin(a) - margin(b)\n"
        "query rows: count rows of d as a such that class(a) = 0\n"
    )
    results = ts.check(file)
    assert {name: str(results[name].verdict) for name in ("near", "pair", "other", "swing")} == {
        "near": "found",
        "pair": "none",
        "other": "none",
        "swing": "found",
    }


@pytest.mark.parametrize(
    "command",
    [
        ["info", "m.json", "--check"],
        ["audit", "m.json", "--data", "d.csv", "--label", "label", "--gap", "0.1"],
        ["gap", "m.json", "--time-limit", "5"],
        ["range", "m.json"],
        ["sets", "m.json", "--gap", "0.1"],
        ["robust", "m.json", "--data", "d.csv", "--label", "label", "--rows", "0,1"],
        ["diff", "m.json", "m.json"],
    ],
)
def test_no_command_ends_in_an_exception(command: list[str], tmp_path: Path) -> None:
    empty(tmp_path, base_score=0.3)
    done = run_command(tmp_path, *command)
    assert done.returncode == 0, done.stderr
