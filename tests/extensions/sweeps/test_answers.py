"""What a sweep answers: the same as `check`, with and without sharing, again from its journal."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xgboost

from tests.commands.test_command_line import run
from tests.corpus import margins_of
from tests.extensions.sweeps.conftest import QUESTIONS, SPEC
from treesens.binder.file import bind
from treesens.compiler.base.option_kinds import Door, declared
from treesens.extensions.sweeps.commands.sweep import told
from treesens.extensions.sweeps.run import Summary
from treesens.extensions.sweeps.settings import Settings
from treesens.extensions.sweeps.spec import read_spec
from treesens.extensions.sweeps.worker import Task, answer_task, ship
from treesens.grammar.parsing.parser import parse
from treesens.records.journal import key_of
from treesens.solve.options import Options
from treesens.solve.question import answer


def records(text: str) -> dict[tuple[str, str], dict[str, Any]]:
    rows = [json.loads(line) for line in text.splitlines()]
    return {(row["document"], row["query"]): row for row in rows}


def test_verdicts_are_those_of_every_question_asked_by_itself(folder: Path) -> None:
    done = run(folder, "sweep", "sweep.toml", "-j", "2", "--json")
    assert done.returncode == 0, done.stderr
    shared = records(done.stdout)
    assert len(shared) == QUESTIONS
    assert sum(row["implied_by"] is not None for row in shared.values()) > QUESTIONS // 4
    for document in {document for document, _ in shared}:
        text = next(q.document.text for q in read_spec(folder / "sweep.toml").questions if q.document.name == document)
        for question in bind(parse(text, document), folder).queries:
            alone = answer(question.query, Options(backend="cpsat" if "age+" in question.name else "native"))
            row = shared[document, question.name]
            assert row["verdict"] == str(alone.verdict), (document, question.name, row["reason"])
            assert set(row["varied"]) == set(question.query.varied)


FORMS = """\
model m from "m1.json"
feature age: integer in [18, 80]
feature income: real in [0, 100]
feature debt: real in [0, 100]
feature children: integer in [0, 9]
feature sex: integer in [0, 1]
query swing: find a, b in m such that a = b except sex maximize margin(a) - margin(b)
query rise: find a, b in m such that a = b except age; margin(a) <= 0.5; margin(b) > 0.5 minimize b.age - a.age
query nearest: find a, b in m such that margin(a) >= 0.2; margin(b) <= -0.2 minimize distance(a, b, l1)
query changes: find a, b in m such that margin(a) >= 0.2; margin(b) <= -0.2 minimize changes(a, b)
"""


@pytest.mark.fault
def test_a_sweep_answers_every_form_as_check_does(folder: Path) -> None:
    """Sweeps named the engine's pipeline, and so left out every method that is not for named pipelines."""
    (folder / "q.sens").write_text(FORMS)
    swept = records(run(folder, "sweep", "q.sens", "--backend", "native", "--json").stdout)
    answers = json.loads(run(folder, "check", "q.sens", "-b", "native", "--json").stdout)["results"]
    for alone in answers:
        (row,) = [row for (_, name), row in swept.items() if name == alone["query"]]
        for key in ("verdict", "proof", "pipeline", "backend"):
            assert row.get(key) == alone.get(key), (alone["query"], key)
        assert row["objective"]["value"] == pytest.approx(alone["objective"]["value"], abs=1e-5)


def test_without_sharing_every_question_is_asked_and_the_verdicts_are_the_same(folder: Path) -> None:
    (folder / "sweep.toml").write_text(SPEC.replace('"m*.json"', '"m1.json"'))
    shared = run(folder, "sweep", "sweep.toml", "--journal", "shared.sqlite", "--json")
    alone = run(folder, "sweep", "sweep.toml", "--journal", "alone.sqlite", "--no-share", "--json")
    one, other = records(shared.stdout), records(alone.stdout)
    assert {k: r["verdict"] for k, r in one.items()} == {k: r["verdict"] for k, r in other.items()}
    assert all(row["implied_by"] is None for row in other.values())
    assert f"{QUESTIONS // 2} asked" in alone.stderr


