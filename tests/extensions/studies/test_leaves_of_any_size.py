"""Leaves of 1e300 beside leaves of 1e-300 are answered, and no number overflows on the way (third review: 9)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import treesens as ts
from treesens.cli import group

ensemble = pytest.importorskip("sklearn.ensemble")
skops = pytest.importorskip("skops.io")
pytestmark = pytest.mark.fault

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
