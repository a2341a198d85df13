"""`treesens bench` on published instances where they are there, and its bookkeeping on a model trained here."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import numpy as np
from benchmarks.published import VERDICTS

from tests.commands.test_command_line import STUMP, run
from tests.corpus import boosted
from tests.data.settings import BENCH, needs_bench


def test_a_run_is_resumed_and_contradictions_are_errors(tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text(json.dumps(STUMP))
    instances = [
        {"model": "m", "feature": 1, "margin": 0.5, "verdict": "found"},
        {"model": "m", "feature": "age", "margin": 0.5},
    ]
    (tmp_path / "list.jsonl").write_text("".join(json.dumps(row) + "\n" for row in instances))
    arguments = (
        "bench",
        "list.jsonl",
        "--models",
        ".",
        "-b",
        "native,z3",
        "-o",
        "out.jsonl",
        "--plot",
        "plot.svg",
        "--json",
    )
    done = run(tmp_path, *arguments)
    assert done.returncode == 0, done.stderr
    first = (tmp_path / "out.jsonl").read_text()
    assert [json.loads(line)["verdict"] for line in first.splitlines()] == ["found", "found", "none", "none"]
    assert (tmp_path / "plot.svg").read_text().startswith("<svg")
    # The results are a report of the journal: whatever became of the file, it is written again, and nothing is asked twice.
    (tmp_path / "out.jsonl").write_text("\n".join(first.splitlines()[:2]) + '\n{"cut')
    assert run(tmp_path, *arguments).returncode == 0
    assert (tmp_path / "out.jsonl").read_text() == first
    # An answer that is not there is asked, and comes last.
    with sqlite3.connect(tmp_path / "out.jsonl.sqlite") as db:
        assert db.execute("DELETE FROM answers WHERE key IN (SELECT key FROM answers LIMIT 1)").rowcount == 1
    assert run(tmp_path, *arguments).returncode == 0
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    assert len(lines) == 4
    assert len(set(lines[:3]) & set(first.splitlines())) == 3
    (tmp_path / "list.jsonl").write_text(json.dumps({**instances[1], "verdict": "found"}) + "\n")
    done = run(tmp_path, *arguments)
    assert done.returncode == 6
    assert "contradiction" in done.stderr


def test_a_line_about_all_classes_is_several_questions(tmp_path: Path) -> None:
    x = np.random.default_rng(0).random((60, 2))
    boosted(x, np.arange(60) % 3, 2, 6, path=tmp_path / "m.json", num_class=3)
    arguments = ("bench", "list.jsonl", "--models", ".", "-b", "native", "-o", "out.jsonl")
    (tmp_path / "list.jsonl").write_text('{"model": "m", "feature": 0, "margin": 0.5}\n')
    done = run(tmp_path, *arguments)
    assert done.returncode == 2
    assert "about all classes of m, which are several questions" in done.stderr
    assert 'name two of them in each line: "from": 0, "to": 1, "factor": 1.5' in done.stderr
    (tmp_path / "list.jsonl").write_text('{"model": "m", "feature": 0, "from": 0, "to": 1, "factor": 1.5}\n')
    done = run(tmp_path, *arguments)
    assert done.returncode == 0, done.stderr


def test_results_without_their_journal_are_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text(json.dumps(STUMP))
    (tmp_path / "list.jsonl").write_text(json.dumps({"model": "m", "feature": 1, "margin": 0.5}) + "\n")
    (tmp_path / "out.jsonl").write_text("{}\n")
    done = run(tmp_path, "bench", "list.jsonl", "--models", ".", "-o", "out.jsonl")
    assert done.returncode == 1
    assert "without their journal" in done.stderr
    assert (tmp_path / "out.jsonl").read_text() == "{}\n"


@needs_bench
def test_published_verdicts_are_reproduced(tmp_path: Path) -> None:
    """Forty published instances; the whole list is in benchmarks/RESULTS.md."""
    done = run(
        tmp_path,
        *("bench", str(VERDICTS), "--models", str(BENCH / "models"), "-b", "native"),
        *("--sample", "40", "-t", "30", "-o", "out.jsonl", "--json"),
    )
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(done.stdout)["summary"]
    assert row["solved"] == row["instances"] == 40