def test_a_second_run_answers_from_the_journal(folder: Path) -> None:
    first = run(folder, "sweep", "sweep.toml", "--report", "out.csv", "--json")
    again = run(folder, "sweep", "sweep.toml", "--json")
    assert again.stdout == first.stdout
    assert f"0 asked, {QUESTIONS} from the journal\n" in again.stderr
    assert len((folder / "out.csv").read_text().splitlines()) == QUESTIONS + 1
    with sqlite3.connect(folder / "sweep.sqlite") as journal:
        runs = Counter(row[0] for row in journal.execute("SELECT run FROM answers"))
    assert dict(runs) == {1: QUESTIONS}


def test_a_changed_model_is_asked_again(folder: Path) -> None:
    (folder / "sweep.toml").write_text(SPEC.replace('"m*.json"', '"m1.json"'))
    run(folder, "sweep", "sweep.toml")
    (folder / "m1.json").write_bytes((folder / "m2.json").read_bytes())
    done = run(folder, "sweep", "sweep.toml")
    assert done.returncode == 0, done.stderr
    assert "from the journal" not in done.stderr


def test_another_backend_is_another_question_and_agrees(folder: Path) -> None:
    (folder / "sweep.toml").write_text('models = "m1.json"\nmargins = [0.5, 1]\nfeatures = ["age", "sex"]\n')
    engine = run(folder, "sweep", "sweep.toml", "--json")
    solver = run(folder, "sweep", "sweep.toml", "--backend", "cpsat", "--json")
    assert "from the journal" not in solver.stderr
    verdicts = [{k: r["verdict"] for k, r in records(done.stdout).items()} for done in (engine, solver)]
    assert verdicts[0] == verdicts[1]
    # Where the engine's bound refutes a question before a solver is asked, the record says so.
    answered = records(solver.stdout).values()
    assert {r["backend"] for r in answered} <= {"cpsat", "compiler", "native"}
    assert all((r["backend"] == "native") == ("rests_on" in r and not r["attempts"]) for r in answered)


def test_another_tolerance_is_another_question(folder: Path) -> None:
    (folder / "sweep.toml").write_text('models = "m1.json"\nmargins = [0.5]\nfeatures = ["age", "sex"]\n')
    run(folder, "sweep", "sweep.toml")
    assert "2 from the journal" in run(folder, "sweep", "sweep.toml", "--tolerance", "1e-6").stderr
    assert "from the journal" not in run(folder, "sweep", "sweep.toml", "--tolerance", "0").stderr
    (folder / "sweep.toml").write_text("tolerance = 0\n" + (folder / "sweep.toml").read_text())
    assert "2 from the journal" in run(folder, "sweep", "sweep.toml").stderr
    (folder / "sweep.toml").write_text("tolerance = 1.5\n")
    assert "a number from 0" in run(folder, "sweep", "sweep.toml").stderr


def test_a_sens_file_with_for_each_is_a_spec(folder: Path) -> None:
    text = 'model m from "m1.json"\nquery alone: for each f in features: sensitive m to f margin 0.5 expect none\n'
    (folder / "q.sens").write_text(text)
    done = run(folder, "sweep", "q.sens", "--json")
    assert done.returncode == 10, done.stderr
    checked = json.loads(run(folder, "check", "q.sens", "--json").stdout)["results"]
    assert {r["query"]: r["verdict"] for r in checked} == {
        q: r["verdict"] for (_, q), r in records(done.stdout).items()
    }


