"""Fault 31 of the third set: the exponential of a large sum is infinite, and a record of it ended in an internal error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import treesens as ts
from tests.corpus import boosted
from treesens.cli import group

xgb = pytest.importorskip("xgboost")
pytestmark = pytest.mark.fault
ROWS = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0] * 10})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Poisson regressor whose raw scores are from about -1,000 to 300, and its rows."""
    place = tmp_path_factory.mktemp("infinite")
    made = boosted(ROWS, ROWS["x"], 3, 2, eta=1.0, max_delta_step=0, objective="count:poisson")
    document = json.loads(bytes(made.save_raw("json")))
    for tree in document["learner"]["gradient_booster"]["model"]["trees"]:
        leaf = np.array(tree["left_children"]) == -1
        tree["split_conditions"] = np.where(
            leaf, 500 * np.array(tree["split_conditions"]), tree["split_conditions"]
        ).tolist()
        tree["base_weights"] = [500 * w for w in tree["base_weights"]]
    (place / "m.json").write_text(json.dumps(document))
    ROWS.to_csv(place / "d.csv", index=False)
    (place / "q.sens").write_text(
        'model m from "m.json"\ndata d from "d.csv"\ndomain from d\nquery q: sensitive m to x margin 1\n'
    )
    predicted = xgb.Booster(model_file=place / "m.json").predict(xgb.DMatrix(ROWS))
    assert np.isinf(predicted).any()
    assert (predicted == 0).any()
    return place


@pytest.mark.parametrize(
    "words",
    [
        ("check", "q.sens"),
        ("audit", "m.json", "--data", "d.csv", "--margin", "1"),
        ("gap", "m.json", "--data", "d.csv", "--vary", "x"),
        ("range", "m.json", "--data", "d.csv"),
        ("shape", "m.json", "--data", "d.csv"),
        ("count", "m.json", "--data", "d.csv", "--margin", "1", "--vary", "x"),
        ("sets", "m.json", "--data", "d.csv", "--margin", "1"),
        ("diff", "m.json", "m.json", "--data", "d.csv"),
    ],
    ids=lambda words: words[0],
)
def test_a_record_of_an_infinite_value_is_json(
    folder: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(folder)
    done = CliRunner().invoke(group, [*words, "--json"])
    assert done.exit_code in (0, 5), done.stderr

    def refuse(constant: str) -> Any:
        raise AssertionError(constant)

    json.loads(done.stdout, parse_constant=refuse)
    assert CliRunner().invoke(group, list(words)).exit_code == done.exit_code


def test_it_is_told_in_words(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    answer = ts.sensitivity("m.json", vary="x", margin=1, data=ROWS)
    assert "value no finite number → 0" in str(answer)
    done = CliRunner().invoke(
        group, ["audit", "m.json", "--data", "d.csv", "--margin", "1", "--report", "page.html", "--quiet"]
    )
    assert done.exit_code == 0, done.stderr
    assert "no finite number" in (folder / "page.html").read_text()
