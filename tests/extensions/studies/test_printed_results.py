"""What `print` shows of the result of every study is what its command prints; an audit writes its report as PDF."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import treesens as ts
from tests.extensions.studies.grids import two_classes
from treesens.cli import main

CALLS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "audit": ({"gap": 0.1}, ["--gap", "0.1"]),
    "count": ({"gap": 0.1}, ["--gap", "0.1"]),
    "gap": ({}, []),
    "groups": ({"by": "p", "favourable": 1}, ["--by", "p", "--favourable", "1"]),
    "reasons": ({"favourable": 1}, ["--favourable", "1"]),
    "robust": ({"rows": [0, 1]}, ["--rows", "0,1"]),
    "sets": ({"gap": 0.1}, ["--gap", "0.1"]),
    "shape": ({}, ["--replay", "emulated"]),
    "why": ({"rows": [0, 1]}, ["--row", "0,1"]),
}
TIMES = re.compile(r"\d+\.\d+ s$|\b\d\.\d\d\b")


def spoken(text: str) -> list[str]:
    """Lines without times and names of files."""
    lines = [TIMES.sub("", line).split() for line in text.splitlines()]
    return [" ".join(line) for line in lines if line and not line[0].endswith(":")]


@pytest.mark.parametrize("name", CALLS)
def test_print_shows_what_the_command_prints(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    trained = two_classes("xgboost")
    trained.estimator.save_model("m.json")
    trained.frame.to_csv("d.csv", index=False)
    options, words = CALLS[name]
    result = getattr(ts, name)("m.json", "d.csv", **options)
    printed = str(result)
    capsys.readouterr()
    with pytest.raises(SystemExit):
        main([name, "m.json", "--data", "d.csv", *words])
    told = spoken(capsys.readouterr().out)
    assert len(told) > 1
    assert [line for line in spoken(printed) if not line.startswith(("assumed:", "note", "warning"))] == told
    assert all(note in printed for note in result.notes)


def test_live_objects_and_rules_have_a_text() -> None:
    trained = two_classes("xgboost")
    audit = ts.audit(trained.estimator, trained.frame, gap=0.1)
    assert "a data frame: 90 rows" in str(audit)
    assert "rows that flip" in str(audit)
    difference = ts.diff(trained.estimator, trained.estimator, trained.frame)
    assert "equal" in str(difference)
    assert "feature p" in str(ts.learn_rules(trained.frame))


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs Chromium")
def test_a_report_is_a_pdf(tmp_path: Path) -> None:
    trained = two_classes("xgboost")
    audit = ts.audit(trained.estimator, trained.frame, gap=0.1)
    assert audit.report(tmp_path / "rep.pdf", date="2026-01-02") == tmp_path / "rep.pdf"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rep.audit.json", "rep.pdf"]
    assert (tmp_path / "rep.pdf").read_bytes().startswith(b"%PDF")
    records = (tmp_path / "rep.audit.json").read_bytes()
    assert len(json.loads(records)["results"]) == 3
    if shutil.which("pdftotext"):
        text = subprocess.run(
            ["pdftotext", tmp_path / "rep.pdf", "-"], capture_output=True, text=True, check=True
        ).stdout
        assert hashlib.sha256(records).hexdigest() in text.replace("\n", "")
