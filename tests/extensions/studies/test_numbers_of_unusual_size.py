"""Faults 5, 6, 9, 10, 11, 14 and 18 of the third review: numbers of unusual size, and models that are equal or nearly so.

Expected answers come from brute force over the few inputs, or from the library's own predictions.

Leaves of 1e300 beside leaves of 1e-300 are answered, and no number overflows on the way (third review: 9).
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

ensemble = pytest.importorskip("sklearn.ensemble")
skops = pytest.importorskip("skops.io")
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


SENS = """model m from "m.skops"
feature f0: integer in [-3, 3]
feature f1: integer in [-3, 3]
query most: find a in m maximize value(a)
query least: find a in m minimize value(a)
query large: find a in m such that value(a) >= 1
query pair: find a, b in m such that a = b except f0; value(a) >= 1e299; value(b) <= 1e-299
"""


@pytest.fixture
def made(tmp_path: Path) -> tuple[Path, Any, Any]:
    """The file of questions, the inputs of its domain, and what the library says of them."""
    rng = np.random.default_rng(3)
    table = rng.integers(-3, 4, (200, 2))
    target = np.where(table[:, 0] > 0, 1e300, 1e-300)
    forest = ensemble.RandomForestRegressor(3, max_depth=2, random_state=0).fit(table, target)
    skops.dump(forest, tmp_path / "m.skops")
    loaded = ts.load(tmp_path / "m.skops")
    text = SENS
    for number, name in enumerate(loaded.ensemble.feature_names):
        text = text.replace(f"f{number}", f"`{name}`")
    (tmp_path / "q.sens").write_text(text)
    inputs = np.array([(x, y) for x in range(-3, 4) for y in range(-3, 4)])
    return tmp_path / "q.sens", inputs, forest.predict(inputs)


def test_questions_about_them_are_answered(made: tuple[Path, Any, Any]) -> None:
    file, inputs, predicted = made
    answers = {name: one.to_dict() for name, one in ts.check(file, tolerance=0.0).items()}
    assert answers["most"]["objective"]["value"] == pytest.approx(predicted.max(), rel=1e-12)
    assert answers["least"]["objective"]["value"] == pytest.approx(predicted.min(), rel=1e-12)
    assert answers["large"]["verdict"] == "found"
    pairs = [
        (one, two)
        for (x, y), one in zip(inputs, predicted, strict=True)
        for (u, v), two in zip(inputs, predicted, strict=True)
        if y == v and one >= 1e299 and two <= 1e-299
    ]
    assert answers["pair"]["verdict"] == ("found" if pairs else "none")


def test_their_range_is_that_of_the_library(made: tuple[Path, Any, Any]) -> None:
    file, _, predicted = made
    domain = file.with_name("d.sens")
    domain.write_text("\n".join(line for line in file.read_text().splitlines() if line.startswith("feature")))
    command = ["range", str(file.with_name("m.skops")), "--domain", str(domain), "--json"]
    outcome = CliRunner().invoke(group, command, standalone_mode=False)
    assert outcome.exception is None
    low, high = json.loads(outcome.stdout)["results"]
    assert (low["end"], high["end"]) == ("smallest", "largest")
    assert low["value"] == pytest.approx(predicted.min(), rel=1e-12)
    assert high["value"] == pytest.approx(predicted.max(), rel=1e-12)
    assert low["closed"]
    assert high["closed"]
