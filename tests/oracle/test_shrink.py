"""A failure is made smaller and written so that it can be repeated. Here the oracle itself reads `changes` wrongly."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from tests.oracle import meaning
from tests.oracle.asking import draw_options, run_case
from tests.oracle.cases import Case, draw_case, save_case
from tests.oracle.judge import Finding
from tests.oracle.shrink import shrunk, size_of


def failing(monkeypatch: pytest.MonkeyPatch) -> tuple[Case, Finding]:
    honest = meaning.changed
    monkeypatch.setattr(meaning, "changed", lambda s, p, q: honest(s, p, q) + 1)
    for seed in range(200):
        case = draw_case(seed)
        found = [f for j in run_case(case, draw_options(np.random.default_rng([7, seed]), 0.0)) for f in j.findings]
        found = [f for f in found if f.kind != "open"]  # an open question is not wrong
        if found:
            return case, found[0]
    raise AssertionError("no question about changes in 200 cases")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_failure_gets_smaller_and_can_be_repeated(monkeypatch, tmp_path) -> None:
    case, finding = failing(monkeypatch)
    small, kept = shrunk(case, finding, 6.0)
    assert kept.kind == finding.kind
    assert "changes" in str(small.questions[0])
    assert len(small.questions) == 1
    assert len(small.questions[0]["constraints"]) <= len(finding.question["constraints"])
    assert size_of(small)["combinations"] <= size_of(case)["combinations"]
    save_case(small, tmp_path)
    command = [sys.executable, "-m", "treesens", "check", "case.sens", "--trust-pickle", "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 10), done.stderr
    assert f'"query": "{small.questions[0]["name"]}"' in done.stdout
