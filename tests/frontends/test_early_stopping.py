"""Fault 10: a saved XGBClassifier was audited with all trees of the file, and nothing said that its wrapper uses fewer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import treesens as ts
from treesens.cli import group

xgb = pytest.importorskip("xgboost")
pytestmark = pytest.mark.fault


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("stopped")
    rng = np.random.default_rng(6)
    x = pd.DataFrame(rng.random((400, 3)), columns=["p", "q", "r"])
    y = (x["p"] + rng.normal(0, 0.3, 400) > 0.5).astype(int)
    model = xgb.XGBClassifier(n_estimators=80, max_depth=3, early_stopping_rounds=5)
    model.fit(x[:300], y[:300], eval_set=[(x[300:], y[300:])], verbose=False)
    assert model.best_iteration + 1 < model.get_booster().num_boosted_rounds()
    model.save_model(place / "m.json")
    x.assign(label=y).to_csv(place / "d.csv", index=False)
    (place / "q.sens").write_text('model m from "m.json"\nquery q: find a such that prob(a) >= 0.6\n')
    (place / "best.sens").write_text(
        'model m from "m.json" as `xgboost:best`\nquery q: find a such that prob(a) >= 0.6\n'
    )
    return place


def predictions(folder: Path, loaded: Any) -> tuple[Any, Any]:
    model = xgb.XGBClassifier()
    model.load_model(folder / "m.json")
    rows = pd.read_csv(folder / "d.csv")[["p", "q", "r"]]
    return model.predict(rows, output_margin=True), loaded.ensemble.margins_emulated(rows.to_numpy())[:, 0]


def test_each_variant_predicts_as_its_library_does(folder: Path) -> None:
    wrapper, best = predictions(folder, ts.load(folder / "m.json", "xgboost:best"))
    assert np.array_equal(wrapper, best)
    rows = xgb.DMatrix(pd.read_csv(folder / "d.csv")[["p", "q", "r"]])
    booster = xgb.Booster(model_file=folder / "m.json")
    for variant in (None, "xgboost", "xgboost:all"):
        _, mine = predictions(folder, ts.load(folder / "m.json", variant))
        assert np.array_equal(booster.predict(rows, output_margin=True), mine)


AUDIT = ["audit", "m.json", "--data", "d.csv", "--label", "label", "--vary", "p"]


@pytest.mark.parametrize("command", [["check", "q.sens"], AUDIT, ["gap", "m.json", "--vary", "p"]])
def test_each_command_says_so(folder: Path, command: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    told = CliRunner().invoke(group, command)
    assert "stopped early" in told.stderr
    if command[0] == "check":
        assert "stopped early" not in CliRunner().invoke(group, ["check", "best.sens"]).stderr
        assert all("stopped early" in "".join(one.notes) for one in ts.check(folder / "q.sens").values())
    else:
        assert "stopped early" not in CliRunner().invoke(group, [*command, "--format", "xgboost:best"]).stderr


def test_the_page_says_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jinja2")
    monkeypatch.chdir(folder)
    CliRunner().invoke(group, [*AUDIT, "--report", "o.html"])
    assert "stopped early" in (folder / "o.html").read_text()


def test_an_unknown_variant_is_an_error(folder: Path) -> None:
    with pytest.raises(ts.errors.ModelError, match="no variant `beste`"):
        ts.load(folder / "m.json", "xgboost:beste")
