"""Certificates from the command line: written, counted, checked by the checker alone, and required."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.certificates.models import train
from treesens.certificates import checker


def run(*arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "treesens", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done


def accepted(folder: Path, model: Path) -> int:
    """How many certificates a folder holds; all of them are accepted by the checker in a process of its own."""
    files = sorted(folder.iterdir())
    command = [sys.executable, "-I", checker.__file__, *map(str, files), "--model", str(model)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return len(files)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    train(4, tmp_path / "m.json")
    return tmp_path / "m.json"


def test_check_writes_a_certificate_for_every_claim(model: Path, tmp_path: Path) -> None:
    file, folder = tmp_path / "q.sens", tmp_path / "certificates"
    pair = "find a, b in m such that a = b except f0"
    questions = {"no": f"{pair}; margin(a) - margin(b) >= 9", "best": f"{pair} maximize margin(a) - margin(b)"}
    file.write_text('model m from "m.json"\n' + "\n".join(f"query {n}: {t}" for n, t in questions.items()))
    results = json.loads(run("check", file, "--certificate", folder, "--json").stdout)["results"]
    claims = [(r["query"], c["claim"], bool(c["file"])) for r in results for c in r["certificates"]]
    assert claims == [("no", "none", True), ("best", "found", True), ("best", "bound", True)]
    assert accepted(folder, model) == 3


def test_a_none_without_a_certificate_is_unknown_where_one_is_required(model: Path, tmp_path: Path) -> None:
    file, folder = tmp_path / "q.sens", tmp_path / "certificates"
    # Without the relation between values there is a solution, and the format cannot say it.
    file.write_text(
        'model m from "m.json"\nfeature f0: real in [0, 1]\nfeature f1: real in [0, 1]\nfeature f2: real in [0, 1]\n'
        "query q: find a in m such that margin(a) >= -9; a.f0 + a.f1 >= 1.5; a.f1 + a.f2 <= 0.4"
    )
    free = json.loads(run("check", file, "--json").stdout)["results"][0]
    assert free["verdict"] == "none"
    required = run("check", file, "--certificate", folder, "--require-certificate", "--json", code=5)
    result = json.loads(required.stdout)["results"][0]
    assert result["verdict"] == "unknown"
    assert "no accepted certificate" in result["reason"]
    assert result["certificates"][0]["file"] is None
    assert not list(folder.iterdir())


def test_requiring_needs_a_folder(model: Path, tmp_path: Path) -> None:
    file = tmp_path / "q.sens"
    file.write_text('model m from "m.json"\nquery q: find a in m such that margin(a) >= 9')
    done = run("check", file, "--require-certificate", code=1)
    assert "--certificate DIR" in done.stderr


def test_gap_and_audit_have_certificates(model: Path, tmp_path: Path) -> None:
    gaps, audits, table = tmp_path / "gaps", tmp_path / "audits", tmp_path / "t.csv"
    run("gap", model, "--certificate", gaps)
    assert accepted(gaps, model) >= 1
    table.write_text("f0,f1,f2\n0,0,0\n1,0.5,1.5\n")
    run("audit", model, "--data", table, "--margin", "0.1,9", "--certificate", audits)
    assert accepted(audits, model) >= 3


def test_sweeps_have_certificates(model: Path, tmp_path: Path) -> None:
    file, folder = tmp_path / "s.sens", tmp_path / "sweep"
    file.write_text('model m from "m.json"\nquery q: for each f in features: sensitive m to f margin 9 expect none')
    done = run("sweep", file, "-j", "1", "--certificate", folder, "--require-certificate")
    assert "certificates: 3 accepted" in done.stderr
    assert accepted(folder, model) == 3
