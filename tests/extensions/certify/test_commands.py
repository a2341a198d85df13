"""Certificates from the command line: written, counted, checked by the checker alone, and required."""

from __future__ import annotations

import hashlib
import html
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import treesens.extensions.treesens_verify as checker

from tests.command import run_command
from tests.extensions.certify.models import train


def run(*arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = run_command(Path.cwd(), *map(str, arguments))
    assert done.returncode == code, done.stdout + done.stderr
    return done


def accepted(folder: Path, model: Path) -> int:
    """How many certificates a folder holds; all of them are accepted by the checker in a process of its own."""
    said = run("verify", folder, "--model", model, "--quiet").stdout
    return said.count(": accepted\n")


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
    # Cells of any three relations have a solution, and the format cannot say more of them.
    file.write_text(
        'model m from "m.json"\nfeature f0: real in [0, 2]\nfeature f1: real in [0, 2]\nfeature f2: real in [0, 2]\n'
        "query q: find a, b in m such that margin(a) >= -9; a.f0 - a.f1 >= 0.25; a.f1 - a.f2 >= 0.25; "
        "a.f2 - b.f0 >= 0.25; b.f0 - a.f0 >= -0.5"
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
    report, options = tmp_path / "page.html", ("--margin", "0.1,9", "--certificate", audits)
    run("audit", model, "--data", table, *options, "--report", report)
    assert accepted(audits, model) >= 3
    page = report.read_text()
    certificates = list(audits.glob("*.cert.xz"))
    for file in certificates:
        assert file.name in page
        assert hashlib.sha256(file.read_bytes()).hexdigest() in page
    (command,) = re.findall(r"To check all of them: <code>(.*?)</code>", page)
    told = shlex.split(html.unescape(command))
    assert told[0] == "treesens"
    assert run(*told[1:]).stdout.count(": accepted\n") == len(certificates) + 1  # the manifest


def test_sweeps_have_certificates(model: Path, tmp_path: Path) -> None:
    file, folder = tmp_path / "s.sens", tmp_path / "sweep"
    file.write_text('model m from "m.json"\nquery q: for each f in features: sensitive m to f margin 9 expect none')
    done = run("sweep", file, "-j", "1", "--certificate", folder, "--require-certificate")
    assert "certificates: 3 accepted" in done.stderr
    assert accepted(folder, model) == 3


def test_a_model_of_another_format_brings_its_trees(tmp_path: Path) -> None:
    """A forest of scikit-learn: its trees lie beside the certificate; `export` writes the same file."""
    skops, ensemble = pytest.importorskip("skops.io"), pytest.importorskip("sklearn.ensemble")
    x = np.arange(40.0).reshape(20, 2) % 7
    skops.dump(
        ensemble.RandomForestClassifier(4, max_depth=2, random_state=0).fit(x, x[:, 0] > 3), tmp_path / "m.skops"
    )
    file, folder = tmp_path / "q.sens", tmp_path / "certificates"
    file.write_text('model m from "m.skops"\nquery q: find a in m such that prob(a, 1) > 1')
    run("check", file, "--certificate", folder)
    said = run("verify", folder, "--model", tmp_path / "m.skops").stdout
    assert "a is an input of model 0" in said
    assert "It is trusted, not proved, that these are the trees of" in said
    assert said.endswith(": accepted\n")
    (trees,) = folder.glob("*.trees.json")
    assert "which is not among the model files" in run("verify", folder, code=10).stdout
    assert run("verify", folder, "--trees-alone").stdout.endswith(": accepted\n")
    run("export", tmp_path / "m.skops", "-o", tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == trees.read_bytes()
    trees.write_bytes(trees.read_bytes().replace(b'"average":4', b'"average":1'))
    assert "rejected: no model file has the SHA-256" in run("verify", folder, "--trees-alone", code=10).stdout


def test_verify_says_what_is_missing(model: Path, tmp_path: Path) -> None:
    assert "these paths contain no certificates" in run("verify", tmp_path, code=1).stderr
    (tmp_path / "a.cert.xz").write_bytes(b"no xz")
    assert "add --model FILE" in run("verify", tmp_path, code=1).stderr
    assert "rejected" in run("verify", tmp_path, "--model", model, code=10).stdout


def test_the_distribution_of_the_checker_stands_alone(model: Path, tmp_path: Path) -> None:
    """Built and installed from its own folder into an empty environment."""
    file, folder = tmp_path / "q.sens", tmp_path / "certificates"
    file.write_text('model m from "m.json"\nquery q: find a in m such that margin(a) >= 9')
    run("check", file, "--certificate", folder)
    source = Path(checker.__file__).parents[2]
    if not (source / "pyproject.toml").exists():
        pytest.skip("not a checkout")
    shutil.copytree(source, tmp_path / "verify")
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "empty"], check=True)
    program = tmp_path / "empty" / "bin" / "python"
    subprocess.run([program, "-m", "pip", "install", "--quiet", tmp_path / "verify"], check=True)
    (certificate,) = folder.iterdir()
    command = [tmp_path / "empty" / "bin" / "treesens-verify", certificate, "--model", model]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith(": accepted\n")