def test_classes_sets_and_random_sets(folder: Path) -> None:
    (folder / "sweep.toml").write_text(
        'models = "three.json"\nclasses = "all"\nfactors = [1, 1.5]\nsets = [["age", "sex", "debt"]]\n'
        "random = {size = 2, count = 3}\n"
    )
    done = run(folder, "sweep", "sweep.toml", "--json")
    assert done.returncode == 0, done.stderr
    rows = records(done.stdout)
    sizes = Counter(len(row["varied"]) for row in rows.values())
    assert sizes[3] == 12
    assert 12 <= sizes[2] <= 36
    assert sizes[2] % 12 == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("models = [", "sweep.toml"),
        ("margins = [0.5]\n", "names no models"),
        ('models = "m1.json"\nmargin = [0.5]\n', "sweep.toml:2: a sweep has no `margin`"),
        ('models = "none*.json"\nmargins = [0.5]\n', "no file matches"),
        ('models = "gone.json"\nmargins = [0.5]\n', "gone.json"),
        ('models = "m1.json"\nmargins = [0.5, -1]\n', "sweep.toml:2: `-1` is not a positive number"),
        ('models = "m1.json"\nmargins = [0.5]\nfeatures = ["agee"]\n', "did you mean `age`"),
        ('models = "m1.json"\nmargins = [0.5]\npairs = [["age"]]\n', "sweep.toml:3"),
        ('models = "m1.json"\nmargins = [0.5]\nrandom = {size = 9, count = 1}\n', "5 features only"),
        ('models = "m1.json"\nmargins = [0.5]\nrandom = 3\n', "{size = 3, count = 20}"),
        ('models = "m1.json"\nmargins = [0.5]\nclasses = [[0, 7]]\n', "no class 7"),
        ('models = "m1.json"\ngaps = [0.7]\n', "below 0.5"),
        ('models = "m1.json"\nmargins = [0.5]\ntime_limit = "long"\n', "sweep.toml:3: `time_limit`"),
        ('models = "m1.json"\nmargins = [0.5]\nbackend = "cplex"\n', "cplex"),
        ('models = "m1.json"\nmargins = [0.5]\ndata = "gone.csv"\n', "gone.csv"),
        ('models = "m1.json"\nsweep = 3\n', "[[sweep]]"),
    ],
)
def test_mistakes_in_a_spec_are_errors_with_a_place_and_nothing_runs(folder: Path, text: str, words: str) -> None:
    (folder / "sweep.toml").write_text(text)
    done = run(folder, "sweep", "sweep.toml")
    assert done.returncode == 2, done.stderr
    assert words in done.stderr
    assert done.stdout == ""
    assert not (folder / "sweep.sqlite").exists()


def test_executors_and_journals_that_do_not_work_are_errors(folder: Path) -> None:
    assert "dask://HOST" in run(folder, "sweep", "sweep.toml", "--executor", "slurm://here").stderr
    assert run(folder, "sweep", "sweep.toml", "--executor", "dask://127.0.0.1:8786", "-j", "2").returncode == 1
    (folder / "text.sqlite").write_text("this is no database, " * 100)
    done = run(folder, "sweep", "sweep.toml", "--journal", "text.sqlite")
    assert done.returncode == 2
    assert "not a journal" in done.stderr
    with sqlite3.connect(folder / "sweep.sqlite.lock", isolation_level=None) as other:
        other.execute("BEGIN EXCLUSIVE")
        done = run(folder, "sweep", "sweep.toml")
    assert done.returncode == 1
    assert "another run is writing" in done.stderr


def test_the_total_limit_leaves_questions_for_the_next_run(folder: Path) -> None:
    done = run(folder, "sweep", "sweep.toml", "--total-limit", "0.001")
    assert done.returncode == 5, done.stderr
    assert f"{QUESTIONS} left" in done.stderr
    assert run(folder, "sweep", "sweep.toml").returncode == 0


def test_check_with_several_jobs_says_what_it_says_with_one(folder: Path) -> None:
    text = 'model m from "m1.json"\nquery q: for each f in features: sensitive m to f margin 0.5\n'
    (folder / "q.sens").write_text(text)
    booster = xgboost.Booster(model_file=folder / "m1.json")
    told = []
    for jobs in ("1", "2"):
        done = run(folder, "check", "q.sens", "-b", "native", "--jobs", jobs, "--json")
        assert done.returncode == 0, done.stderr
        results = json.loads(done.stdout)["results"]
        told.append([(r["query"], r["verdict"], r["proof"]) for r in results])
        # Which pair is found depends on how far each method comes in its share of the time.
        found = [r["points"] for r in results if r["verdict"] == "found"]
        assert found
        for points in found:
            rows = np.array([[points[p][name] for name in booster.feature_names or ()] for p in ("a", "b")])
            one, two = margins_of(booster, rows).tolist()
            assert one >= 0.5
            assert two <= -0.5
    assert told[0] == told[1]
    assert len(told[0]) == 5


