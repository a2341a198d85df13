"""Shares of rows: a manifest says of every row whether its sensitive features alone can make an answer."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xgboost
from click.testing import CliRunner

from tests.corpus import margins_of
from tests.extensions.certify.made import parts_of
from tests.extensions.certify.models import train
from treesens.cli import group
from treesens.extensions import treesens_verify as checker
from treesens.extensions.certify.command import run_checker

HEAD = (
    'model m from "m.json"\ndata d from "d.csv"\nmeasure r: rows of d\nmeasure t: chow-liu of d\n'
    "feature f0: real in [0, 2]\nfeature f1: real in [0, 2] or missing\nfeature f2: real in [0, 4]\n"
)
FREE = [[i / 8 for i in range(17)], [*(i / 8 for i in range(17)), np.nan], [i / 8 for i in range(33)]]
QUESTIONS = {
    "a pair": ("find a, b in m such that a = b except {f0}; margin(a) - margin(b) >= 2.5", [0]),
    "a pair of two features": ("find a, b in m such that a = b except {f1, f2}; margin(a) - margin(b) >= 3", [1, 2]),
    "one point": ("find a in m such that margin(a) >= 0.5", []),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("shares")
    train(4, made / "m.json")
    rows = np.random.default_rng(9).integers(0, 5, (30, 3)) / 2
    rows[::4, 1] = np.nan
    rows[-1] = 9  # outside of the domain
    text = "".join(",".join("" if np.isnan(x) else str(x) for x in row) + "\n" for row in rows)
    (made / "d.csv").write_text(f"f0,f1,f2\n{text}")
    return made


def asked(folder: Path, question: str, out: Path, *options: str) -> tuple[int, dict[str, Any]]:
    (folder / "q.sens").write_text(f"{HEAD}query q: {question}\n")
    done = CliRunner().invoke(
        group, ["check", str(folder / "q.sens"), "--json", "--certificate", str(out), *options], standalone_mode=False
    )
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    (record,) = json.loads(done.stdout)["results"]
    return done.return_value, record


def concerned(folder: Path, name: str) -> tuple[int, int]:
    """By XGBoost: of how many rows of the domain some values of the sensitive features make an answer."""
    booster = xgboost.Booster(model_file=folder / "m.json")
    rows = np.genfromtxt(folder / "d.csv", delimiter=",", skip_header=1)
    rows = rows[(rows[:, 0] <= 2) & ~(rows[:, 1] > 2) & (rows[:, 2] <= 4)]
    question, varied = QUESTIONS[name]
    found = 0
    for row in rows:
        choices = [FREE[f] if f in varied else [row[f]] for f in range(3)]
        margin = margins_of(booster, np.array(list(itertools.product(*choices))))
        least = float(question.rsplit(">= ", 1)[1])
        found += float(margin.max() - margin.min()) >= least if varied else float(margin.max()) >= least
    return found, len(rows)


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_share_of_rows_is_kept_with_its_manifest(
    name: str, folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    found, total = concerned(folder, name)
    assert 0 < found < total
    _, record = asked(folder, f"{QUESTIONS[name][0]} share of r", tmp_path, "--require-certificate")
    assert (record["share"]["lower"], record["share"]["upper"]) == (found / total, found / total)
    (path,) = tmp_path.glob("q.share.*.manifest.json")
    assert path.name in {Path(one["file"]).name for one in record["certificates"]}
    assert run_checker([path], [folder / "m.json"], {}) == 0
    said = capfd.readouterr().out
    assert f"of {total} rows, each one of a part" in said
    assert f"{found} have an answer" in said


def test_a_row_that_is_left_out_or_turned_round_is_noticed(folder: Path, tmp_path: Path) -> None:
    """A row without its sets is rejected; one in the place of another is another count, which the words say."""
    found, total = concerned(folder, "a pair")
    asked(folder, f"{QUESTIONS['a pair'][0]} share of r", tmp_path)
    (path,) = tmp_path.glob("q.share.*.manifest.json")
    document = json.loads(path.read_text())
    parts = parts_of(path)
    (claim,) = document["claims"]

    def say(claim: dict[str, Any], parts: list[dict[str, Any]]) -> str:
        data = [(folder / "m.json").read_bytes()]
        return checker.together(claim, parts, lambda stated: checker.core.model_of(stated, data))[0]

    assert say(claim, parts).startswith(f"of {total} rows")
    assert f" {found} have" in say(claim, parts)
    fewer = {**claim, "parts": claim["parts"][:-1]}
    assert say(fewer, parts).startswith(f"of {total - 1} rows")
    narrower = json.loads(json.dumps(parts))
    narrower[0]["statement"]["rows"][0]["bound"]["rational"] = "100"
    with pytest.raises(checker.Rejected, match="differ in what they should have in common"):
        say(claim, narrower)
    narrower = json.loads(json.dumps(parts))
    narrower[0]["statement"]["domain"].pop()
    with pytest.raises(checker.Rejected, match="a row without a set for each feature"):
        say(claim, narrower)


def test_a_share_by_a_tree_passes_with_its_manifest(folder: Path, tmp_path: Path) -> None:
    text = f"{QUESTIONS['a pair'][0]} share of t"
    _, record = asked(folder, text, tmp_path, "--require-certificate")
    assert all(one["file"] for one in record["certificates"])
    assert 0 < record["share"]["lower"] <= record["share"]["upper"] < 1
    (path,) = tmp_path.glob("q.share.*.manifest.json")
    assert run_checker([path], [folder / "m.json"], {}) == 0


def test_a_share_of_rows_that_nobody_proves_does_not_pass(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If more rows are needed than are proved one by one, the share stays, but not if certificates are required."""
    monkeypatch.setattr("treesens.extensions.certify.claims.MOST_ROWS", 2)
    text = f"{QUESTIONS['a pair'][0]} share of r"
    _, record = asked(folder, text, tmp_path)
    assert [one["reason"] for one in record["certificates"] if not one["file"]] == [
        "more than 2 rows are not proved one by one"
    ]
    assert 0 < record["share"]["lower"] == record["share"]["upper"] < 1
    _, record = asked(folder, text, tmp_path, "--require-certificate")
    assert (record["share"]["lower"], record["share"]["upper"]) == (0, 1)
    assert record["share"]["reason"].startswith("no accepted certificate: more than 2 rows")
