"""A step after an answer never costs the answer; a record names everything that its answer rests on.
(Third review: 5, 19, 20, P10, P14.)

Third set, fault 5: an error of treesens itself in one question or step of a study never costs another answer.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import treesens as ts
from tests.corpus import boosted, regressed
from treesens.cli import group
from treesens.compiler.result import Proof, Result, Verdict
from treesens.errors import InternalError
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


DATA = ("--data", "d.csv", "--label", "label")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lost")
    rng = np.random.default_rng(0)
    table = rng.integers(0, 3, (60, 3)).astype(np.float32)
    label = (table[:, 0] + table[:, 1] > 1).astype(int)
    for name, rounds in (("m", 5), ("n", 4)):
        boosted(table, label, rounds, 2, names=["f0", "f1", "f2"], path=folder / f"{name}.json")
    rows = np.column_stack([table, label])
    np.savetxt(folder / "d.csv", rows, fmt="%d", delimiter=",", header="f0,f1,f2,label", comments="")
    return folder


def every_second(real: Callable[..., Any]) -> Callable[..., Any]:
    """The real step, but for the first, the third, .. call of it."""
    calls = [0]

    def planted(*args: Any, **named: Any) -> Any:
        calls[0] += 1
        if calls[0] % 2:
            raise IndexError("planted")
        return real(*args, **named)

    return planted


CASES = [
    ("audit", ("m.json", *DATA, "--gap", "0.1"), "treesens.extensions.studies.audit_search.SetAudit.run"),
    ("audit", ("m.json", *DATA, "--gap", "0.1,0.2"), "treesens.extensions.studies.audit_search.SetAudit._answer"),
    ("audit", ("m.json", *DATA, "--gap", "0.1"), "treesens.extensions.studies.audit_search.SetAudit._swing"),
    (
        "audit",
        ("m.json", *DATA, "--gap", "0.1", "--measure", "cells"),
        "treesens.extensions.studies.count_search.ShareSearch",
    ),
    ("gap", ("m.json",), "treesens.extensions.studies.optima.compile_query"),
    ("range", ("m.json",), "treesens.extensions.studies.optima.answer"),
    ("count", ("m.json", "--gap", "0.1", "--measure", "cells"), "treesens.extensions.studies.count_search.ShareSearch"),
    ("robust", ("m.json", *DATA, "--rows", "0,1,2"), "treesens.extensions.studies.robust_search.nearest_input"),
    ("why", ("m.json", *DATA, "--row", "0,1,2"), "treesens.extensions.studies.why_search.reason_of"),
    ("sets", ("m.json", "--gap", "0.1"), "treesens.extensions.studies.sets_search.answer"),
    ("diff", ("m.json", "n.json", *DATA), "treesens.extensions.studies.optima.answer"),
]


def answers_of(record: dict[str, Any]) -> list[dict[str, Any]]:
    """The answers in a record of any of these commands."""
    if "scores" in record:
        return list(record["scores"])
    found = record["results"] if "results" in record else record["rows"]
    return [part for one in found for part in (one["open"] + one["flip"] if "open" in one else [one])]


@pytest.mark.parametrize(
    ("command", "arguments", "step"), CASES, ids=[f"{c} {s.rpartition('.')[2]}" for c, _, s in CASES]
)
def test_a_failing_question_costs_no_other(
    command: str, arguments: tuple[str, ...], step: str, made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(made)
    place, _, name = step.rpartition(".")
    from pkgutil import resolve_name

    owner = resolve_name(place if "SetAudit" not in place else "treesens.extensions.studies.audit_search:SetAudit")
    monkeypatch.setattr(owner, name, every_second(getattr(owner, name)))
    outcome = CliRunner().invoke(group, [command, *arguments, "--json"], standalone_mode=False)
    assert outcome.exception is None
    assert outcome.return_value == 6, "an internal error, although the other answers stand"
    shown = outcome.stdout[outcome.stdout.index("{") :]
    told = [json.dumps(one) for one in answers_of(json.loads(shown))]
    lost = [text for text in told if "error[X001]" in text]
    assert lost
    assert all("IndexError: planted" in text for text in lost)
    assert len(lost) < len(told), "the others have their answers"


def test_an_unforeseen_error_of_a_call_is_typed(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted = every_second(ts.load)
    monkeypatch.setattr("treesens.extensions.studies.gap_search.align_table", planted)
    import pandas as pd

    with pytest.raises(InternalError, match="IndexError: planted") as raised:
        ts.gap(made / "m.json", pd.read_csv(made / "d.csv"), label="label")
    assert isinstance(raised.value.__cause__, IndexError)
    with pytest.raises(TypeError, match="no argument `nonsense`"):
        ts.gap(made / "m.json", nonsense=3)  # type: ignore[call-arg]
