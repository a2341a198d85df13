"""A feature may have any name: what asks about it without a text of the user's does not fail because of the name.

Fault: `gap`, `audit` and a sweep's list wrote their questions as text, with backquotes around names; a backquote or a line
break in a name ended in an error about a text that nobody had written.
"""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest

import treesens
from tests.command import run_command
from tests.corpus import boosted
from treesens.grammar.tree import ast

NAMES = ("we`ird", "a{b}\nc", '"quoted" `', "hours<[40]")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`m.json` decides by each of its features, all of which are in [0, 1]; `d.parquet` has rows on both sides."""
    rng = np.random.default_rng(3)
    rows = rng.random((300, len(NAMES))).astype(np.float32)
    path = tmp_path_factory.mktemp("names")
    boosted(rows, rows.sum(1) > 2, 4, 2, names="abcd", path=path / "m.json", base_score=0.5, eta=1.0)
    model = json.loads((path / "m.json").read_text())
    model["learner"]["feature_names"] = NAMES
    (path / "m.json").write_text(json.dumps(model))
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({name: rows[:30, i] for i, name in enumerate(NAMES)})
    pytest.importorskip("pyarrow.parquet").write_table(table, path / "d.parquet")
    return path


def run(folder: Path, *arguments: str) -> str:
    done = run_command(folder, *arguments, timeout=300)
    assert done.returncode in (0, 5), done.stderr
    assert "error" not in done.stderr
    assert "<built>" not in done.stderr
    return done.stdout


def test_gap(folder: Path) -> None:
    found = json.loads(run(folder, "gap", "m.json", "--data", "d.parquet", "-t", "5", "--json"))["results"]
    assert [r["varied"] for r in found] == [[name] for name in NAMES]
    assert all(r["verdict"] == "found" for r in found)


def test_replay_in_the_library(folder: Path) -> None:
    """Fault 21: `<`, `[` and `]`, which XGBoost refuses in the names of a matrix, were a traceback."""
    question = 'model m from "m.json"\nquery q: sensitive m to `hours<[40]` margin 0.1\n'
    (folder / "replay.sens").write_text(question)
    (answer,) = json.loads(run(folder, "check", "replay.sens", "--replay", "library", "--json"))["results"]
    assert (answer["verdict"], answer["replay"]) == ("found", "library")


def test_audit(folder: Path) -> None:
    text = run(folder, "audit", "m.json", "--data", "d.parquet", "--margin", "0.1", "-t", "5", "--json")
    records = json.loads(text)["results"]
    assert [r["varied"] for r in records] == [[name] for name in NAMES]
    assert {r["verdict"] for r in records} == {"found"}


def test_sweep(folder: Path) -> None:
    (folder / "sweep.toml").write_text('[[sweep]]\nmodels = ["m.json"]\ndata = "d.parquet"\nmargins = [0.1]\n')
    for jobs in ("1", "2"):  # two: questions travel to other processes
        arguments = ("--jobs", jobs, "-t", "5", "--journal", f"{jobs}.sqlite", "--json")
        answers = [json.loads(line) for line in run(folder, "sweep", "sweep.toml", *arguments).splitlines()]
        assert sorted(n for line in answers for n in line["varied"]) == sorted(NAMES)
        assert {line["verdict"] for line in answers} == {"found"}


def test_a_list_of_questions(folder: Path) -> None:
    items = [{"model": "m", "feature": name, "margin": 0.1} for name in NAMES]
    (folder / "list.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    arguments = ("bench", "list.jsonl", "--models", ".", "-o", "answers.jsonl", "-b", "native", "-t", "5")
    run(folder, *arguments)
    answers = [json.loads(line) for line in (folder / "answers.jsonl").open()]
    assert [(a["features"], a["verdict"]) for a in answers] == [([name], "found") for name in NAMES]


@pytest.mark.fault
def test_a_journal_keeps_names_that_are_not_unicode(folder: Path, tmp_path: Path) -> None:
    """Half of a surrogate pair, which JSON can write and UTF-8 cannot, ended in an internal error."""
    model = json.loads((folder / "m.json").read_text())
    model["learner"]["feature_names"] = ["\ud800", *NAMES[1:]]
    (tmp_path / "m.json").write_text(json.dumps(model))
    text = 'model m from "m.json"\nquery q: for each f in features: sensitive m to f margin 0.1\n'
    (tmp_path / "q.sens").write_text(text)
    for _ in range(2):
        asked = ("check", "q.sens", "-t", "5", "--journal", "check.sqlite", "--json")
        found = json.loads(run(tmp_path, *asked))["results"]
        swept = run(tmp_path, "sweep", "q.sens", "-t", "5", "--jobs", "1", "--json").splitlines()
        assert [r["varied"] for r in found] == [json.loads(line)["varied"] for line in swept]
        assert {r["verdict"] for r in found} == {json.loads(line)["verdict"] for line in swept} == {"found"}
    assert all("journal" in r for r in found)


def test_python(folder: Path) -> None:
    model = folder / "m.json"
    for name in NAMES:
        answer = treesens.sensitivity(model, vary=[name], margin=0.1, data=folder / "d.parquet")
        assert str(answer.verdict) == "found"
        a, b = treesens.query.points("a", "b")
        question = treesens.query.find(a, b).such_that(
            a == b.except_(name), a[name] >= 0.5, b[name] <= 0.5, a.margin() > b.margin()
        )
        assert str(question.answer(model).verdict) == "found"
        assert repr(question)


def test_nodes_travel_between_processes() -> None:
    node = ast.File((ast.Query(ast.Name("q"), ast.Sensitive(None, ast.Features((ast.Name(NAMES[1]),)))),))
    assert pickle.loads(pickle.dumps(node)) == node
