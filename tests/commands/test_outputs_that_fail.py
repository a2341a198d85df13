"""What a command writes beside its answers, and every step of a study after an answer, costs no answer if it fails."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from tests.commands.test_steps_that_fail import fails, files
from tests.corpus import boosted
from treesens.cli import group

pytestmark = pytest.mark.fault

QUESTIONS = """models = ["c.json"]
features = "all"
margins = [0.1]
time_limit = 20
"""

OUTPUTS = {
    "check junit": (["check", "q.sens", "--junit", "OUT.xml"], "treesens.extensions.ci.cases._write_cases"),
    "check sarif": (["check", "q.sens", "--sarif", "OUT.sarif"], "treesens.extensions.ci.cases._write_cases"),
    "check markdown": (["check", "q.sens", "--markdown", "OUT.md"], "treesens.extensions.ci.cases._write_cases"),
    "audit page": (
        ["audit", "c.json", "--data", "d.csv", "--margin", "0.1", "--report", "OUT.html"],
        "treesens.extensions.studies.report.audit_page.write_report",
    ),
    "why plot": (
        ["why", "c.json", "--data", "d.csv", "--row", "0", "--plot", "OUT.svg"],
        "treesens.extensions.studies.report.plots.save_plot",
    ),
    "why out": (
        ["why", "c.json", "--data", "d.csv", "--row", "0", "--out", "OUT.csv"],
        "treesens.extensions.studies.commands.row_outputs.write_csv",
    ),
    "robust plot": (
        ["robust", "c.json", "--data", "d.csv", "--rows", "0-2", "--plot", "OUT.svg"],
        "treesens.extensions.studies.report.plots.save_plot",
    ),
    "robust out": (
        ["robust", "c.json", "--data", "d.csv", "--rows", "0-2", "--out", "OUT.csv"],
        "treesens.extensions.studies.commands.row_outputs._write_points",
    ),
    "sets plot": (
        ["sets", "c.json", "--data", "d.csv", "--margin", "0.1", "--plot", "OUT.svg"],
        "treesens.extensions.studies.report.plots.save_plot",
    ),
    "sweep report": (
        ["sweep", "s.toml", "--report", "OUT.csv", "--jobs", "1"],
        "treesens.extensions.sweeps.report.write_answers",
    ),
    "learn file": (
        ["learn", "rules", "d.csv", "-o", "OUT.sens"],
        "treesens.extensions.studies.commands.study_outputs.write_atomically",
    ),
}


def asked(folder: Path, line: list[str], name: str, *, json_too: bool) -> Any:
    """One run in its own process's terms: what it printed and the code that it ends with."""
    words = [part.replace("OUT", name) for part in line]
    words += ["--json"] if json_too else []
    if words[0] == "sweep":
        words += ["--journal", f"{name}.sqlite"]
    return CliRunner().invoke(group, words, standalone_mode=False)


def without_times(text: str) -> str:
    """What was printed but for times, which no two runs share."""
    text = re.sub(r"\d+(\.\d+)? ?m?s\b", "TIME", text)
    return re.sub(r'"(seconds|time|\w*seconds)": [^,\n]*', '"seconds": T', text)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    files(tmp_path)
    table = np.loadtxt(tmp_path / "d.csv", delimiter=",", skiprows=1)
    boosted(table, (table[:, 0] > 0) & (table[:, 1] == 1), 5, 2, names=["f0", "f1", "f2"], path="c.json")
    (tmp_path / "far.csv").write_text("f0,f1,f2\n0,0,0\n2,2,1\n")
    (tmp_path / "wide.sens").write_text("".join(f"feature f{i}: integer in [0, 2]\n" for i in range(3)))
    (tmp_path / "s.toml").write_text(QUESTIONS)
    return tmp_path


def verdicts(text: str) -> list[Any]:
    """The answers in what `--json` printed, whatever stands beside them."""
    start = text.index("{")
    try:
        read = json.loads(text[start:])
    except ValueError:
        read = [json.loads(line) for line in text[start:].splitlines() if line.startswith("{")]
    records = read.get("results", [read]) if isinstance(read, dict) else read
    return [
        [one.get(key) for key in ("query", "varied", "verdict", "proof", "largest_gap", "bound", "rows_flipped")]
        for one in records
    ]


