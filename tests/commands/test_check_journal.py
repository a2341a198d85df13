"""`check --journal`: what has not changed is answered from the journal, verified again; what has changed is asked anew."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tests.commands.conftest import Ran
from tests.extensions.studies.grids import two_classes
from tests.trials import THOROUGH
from treesens.commands.check_journal import AnswerMemory
from treesens.commands.common import load_file
from treesens.commands.outputs import open_journal
from treesens.compiler.base.tolerance import RELATIVE
from treesens.compiler.result import Result, Verdict
from treesens.records.answers import record
from treesens.records.kept import from_json, to_json
from treesens.report.show import show_result
from treesens.solve.options import Options
from treesens.solve.question import answer_question

Run = Callable[..., Ran]
QUESTIONS = """model m from "m.json"
data d from "d.csv" label "label"
domain from d
query pair: sensitive m to p gap 0.05
query near: sensitive m to p gap 0.05 near d using distance
query best:
  find a, b such that
    a = b except p
  maximize margin(a) - margin(b)
query three:
  find a such that
    prob(a) >= 0.5
  minimize distance(a, row 3 of d, l1)
  top 3
query never: sensitive m to p gap 0.49
query many: count rows of d as a such that prob(a) >= 0.5
query why: explain row 2 of d without q
query clash: find a such that prob(a) >= 0.6 and prob(a) <= 0.4
"""
OF_A_RUN = ("seconds", "attempts", "size", "command", "journal")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    trained = two_classes("xgboost")
    trained.estimator.save_model(tmp_path / "m.json")
    trained.frame.assign(label=0).to_csv(tmp_path / "d.csv", index=False)
    (tmp_path / "q.sens").write_text(QUESTIONS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def answers(run: Run, *options: str, file: str = "q.sens") -> dict[str, dict[str, Any]]:
    ran = run("check", file, "--json", "--journal", "j.sqlite", "-t", "20", *options)
    assert ran.code == 0, ran.err
    return {result["query"]: result for result in ran.record["results"]}


def from_journal(found: dict[str, dict[str, Any]]) -> set[str]:
    return {name for name, result in found.items() if "journal" in result}


def test_the_second_run_says_the_same_and_where_it_is_from(folder: Path, treesens: Run) -> None:
    fresh, again = answers(treesens), answers(treesens)
    assert from_journal(fresh) == set()
    assert from_journal(again) == set(fresh) == {"pair", "near", "best", "three", "never", "many", "why", "clash"}
    for name, result in again.items():
        for field in (*fresh[name], *result):
            if field not in OF_A_RUN:
                assert result.get(field) == fresh[name].get(field), (name, field)
        assert result["journal"]["verified_again"] == (result["points"] is not None)
    assert fresh["never"]["verdict"] == "none"
    told = treesens("check", "q.sens", "never", "--journal", "k.sqlite").out
    again_told = treesens("check", "q.sens", "never", "--journal", "k.sqlite").out
    assert "journal" not in told
    assert "from the journal of " in again_told
    assert "not proved again" in again_told


def test_names_comments_and_layout_change_nothing(folder: Path, treesens: Run) -> None:
    answers(treesens)
    shutil.copy("m.json", "renamed.json")
    Path("other.sens").write_text("# by somebody else\n" + QUESTIONS.replace("m.json", "renamed.json"))
    assert len(from_journal(answers(treesens, file="other.sens"))) == 8
    assert len(from_journal(answers(treesens, "--jobs", "2", "-t", "19"))) == 8


@pytest.mark.parametrize("what", ["model", "data", "domain", "question"])
def test_what_has_changed_is_asked_anew(folder: Path, treesens: Run, what: str) -> None:
    answers(treesens)
    text = QUESTIONS
    if what == "model":
        model = json.loads(Path("m.json").read_text())
        trees = model["learner"]["gradient_booster"]["model"]["trees"]
        leaf = trees[0]["left_children"].index(-1)
        trees[0]["split_conditions"][leaf] += 0.125
        Path("m.json").write_text(json.dumps(model))
    elif what == "data":
        Path("d.csv").write_text(Path("d.csv").read_text() + "1,1,1,0\n")
    elif what == "domain":
        text = text.replace("domain from d", "feature q: integer in [0, 4]\ndomain from d")
    else:
        text = text.replace("gap 0.05\n", "gap 0.051\n", 1)
    Path("q.sens").write_text(text)
    assert from_journal(answers(treesens)) == (set() if what != "question" else set(answers(treesens)) - {"pair"})


@pytest.mark.parametrize(
    "option", ["--backend native", "--seed 1", "--tolerance 0.1", "--pipeline kant", "--threads 2", "--confirm z3"]
)
def test_other_options_are_another_question(folder: Path, treesens: Run, option: str) -> None:
    answers(treesens)
    assert from_journal(answers(treesens, *option.split())) == set()


def change(name: str, how: Callable[[dict[str, Any]], None]) -> None:
    """Changes the answer to a question in the journal."""
    with sqlite3.connect("j.sqlite") as database:
        (text,) = database.execute("SELECT record FROM answers WHERE question = ?", (name,)).fetchone()
        record = json.loads(text)
        how(record["result"])
        database.execute("UPDATE answers SET record = ? WHERE question = ?", (json.dumps(record), name))
    database.close()


def test_a_pair_that_is_none_is_not_believed(folder: Path, treesens: Run) -> None:
    fresh = answers(treesens)
    change("pair", lambda kept: kept.update(raw_points={"a": kept["raw_points"]["b"], "b": kept["raw_points"]["a"]}))
    change("best", lambda kept: kept["objective"].update(value=kept["objective"]["value"] + 0.5))
    change("three", lambda kept: kept["answers"][2].update(raw_points={"a": [9.0, 9.0, 9.0]}))
    again = answers(treesens)
    assert from_journal(again) == set(fresh) - {"pair", "best", "three"}
    for name in ("pair", "best", "three"):
        assert again[name]["points"] == fresh[name]["points"]


@pytest.mark.parametrize(
    "how",
    [
        lambda kept: kept.update(raw_points={"a": [1.0], "b": [1.0]}),
        lambda kept: kept.update(verdict="perhaps"),
        lambda kept: kept.pop("reason"),
        lambda kept: kept.update(raw_points=None),
        lambda kept: kept.update(region={"boxes": [[[10**6]] * 3] * 2, "shared": []}),
    ],
)
def test_a_damaged_journal_is_told(folder: Path, treesens: Run, how: Callable[[dict[str, Any]], None]) -> None:
    answers(treesens)
    change("pair", how)
    ran = treesens("check", "q.sens", "--json", "--journal", "j.sqlite", "-t", "20")
    assert ran.code == 2
    assert "D001" in ran.err
    assert "`pair` in the journal is damaged" in ran.err


def broken(part: Any) -> Iterator[Any]:
    """Copies of JSON in which one value, at any depth, is of another type or missing."""
    yield from ([], "x", 5, 1.5, {}, None, [None], True)
    for place in part if isinstance(part, dict) else range(min(3, len(part))) if isinstance(part, list) else ():
        for other in broken(part[place]):
            copy: Any = list(part) if isinstance(part, list) else dict(part)
            copy[place] = other
            yield copy


def test_no_damage_of_a_stored_answer_is_an_internal_error(folder: Path) -> None:
    """Each damaged answer is refused, rejected, or a result that can be printed and stored."""
    read = 0
    for question in load_file(folder / "q.sens").queries:
        result = answer_question(question, Options(time_limit=20), Options(time_limit=20).budget())
        whole = json.loads(json.dumps(to_json(question.query, result)))
        # Of every list, the first three values are tried; a stride of 5 meets each of the eight replacements.
        for kept in islice(broken(whole), None, None, 1 if THOROUGH else 5):
            try:
                again = from_json(question.query, kept, 0.0, None)
            except (ValueError, KeyError, TypeError, IndexError, OverflowError):
                continue
            if again is not None:
                read += 1
                json.dumps(record(question.query, again), allow_nan=False)
                show_result(question, again)
    assert read > 50


def test_what_is_open_is_kept_for_its_time_limit_alone(folder: Path, treesens: Run) -> None:
    answers(treesens)
    with sqlite3.connect("j.sqlite") as database:
        database.execute("DELETE FROM answers WHERE question != 'pair'")
    database.close()
    bound = load_file(Path("q.sens"))
    options = Options(time_limit=2.0, regions=True, tolerance=RELATIVE)
    with open_journal(Path("j.sqlite")) as journal:
        memory = AnswerMemory(journal, options)
        memory.keep(Path("q.sens"), bound, bound["best"], Result("best", Verdict.UNKNOWN, "time limit"))
        memory.keep(Path("q.sens"), bound, bound["near"], Result("near", Verdict.UNKNOWN, "error[X001]: broken"))
        memory.keep(Path("q.sens"), bound, bound["many"], Result("many", Verdict.UNKNOWN, "interrupted"))
        known = memory.known(Path("q.sens"), bound, bound.queries)
    assert {name: result.verdict for name, result in known.items()} == {"pair": "found", "best": "unknown"}
    assert from_journal(answers(treesens)) == {"pair"}


def test_certificates_are_made_by_a_search(folder: Path, treesens: Run) -> None:
    ran = treesens("check", "q.sens", "--journal", "j.sqlite", "--certificate", "proofs")
    assert ran.code == 1
    assert "leave out --journal or --certificate" in ran.err
