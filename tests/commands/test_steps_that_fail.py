"""What comes after an answer never costs it, and what it leans on stands in it (third review: 5, 19, 20, P10, P14)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import treesens as ts
from tests.corpus import boosted, regressed
from treesens.cli import group
from treesens.compiler.result import Proof, Result, Verdict
from treesens.solve.combine import join_opinions

pytestmark = pytest.mark.fault

STUMPS = """model m from "m.json"
data d from "d.csv"
domain from d
query first:
  find a in m such that margin(a) >= 0.1 maximize margin(a)
query share:
  share of d find a in m such that margin(a) >= 0.1
query never:
  find a in m such that margin(a) >= 1000
query last:
  find a in m such that a.f0 = 1
"""


def files(folder: Path) -> Path:
    rng = np.random.default_rng(0)
    table = rng.integers(0, 3, (60, 3)).astype(np.float32)
    label = table[:, 0] + table[:, 1] - 1
    regressed(table, label, 5, 2, names=["f0", "f1", "f2"], path=folder / "m.json", base_score=0.0)
    np.savetxt(folder / "d.csv", table, fmt="%d", delimiter=",", header="f0,f1,f2", comments="")
    (folder / "q.sens").write_text(
        STUMPS.replace("query share:\n  share of d find a in m such that margin(a) >= 0.1\n", "")
    )
    return folder / "q.sens"


def fails(*_args: Any, **_named: Any) -> Any:
    raise IndexError("planted")


@pytest.mark.parametrize(
    ("step", "where", "options"),
    [
        ("region", "treesens.extensions.answers.regions.RegionFinder.region", ()),
        ("region", "treesens.extensions.answers.location.nearest_row", ()),
        ("certificate", "treesens.extensions.certify.answers.certified", ("--certificate",)),
        ("core", "treesens.solve.tasks.unsat_core.core_of", ("--core",)),
    ],
)
def test_a_step_that_fails_costs_no_answer(
    step: str, where: str, options: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = files(tmp_path)
    before = {name: one.to_dict()["verdict"] for name, one in ts.check(file).items()}
    monkeypatch.setattr(where, fails)
    more = [part for option in options for part in ((option, str(tmp_path / "c")) if "cert" in option else (option,))]
    outcome = CliRunner().invoke(group, ["check", str(file), "--json", *more], standalone_mode=False)
    assert outcome.exception is None
    assert outcome.return_value == 6, "an internal error, although every answer stands"
    import json

    records = json.loads(outcome.stdout)["results"]
    assert {record["query"]: record["verdict"] for record in records} == before
    notes = [note for record in records for note in record.get("notes", [])]
    assert any(f"error[X001]: {step}: internal error: IndexError: planted" in note for note in notes)


def test_a_question_that_fails_costs_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from treesens.solve import question

    file, real = files(tmp_path), question.answer_question

    def first_fails(query: Any, *args: Any, **named: Any) -> Result:
        return fails() if query.name == "first" else real(query, *args, **named)

    monkeypatch.setattr(question, "answer_question", first_fails)
    outcome = CliRunner().invoke(group, ["check", str(file)], standalone_mode=False)
    assert outcome.exception is None
    assert outcome.return_value == 6
    assert "last: found" in outcome.stdout
    assert "never: none" in outcome.stdout


def test_an_unforeseen_error_has_a_code_and_no_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from treesens.cli import main

    file = files(tmp_path)
    monkeypatch.setattr("treesens.commands.check.load_file", fails)
    with pytest.raises(SystemExit) as left:
        main(["check", str(file)])
    assert left.value.code == 6
    shown = capsys.readouterr().err
    assert "error[X001]: internal error: IndexError: planted" in shown
    assert "Traceback" not in shown


def test_a_backend_does_not_confirm_what_rests_on_it() -> None:
    rests = ("values inside cells by z3 (exact)",)
    first = Result("q", Verdict.NONE, "native", proof=Proof.EXACT, backend="native", proof_dependencies=rests)
    second = Result("q", Verdict.NONE, "z3", proof=Proof.EXACT, backend="z3")
    assert join_opinions(first, second, "z3").confirmed_by is None
    assert join_opinions(first, second, "cpsat").confirmed_by == "cpsat"


TIED = """model m from "m.json"
feature f0: real in [0, 1]
feature f1: real in [0, 1]
query q:
  find a, b in m such that a.f0 + b.f0 = 1.1; a.f1 + b.f1 <= 0.9; distance(a, b, l2) >= 0.8; a.f0 - b.f1 >= 0.3
  maximize distance(a, b, l2)
"""


def test_a_missing_z3_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    table = rng.random((60, 2)).astype(np.float32)
    boosted(table, table[:, 0] > table[:, 1], 2, 1, names=["f0", "f1"], path=tmp_path / "m.json")
    (tmp_path / "q.sens").write_text(TIED)
    monkeypatch.setitem(sys.modules, "z3", None)
    answer = ts.check(tmp_path / "q.sens", backend="native", time_limit=15)["q"].to_dict()
    assert answer["verdict"] in {"found", "unknown"}
    assert any("z3" in note and "pip install z3-solver" in note for note in answer["notes"])
