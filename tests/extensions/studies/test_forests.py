"""Audits and largest gaps of forests, whose two outputs are probabilities, against scikit-learn over the whole domain."""

from __future__ import annotations

import hashlib
import itertools
import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.command import run_command

NAMES = ["p", "q", "r"]


def run(*arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = run_command(Path.cwd(), *map(str, arguments))
    assert done.returncode == code, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module", params=["RandomForestClassifier", "ExtraTreesClassifier"])
def forest(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A folder with a forest and its table, and the probability of the second class at every point of the grid [6, 6, 6]."""
    ensemble, skops = pytest.importorskip("sklearn.ensemble"), pytest.importorskip("skops.io")
    folder = tmp_path_factory.mktemp("forest")
    grid = np.array(list(itertools.product(range(6), repeat=3)), float)
    rows = grid[np.random.default_rng(3).permutation(len(grid))[:80]]
    label = np.where((rows[:, 0] > 2) ^ (rows[:, 1] + rows[:, 2] > 5), "yes", "no")
    model = getattr(ensemble, request.param)(7, max_depth=4, random_state=1)
    model.fit(pd.DataFrame(rows, columns=NAMES), label)
    skops.dump(model, folder / "m.skops")
    pd.DataFrame(rows.astype(int), columns=NAMES).to_csv(folder / "d.csv", index=False)
    chance = model.predict_proba(pd.DataFrame(grid, columns=NAMES))[:, 1].reshape(6, 6, 6)
    return folder, rows.astype(int), chance


def test_audits_count_the_rows_that_flip(forest: Any) -> None:
    folder, rows, chance = forest
    out = run("audit", folder / "m.skops", "--data", folder / "d.csv", "--gap", "0.1,0.3", "--json").stdout
    answer = json.loads(out)
    records = answer["results"]
    assert answer["model"]["sha256"] == hashlib.sha256((folder / "m.skops").read_bytes()).hexdigest()
    assert len(records) == 6
    for record in records:
        axis = NAMES.index(record["varied"][0])
        high, low = (getattr(chance, end)(axis=axis, keepdims=True) for end in ("max", "min"))
        # No score of seven trees comes closer to these bounds than 1e-9, but for rounding.
        flips = (high >= 0.5 + record["gap"] - 1e-9) & (low <= 0.5 - record["gap"] + 1e-9)
        at = np.broadcast_to(flips, chance.shape)[tuple(rows.T)]
        assert record["rows_flipped"] == int(at.sum())
        assert record["verdict"] == ("found" if flips.any() else "none")
        assert record["max_swing"] == pytest.approx(float((high - low).max()), abs=1e-9)
        assert record["max_swing_bound"] == pytest.approx(record["max_swing"], abs=1e-6)


def test_largest_gaps_are_those_of_the_library(forest: Any, tmp_path: Path) -> None:
    folder, _, chance = forest
    out = run("gap", folder / "m.skops", "--data", folder / "d.csv", "--json", "--certificate", tmp_path).stdout
    records = json.loads(out)["results"]
    for record in records:
        axis = NAMES.index(record["varied"][0])
        best = np.minimum(chance.max(axis=axis) - 0.5, 0.5 - chance.min(axis=axis)).max()
        assert record["largest_gap"] == pytest.approx(float(best), abs=1e-9)
        assert record["largest_gap_bound"] == pytest.approx(float(best), rel=0.03)
        assert record["certificates"][0]["file"], record["certificates"]
    assert len(records) == len(list(tmp_path.glob("*.bound.*"))) == len(list(tmp_path.glob("*.found.*"))) == 3
    said = run("verify", tmp_path, "--model", folder / "m.skops", "--quiet").stdout
    assert said.count(": accepted\n") == 7  # with the manifest


def test_a_margin_has_no_meaning_for_a_forest(forest: Any) -> None:
    folder, _, _ = forest
    done = run("audit", folder / "m.skops", "--data", folder / "d.csv", "--margin", "1", code=1)
    assert "pass --gap, e.g. 0.1,0.2" in done.stderr