@pytest.mark.parametrize("output", OUTPUTS)
def test_an_output_that_fails_costs_no_answer(output: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line, where = OUTPUTS[output]
    whole = asked(folder, line, "whole", json_too=False)
    assert whole.exception is None
    made = [part.replace("OUT", "whole") for part in line if "OUT" in part]
    assert (folder / made[0]).stat().st_size > 0
    monkeypatch.setattr(where, fails)
    outcome = asked(folder, line, "planted", json_too=False)
    assert outcome.exception is None
    assert outcome.return_value == 6
    assert "error[X001]" in outcome.stderr
    assert "IndexError: planted" in outcome.stderr
    if not output.startswith("learn"):
        assert without_times(outcome.stdout) == without_times(whole.stdout)
        return
    assert outcome.stdout == (folder / "whole.sens").read_text(), "what could not be written is printed"


def test_a_file_that_cannot_be_written_has_the_code_of_the_user(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from treesens.errors import UsageError

    def refused(*_args: Any, **_named: Any) -> Any:
        raise UsageError("the disk is full", place="p.svg")

    monkeypatch.setattr("treesens.extensions.studies.report.plots.save_plot", refused)
    line, _ = OUTPUTS["why plot"]
    outcome = asked(folder, line, "p", json_too=False)
    assert outcome.return_value == 1
    assert "the disk is full" in outcome.stderr
    assert "because" in outcome.stdout


STEPS = {
    "audit nearest": (
        ["audit", "c.json", "--data", "far.csv", "--domain", "wide.sens", "--margin", "0.1"],
        "treesens.extensions.studies.audit_search.SetAudit._nearer",
    ),
    "audit region": (
        ["audit", "c.json", "--data", "d.csv", "--margin", "0.1"],
        "treesens.extensions.answers.regions.RegionFinder.region",
    ),
    "audit settled": (
        ["audit", "c.json", "--data", "d.csv", "--margin", "0.1"],
        "treesens.extensions.studies.audit_search.SetAudit._settled",
    ),
    "audit swing": (
        ["audit", "c.json", "--data", "d.csv", "--margin", "0.1"],
        "treesens.extensions.studies.audit_search.SetAudit._swing",
    ),
    "audit typical": (
        ["audit", "c.json", "--data", "d.csv", "--margin", "0.1", "--typical", "90"],
        "treesens.extensions.studies.audit_search.SetAudit._typical",
    ),
    "audit share": (
        ["audit", "c.json", "--data", "d.csv", "--margin", "0.1", "--measure", "rows"],
        "treesens.extensions.studies.count_search._counted",
    ),
    "audit certificate": (
        ["audit", "c.json", "--data", "d.csv", "--margin", "0.1", "--certificate", "certs"],
        "treesens.extensions.certify.attach.written",
    ),
    "gap certificate": (
        ["gap", "c.json", "--data", "d.csv", "--certificate", "certs"],
        "treesens.extensions.certify.answers.refutation",
    ),
    "range certificate": (
        ["range", "c.json", "--data", "d.csv", "--certificate", "certs"],
        "treesens.extensions.certify.answers.refutation",
    ),
    "check certificate": (
        ["check", "q.sens", "--certificate", "certs"],
        "treesens.extensions.certify.answers.refutation",
    ),
}


@pytest.mark.parametrize("step", STEPS)
def test_a_step_of_a_study_that_fails_costs_no_answer(step: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line, where = STEPS[step]
    whole = asked(folder, line, "whole", json_too=True)
    assert whole.exception is None
    monkeypatch.setattr(where, fails)
    outcome = asked(folder, line, "planted", json_too=True)
    assert outcome.exception is None
    assert outcome.return_value == 6, outcome.stderr
    assert "error[X001]" in outcome.stdout
    assert "IndexError: planted" in outcome.stdout
    assert len(verdicts(whole.stdout)) > 1
    assert verdicts(outcome.stdout) == verdicts(whole.stdout)


def without_certificates(text: str) -> Any:
    """What `--json` printed but for certificates and the manifest, which may be missing, and times."""

    def bare(read: Any) -> Any:
        if isinstance(read, list):
            return [bare(one) for one in read]
        if not isinstance(read, dict):
            return read
        proofs = ("certificates", "certificate", "manifest")
        return {k: bare(v) for k, v in read.items() if k not in proofs and "seconds" not in k}

    return bare(json.loads(text))


CERTIFIED = {
    "audit": ["audit", "c.json", "--data", "d.csv", "--margin", "0.1"],
    "gap": ["gap", "c.json", "--data", "d.csv"],
    "range": ["range", "c.json", "--data", "d.csv"],
    "sets": ["sets", "c.json", "--data", "d.csv", "--margin", "0.1"],
    "why": ["why", "c.json", "--data", "d.csv", "--row", "0"],
    "robust": ["robust", "c.json", "--data", "d.csv", "--rows", "0"],
    "shape": ["shape", "c.json", "--data", "d.csv"],
    "diff": ["diff", "c.json", "c.json", "--data", "d.csv"],
}


@pytest.mark.parametrize("study", CERTIFIED)
@pytest.mark.parametrize("where", ["write_manifest", "_Writer.add"])
def test_a_manifest_that_fails_costs_no_answer(
    study: str, where: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = [*CERTIFIED[study], "--certificate", "certs"]
    whole = asked(folder, line, "whole", json_too=True)
    assert whole.exception is None
    monkeypatch.setattr(f"treesens.extensions.certify.together.{where}", fails)
    outcome = asked(folder, line, "planted", json_too=True)
    assert outcome.exception is None
    assert outcome.return_value == 6, outcome.stderr
    assert "IndexError: planted" in outcome.stderr
    assert without_certificates(outcome.stdout) == without_certificates(whole.stdout)
