"""`--require-certificate`: what rests on a proof never passes without one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.certificates.models import train
from treesens.cli import group

QUESTIONS = {
    "rows": "count rows of d as a such that margin(a) >= 0",
    "no rows": "count rows of d as a such that margin(a) >= 90",
    "several": "find a in m such that a.f0 <= 1 maximize margin(a) top 2",
}


@pytest.mark.parametrize("kind", QUESTIONS)
def test_a_count_and_several_answers_do_not_pass(kind: str, tmp_path: Path) -> None:
    train(4, tmp_path / "m.json")
    (tmp_path / "d.csv").write_text("f0,f1,f2\n0,0,0\n1,0.5,1.5\n")
    file = tmp_path / "q.sens"
    file.write_text(f'model m from "m.json"\ndata d from "d.csv"\ndomain from d\nquery q: {QUESTIONS[kind]}\n')
    plain = ["check", str(file), "--json", "--certificate", str(tmp_path / "out")]
    (before,) = json.loads(CliRunner().invoke(group, plain, standalone_mode=False).stdout)["results"]
    assert before["verdict"] in ("found", "none")
    done = CliRunner().invoke(group, [*plain, "--require-certificate"], standalone_mode=False)
    (record,) = json.loads(done.stdout)["results"]
    assert record["verdict"] == "unknown"
    assert record["reason"] == "no accepted certificate: counts and several answers have none"
    assert done.return_value == 5