def test_bench_with_several_jobs_gives_the_same_verdicts(folder: Path) -> None:
    rows = [{"model": "m1", "feature": f, "margin": m} for f in range(5) for m in (0.5, 1.0)]
    (folder / "list.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    told = []
    for jobs in ("1", "2"):
        out = f"out{jobs}.jsonl"
        done = run(folder, "bench", "list.jsonl", "--models", ".", "--jobs", jobs, "-o", out, "--json")
        assert done.returncode == 0, done.stderr
        told.append({r["key"]: r["verdict"] for r in map(json.loads, (folder / out).read_text().splitlines())})
    assert told[0] == told[1]
    assert len(told[0]) == 10


def test_processes_that_are_kept_find_files_after_the_folder_was_changed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker of an earlier sweep began in another folder: what travels to it does not depend on that."""
    monkeypatch.chdir(folder)
    document = read_spec(Path("sweep.toml")).questions[0].document
    monkeypatch.chdir("/")
    assert not Path(document.base).is_absolute()
    monkeypatch.chdir(folder)
    shipment = ship(document, remote=False)
    monkeypatch.chdir("/")
    outcome = answer_task(shipment, Task("k", document.name, "none of these", Options()))
    assert "has no question" in outcome.failure


CHANGED = {
    "backend": "z3", "pipeline": "independent", "threads": 2, "memory_limit": 1 << 30, "seed": 1, "tolerance": 0.5,
    "absolute_tolerance": 0.5, "replay": "emulated", "certificates": "proofs", "require_certificate": True,
    "time_limit": 1.0, "total_limit": 1.0, "share": False, "retry": True, "confirm": "z3", "core": True, "regions": False,
    "check_each": "cpsat", "reproducer": "folder",
}  # fmt: skip
"""Every setting, with a value that is not its default."""
UNKEYED = {"time_limit", "total_limit", "share", "retry", "confirm", "core", "regions", "reproducer"}
"""`check` adds what matters of these to its own keys."""


def test_every_setting_that_can_change_an_answer_is_part_of_its_key() -> None:
    plain = Settings()
    assert set(CHANGED) | {"optimal"} == {one.field for one in declared(Settings, ~Door(0))}
    for name, value in CHANGED.items():
        changed = replace(plain, **{name: value})
        assert getattr(changed, name) != getattr(plain, name)
        kept = key_of("question", changed) == key_of("question", plain)
        assert kept == (name in UNKEYED), name
        if name != "certificates":
            one = replace(plain, certificates="proofs")
            assert kept == (key_of("question", replace(one, **{name: value})) == key_of("question", one)), name
    # The engine's own pipeline by name leaves the tree path out.
    assert key_of("question", replace(plain, pipeline="native")) != key_of("question", plain)


def test_options_of_check_and_bench_reach_the_key() -> None:
    alike = {one.field for one in declared(Options, ~Door(0))} - {"optimal"}
    assert set(CHANGED) - alike == {"total_limit", "share", "retry"}
    for name in alike:
        asked = replace(Options(backend="native"), **{name: CHANGED[name]})
        assert key_of("question", asked) == key_of("question", replace(Settings(), **{name: CHANGED[name]})), name
    exact = Options(backend="native", optimal=True)
    assert key_of("question", exact) == key_of("question", Options(backend="native", tolerance=0.0))


@pytest.mark.parametrize("failed", [0, 3])
def test_a_summary_says_how_failed_questions_are_asked_again(failed: int) -> None:
    said = told(Summary(questions=9, asked=9, failed=failed))
    assert ("--retry repeats these" in said) == (failed > 0)
