"""Several runs in `treesens bench`: seeds, repetitions, logs, modules, and contradictions between runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.command import run_command
from treesens.extensions.sweeps.instances import contradictions
from treesens.extensions.sweeps.report import summary

SEVERAL = ("--seeds", "0,5", "--repeat", "2")


def records_of(folder: Path, *arguments: str, code: int = 0) -> list[dict[str, Any]]:
    done = run_command(folder, "bench", "list.jsonl", "--models", ".", "-o", "out.jsonl", *arguments)
    assert done.returncode == code, done.stderr
    return [json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()]


def listed(folder: Path, *instances: dict[str, Any]) -> None:
    (folder / "list.jsonl").write_text("".join(json.dumps(one) + "\n" for one in instances))


def test_every_run_is_recorded_once(folder: Path) -> None:
    known = {"model": "m1", "feature": "sex", "margin": 9.0}
    listed(folder, known)
    records = records_of(folder, "-b", "native,cpsat", "--pipelines", "independent", *SEVERAL, "--logs", "logs")
    assert {(r["backend"], r["seed"], r["repetition"]) for r in records} == {
        (backend, seed, number) for backend in ("native", "cpsat") for seed in (0, 5) for number in (1, 2)
    }
    assert len(records) == 8
    assert all("trajectory" in r and "search" in r for r in records)
    first = (folder / "out.jsonl").read_text()
    logs = sorted(path.name for path in (folder / "logs").iterdir())
    records_of(folder, "-b", "native,cpsat", "--pipelines", "independent", *SEVERAL, "--logs", "logs")
    assert (folder / "out.jsonl").read_text() == first  # from the journal: no run is repeated
    assert sorted(path.name for path in (folder / "logs").iterdir()) == logs
    # Fewer runs are a part of these.
    assert [r["seed"] for r in records_of(folder, "-b", "native", "--pipelines", "independent", "--seeds", "5")] == [5]


def test_modules_are_instances(folder: Path) -> None:
    (folder / "q.sens").write_text(
        'model m from "m1.json"\nquery best: find a maximize margin(a)\nquery never: find a such that margin(a) >= 99\n'
    )
    for name in ("best", "never"):
        assert run_command(folder, "emit", "q.sens", name, "--to", "sir", "-o", f"{name}.sir").returncode == 0
    # Twelve leaves of a model of this size do not add up to 99, and every model has a largest margin.
    listed(folder, {"module": "best.sir", "verdict": "found"}, {"module": "never.sir", "verdict": "none"})
    records = records_of(folder, "-b", "native,highs", *SEVERAL, "--logs", "logs")
    assert len(records) == 16
    assert {(r["model"], r["verdict"]) for r in records} == {("best.sir", "found"), ("never.sir", "none")}
    ends = {tuple(r["trajectory"][-1][1:]) for r in records if r["model"] == "best.sir"}
    assert max(bound for bound, _ in ends) == pytest.approx(min(value for _, value in ends), abs=1e-4)
    logs = [path.read_text() for path in (folder / "logs").iterdir() if path.name.startswith("best.sir")]
    assert len(logs) == 4
    assert all("HiGHS" in text for text in logs)
    listed(folder, {"module": "best.sir", "verdict": "none"})
    done = run_command(folder, "bench", "list.jsonl", "--models", ".", "-o", "out.jsonl")
    assert done.returncode == 6
    assert "contradiction" in done.stderr


@pytest.mark.parametrize("format", ["lp", "mps", "smt2"])
def test_exported_files_are_instances(folder: Path, format: str) -> None:
    (folder / "q.sens").write_text('model m from "m1.json"\nquery never: find a such that margin(a) >= 99\n')
    assert run_command(folder, "emit", "q.sens", "--to", format, "-o", f"never.{format}").returncode == 0
    backend = "z3" if format == "smt2" else "highs"
    listed(folder, {"module": f"never.{format}", "verdict": "none"}, {"model": "m1", "feature": "sex", "margin": 0.1})
    done = run_command(folder, "bench", "list.jsonl", "--models", ".", "-o", "x.jsonl", "-b", f"{backend},native")
    assert done.returncode == 1
    assert f"native does not read never.{format}" in done.stderr
    records = records_of(folder, "-b", backend, *SEVERAL)
    assert len(records) == 8
    assert {r["verdict"] for r in records if r["model"].startswith("never")} == {"none"}
    listed(folder, {"module": f"never.{format}", "verdict": "found"})
    done = run_command(folder, "bench", "list.jsonl", "--models", ".", "-o", "out.jsonl", "-b", backend)
    assert done.returncode == 6
    assert "contradiction" in done.stderr


def test_contradictions_between_runs_are_found() -> None:
    def record(verdict: str, seed: int, number: int) -> dict[str, Any]:
        where = {"key": "k", "backend": "highs", "pipeline": "default", "known": None}
        return {**where, "verdict": verdict, "seed": seed, "repetition": number}

    assert not contradictions([record("found", 0, 1), record("unknown", 1, 1), record("found", 1, 2)])
    (words,) = contradictions([record("found", 0, 1), record("found", 1, 1), record("none", 1, 2)])
    assert words == "k: {'highs/default': 'found', 'highs/default (seed 1, repetition 2)': 'none'}"


def test_the_summary_of_runs_has_their_quartiles() -> None:
    times = [1.0, 2.0, 3.0, 4.0, 5.0]
    same = {"key": "k", "backend": "b", "pipeline": "default", "verdict": "found", "limit": 60.0, "build": 0.0}
    (row,) = summary([{**same, "seed": seed, "repetition": 1, "solve": time} for seed, time in enumerate(times)])
    assert (row["instances"], row["runs"], row["solved"]) == (1, 5, 5)
    assert (row["q1"], row["median"], row["q3"]) == (2.0, 3.0, 4.0)
    (row,) = summary([{**same, "seed": 0, "repetition": 1, "solve": 1.0}])
    assert "runs" not in row
