"""Faults 5, 6, 9, 10, 11, 14 and 18 of the third review: numbers of unusual size, and models that are equal or nearly so.

Expected answers come from brute force over the few inputs, or from the library's own predictions.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import treesens as ts
from tests.asking import ask
from tests.corpus import regressed
from tests.extensions.studies.asked import found as found_by
from treesens.cli import group
from treesens.errors import UsageError
from treesens.frontends.registry import load

xgboost = pytest.importorskip("xgboost")
pytestmark = pytest.mark.fault

ROWS = pd.DataFrame({"a": np.linspace(-2, 2, 60), "b": np.arange(60) % 3})


def trained(label: Any, rounds: int = 3, **settings: Any) -> Any:
    return regressed(ROWS.astype(np.float32), label, rounds, 1, **settings)


@pytest.mark.parametrize(
    ("scale", "base"), [(1e-12, 1.0), (1e-6, 1e6), (1.0, 1000.0), (1e-3, 1e9), (1e18, 0.5), (1.0, 1e-30)]
)
def test_every_question_of_an_audit_is_answered_at_any_size(scale: float, base: float) -> None:
    model = trained(ROWS["a"] * scale, base_score=base)
    reached = model.predict(xgboost.DMatrix(ROWS.astype(np.float32))).astype(float)
    gap = float(reached.max() - reached.min()) / 2
    if gap > 0:
        result = ts.audit(model, ROWS, vary=["a"], gap=[gap], time_limit=5)
        assert result.records[0]["verdict"] == "found"
        assert result.records[0]["rows_flipped"] > 0
    # Sums that the library rounds may lie on either side of the exact ones: a bound well below the largest value.
    least = float(reached.max()) - gap / 2 - 1e-6 * abs(float(reached.max()))
    found = ask(model, f"find a in m such that value(a) >= {least!r}", "domain from d\n", ROWS)
    assert found.verdict == "found"


def test_margins_beyond_every_score_are_no_error() -> None:
    model = trained(ROWS["a"] > 0, objective="binary:logistic", eta=1e-6, base_score=0.5)
    result = ts.audit(model, ROWS, margin=[0.5, 1e12], time_limit=5)
    assert {record["verdict"] for record in result.records} == {"none"}


def test_a_set_of_no_features_is_a_usage_error(tmp_path: Path) -> None:
    trained(ROWS["a"]).save_model(tmp_path / "m.json")
    ROWS.to_csv(tmp_path / "d.csv", index=False)
    outcome = CliRunner().invoke(
        group, ["audit", str(tmp_path / "m.json"), "--data", str(tmp_path / "d.csv"), "--margin", "1", "--vary", ""]
    )
    assert isinstance(outcome.exception, UsageError)


def test_a_model_is_equal_to_itself() -> None:
    lightgbm = pytest.importorskip("lightgbm")
    model = lightgbm.LGBMRegressor(n_estimators=20, min_child_samples=2, verbose=-1).fit(ROWS, ROWS["a"] ** 3)
    one, other = load(model), load(model)
    found = found_by("diff", one, other, time_limit=5).result
    assert found.verdict == "equal"
    assert found.bound == 0


def test_what_rounding_hides_is_not_called_different(tmp_path: Path) -> None:
    """Leaves of 2^-30 beside a base of 2^20: float32 sums are the base, whatever the leaves are."""
    paths = []
    for number, factor in enumerate((1.0, 3.0)):
        model = trained(ROWS["a"], 1, base_score=float(2**20))
        text = json.loads(bytes(model.save_raw("json")))
        (tree,) = text["learner"]["gradient_booster"]["model"]["trees"]
        for node, left in enumerate(tree["left_children"]):
            if left == -1:
                tree["split_conditions"][node] = factor * 2.0**-30 * (1 if node % 2 else -1)
        paths.append(tmp_path / f"{number}.json")
        paths[-1].write_text(json.dumps(text))
    matrix = xgboost.DMatrix(ROWS.astype(np.float32))
    old, new = (xgboost.Booster(model_file=str(path)).predict(matrix) for path in paths)
    assert np.array_equal(old, new)
    found = found_by("diff", load(paths[0]), load(paths[1]), time_limit=5).result
    assert found.verdict == "close"
    assert found.bound is not None
    assert found.bound > 0


@pytest.mark.parametrize("backend", ["native", "z3", "cpsat"])
@pytest.mark.parametrize("features", [5, 16, 40])
def test_likelihoods_of_many_features_are_asked_on_every_backend(features: int, backend: str) -> None:
    rng = np.random.default_rng(features)
    rows = pd.DataFrame(rng.integers(0, 2, (80, features)), columns=[f"f{i}" for i in range(features)])
    model = regressed(rows.astype(np.float32), rows.sum(axis=1), 8, 2)
    declared = "domain from d\n"
    bound = 2.0 ** (-features)  # the most likely row has at least the mean of all probabilities
    alone = ask(model, f"find a in m such that likelihood(a, d) >= {bound:.60f}", declared, rows, backend=backend)
    assert alone.verdict == "found"
    both = "find a, b in m such that a = b except f0; likelihood(a, d) * likelihood(b, d) "
    # Each feature that is shared counts twice; of the one that varies both values are taken.
    least = ask(model, f"{both}>= {bound**4:.200f}", declared, rows, backend=backend)
    assert least.verdict == "found"
    never = ask(model, f"{both}> 1", declared, rows, backend=backend)
    assert never.verdict == "none"
