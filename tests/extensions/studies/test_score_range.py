"""The smallest and the largest score, against the library's own predictions on every input of a grid."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from tests.extensions.studies.asked import found as found_by
from treesens.cli import group
from treesens.data.tables import read_table
from treesens.errors import UsageError
from treesens.extensions.studies.range import RangeRecord
from treesens.extensions.studies.study import Found
from treesens.frontends.registry import load
from treesens.records.plain import plain

LEVELS = 8
GRID = np.stack(np.meshgrid(*[np.arange(LEVELS)] * 3, indexing="ij"), axis=-1).reshape(-1, 3).astype(np.float64)
NAMES = ["p", "q", "r"]


def rows(classes: int, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray[Any, Any]]:
    """Every level of every feature occurs, so that the domain is the grid."""
    rng = np.random.default_rng(seed)
    x = np.vstack([rng.integers(0, LEVELS, (300, 3)), np.repeat(np.arange(LEVELS)[:, None], 3, axis=1)])
    score = x[:, 0] * 2 + x[:, 1] * x[:, 2] % 5 + rng.normal(0, 2, len(x))
    y = score if classes == 0 else np.digitize(score, np.quantile(score, np.arange(1, classes) / classes))
    return pd.DataFrame(x.astype(np.float64), columns=NAMES), y


def ranges(model: Any, x: pd.DataFrame, **options: Any) -> Found[RangeRecord]:
    return found_by("range", load(model), table=read_table(x), **options)


def by_library(found: Found[RangeRecord], scores: np.ndarray[Any, Any], tolerance: float) -> None:
    """Each end is the library's own least or greatest score, reached by the printed input, and closed."""
    scores = scores.reshape(len(GRID), -1)
    assert len(found.result) == 2 * scores.shape[1]
    for number, end in enumerate(found.result):
        column = scores[:, number // 2]
        expected = column.min() if end.sense == "minimize" else column.max()
        record = plain(end.record())
        assert end.closed
        assert record["value"] == pytest.approx(expected, abs=tolerance)
        place = np.flatnonzero(([record["points"]["a"][name] for name in NAMES] == GRID).all(axis=1))
        assert column[place] == pytest.approx(expected, abs=tolerance)


@pytest.mark.parametrize("classes", [0, 2, 3])
def test_boosters(classes: int) -> None:
    xgboost = pytest.importorskip("xgboost")
    x, y = rows(classes)
    kind = xgboost.XGBClassifier if classes else xgboost.XGBRegressor
    model = kind(n_estimators=6, max_depth=3).fit(x, y)
    scores = model.predict(pd.DataFrame(GRID, columns=NAMES), output_margin=True)
    found = ranges(model, x)
    by_library(found, scores, 1e-5)
    assert {end.score for end in found.result} == ({"raw score"} if classes else {"value"})
    assert [end.label for end in found.result] == ([None] * 2 if classes < 3 else [0, 0, 1, 1, 2, 2])


@pytest.mark.parametrize("classes", [2, 3])
def test_forests_have_probabilities(classes: int) -> None:
    ensemble = pytest.importorskip("sklearn.ensemble")
    x, y = rows(classes)
    model = ensemble.RandomForestClassifier(7, max_depth=4, random_state=0).fit(x.to_numpy(), y)
    found = ranges(model, x.rename(columns=dict(zip(NAMES, ["f0", "f1", "f2"], strict=True))))
    scores = model.predict_proba(GRID)
    assert {end.score for end in found.result} == {"probability"}
    for number, end in enumerate(found.result):
        column = scores[:, number // 2]
        expected = column.min() if end.sense == "minimize" else column.max()
        assert end.closed
        assert plain(end.record())["value"] == pytest.approx(expected, abs=1e-12)


def test_chosen_classes_and_declared_domains(tmp_path: Path) -> None:
    xgboost = pytest.importorskip("xgboost")
    x, y = rows(3)
    model = xgboost.XGBClassifier(n_estimators=6, max_depth=3).fit(x, y)
    model.save_model(tmp_path / "m.json")
    x.assign(y=y).to_csv(tmp_path / "d.csv", index=False)
    (tmp_path / "domain.sens").write_text("feature p: integer in [2, 3]\n")
    arguments = ["range", "m.json", "--data", "d.csv", "--label", "y", "--classes", "2", "--domain", "domain.sens"]
    with pytest.MonkeyPatch.context() as here:
        here.chdir(tmp_path)
        ran = CliRunner().invoke(group, [*arguments, "--certificate", "proofs", "--json"], standalone_mode=False)
        shown = CliRunner().invoke(group, arguments, standalone_mode=False)
    ends = json.loads(ran.stdout)["results"]
    inside = GRID[(GRID[:, 0] == 2) | (GRID[:, 0] == 3)]
    scores = model.predict(pd.DataFrame(inside, columns=NAMES), output_margin=True)[:, 2]
    assert [end["value"] for end in ends] == pytest.approx([scores.min(), scores.max()], abs=1e-5)
    assert [end["end"] for end in ends] == ["smallest", "largest"]
    assert all(claim["file"] for end in ends for claim in end["certificates"])
    assert "smallest raw score" in shown.stdout
    with pytest.raises(UsageError, match="no class `9`"):
        ranges(model, x, classes=["9"])
