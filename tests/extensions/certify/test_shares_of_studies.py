"""`count` and `groups` with certificates: what is shown lies in what is proved, and what is not proved is named."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xgboost
from click.testing import CliRunner

from tests.extensions.certify.made import parts_of
from tests.extensions.certify.models import train
from tests.extensions.certify.share_truth import share_of
from tests.extensions.certify.truth import Truth
from treesens.cli import group
from treesens.extensions import treesens_verify as checker
from treesens.extensions.certify.command import run_checker

Document = dict[str, Any]
COUNT = ["count", "m.json", "--data", "d.csv", "--vary", "f0", "--margin", "0.5"]
GROUPS = ["groups", "m.json", "--data", "d.csv", "--favourable", "1", "--by", "group"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    train(4, tmp_path / "m.json", trees=5, depth=3)
    rows = np.random.default_rng(9).integers(0, 5, (40, 3)) / 2
    text = "".join(",".join(map(str, row)) + f",{'ab'[n % 2]}\n" for n, row in enumerate(rows.tolist()))
    (tmp_path / "d.csv").write_text(f"f0,f1,f2,group\n{text}")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str) -> tuple[int, Document]:
    done = CliRunner().invoke(
        group, [*words, "--json", "-q", "--certificate", "out", "--require-certificate"], standalone_mode=False
    )
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    document: Document = json.loads(done.stdout)
    return done.return_value, document


@pytest.mark.parametrize("measure", ["uniform", "cells", "marginals", "chow-liu"])
def test_a_share_that_is_counted_is_proved(measure: str, folder: Path) -> None:
    """The interval that is shown holds what brute force finds, and boxes prove no less than it."""
    code, document = run(*COUNT, "--measure", measure)
    assert code == 0
    (record,) = document["results"]
    manifest = folder / document["manifest"]["file"]
    assert document["manifest"]["without"] == []
    (claim,) = json.loads(manifest.read_text())["claims"]
    assert claim["kind"] == "share"
    certain, possible = share_of(Truth(train(4, folder / "again.json", trees=5, depth=3), 3), claim)
    assert certain == possible
    assert record["lower"] - 1e-9 <= certain <= record["upper"] + 1e-9
    data = [(folder / "m.json").read_bytes()]
    said = checker.together(claim, parts_of(manifest), lambda stated: checker.core.model_of(stated, data))[0]
    low, high = [Fraction(word) for word in said.split() if word[0].isdigit()][:2]
    assert record["lower"] - 1e-9 <= low <= certain <= high <= record["upper"] + 1e-9
    assert run_checker([manifest], [folder / "m.json"], {}) == 0


def test_rows_that_are_counted_are_proved(folder: Path) -> None:
    code, document = run(*COUNT, "--measure", "rows")
    assert code == 0
    (record,) = document["results"]
    (claim,) = json.loads((folder / document["manifest"]["file"]).read_text())["claims"]
    assert claim["kind"] == "rows"
    assert len(claim["parts"]) == record["rows"] == 40
    parts = parts_of(folder / document["manifest"]["file"])
    assert sum(parts[n]["claim"] == "found" for n in claim["parts"]) == record["rows_concerned"]


@pytest.mark.parametrize("measure", ["rows", "marginals", "uniform", "chow-liu"])
def test_the_share_of_every_group_is_proved(measure: str, folder: Path) -> None:
    """Those of rows are what XGBoost predicts, row by row."""
    by = ["groups", "m.json", "--data", "d.csv", "--favourable", "1", "--by", "f2"] if measure == "uniform" else GROUPS
    code, document = run(*by, "--measure", measure)
    assert code == 0
    claims = json.loads((folder / document["manifest"]["file"]).read_text())["claims"]
    assert len(claims) == len(document["results"]) >= 2
    assert run_checker([folder / document["manifest"]["file"]], [folder / "m.json"], {}) == 0
    if measure != "rows":
        truth = Truth(train(4, folder / "again.json", trees=5, depth=3), 3)
        for record, claim in zip(document["results"], claims, strict=True):
            certain, possible = share_of(truth, claim)
            assert record["lower"] - 1e-9 <= certain <= possible <= record["upper"] + 1e-9
        return
    rows = np.genfromtxt(folder / "d.csv", delimiter=",", skip_header=1, usecols=(0, 1, 2)).astype(np.float32)
    chance = xgboost.Booster(model_file=folder / "m.json").predict(xgboost.DMatrix(rows))
    parts = parts_of(folder / document["manifest"]["file"])
    for number, (record, claim) in enumerate(zip(document["results"], claims, strict=True)):
        shown = sum(parts[n]["claim"] == "found" for n in claim["parts"])
        assert shown == record["favourable_rows"] == int((chance[number::2] > 0.5).sum())
        assert len(claim["parts"]) == record["rows"] == 20


def test_a_share_that_boxes_do_not_reach_in_time_has_none(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("treesens.extensions.certify.share_boxes.MOST_PARTS", 2)
    code, document = run(*COUNT, "--measure", "marginals")
    assert code == 5
    (one,) = document["manifest"]["without"]
    assert one["reason"].startswith("boxes prove in time only that it lies between ")
    assert (folder / "out").exists()


@pytest.mark.parametrize("measure", ["rows", "uniform", "chow-liu"])
def test_the_shares_of_an_audit_are_proved(measure: str, folder: Path) -> None:
    """Every record has one; that of rows is what XGBoost predicts of every row with all values of the feature."""
    code, document = run(
        "audit", "m.json", "--data", "d.csv", "--margin", "0.5,1", "--vary", "f0", "--measure", measure
    )
    assert code in (0, 10)
    assert document["manifest"]["without"] == []
    claims = json.loads((folder / document["manifest"]["file"]).read_text())["claims"]
    shares = [claim for claim in claims if claim["kind"] == ("rows" if measure == "rows" else "share")]
    assert len(shares) == len(document["results"]) == 2
    truth = Truth(train(4, folder / "again.json", trees=5, depth=3), 3)
    parts = parts_of(folder / document["manifest"]["file"])
    for record, claim in zip(document["results"], shares, strict=True):
        if measure == "rows":
            shown = sum(parts[n]["claim"] == "found" for n in claim["parts"])
            assert shown / len(claim["parts"]) == record["share"]["lower"] == record["share"]["upper"]
            # The same count from rows that were tried one by one is not shown: it has no certificate.
            assert not record["rows_complete"]
            assert not record["rows_flipped"]
            assert 0 < shown <= record["rows"]
            continue
        certain, possible = share_of(truth, claim)
        assert record["share"]["lower"] - 1e-9 <= certain <= possible <= record["share"]["upper"] + 1e-9
    assert run_checker([folder / document["manifest"]["file"]], [folder / "m.json"], {}) == 0
