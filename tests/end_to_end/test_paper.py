"""The paper's experiments: end to end on tiny models trained here, and what counts as a result."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from benchmarks.markdown import markdown_table
from benchmarks.paper import ablation, runtime
from benchmarks.paper.experiment import Experiment, Item, Measured, settings_of, standing

from treesens.extensions.sweeps.instances import Instance, Level, Setting
from treesens.report.curves import curves_svg

ROOT = Path(__file__).resolve().parents[2]
ASKED = {
    "runtime_binary": 7,
    "runtime_multiclass": 7,
    "ablation_binary": 10,
    "ablation_multiclass": 10,
    "multifeature": 8,
    "scaling_trees": 4,
    "scaling_depth": 4,
}


def driver(folder: Path, *arguments: str) -> list[str]:
    """The command; the published models are out of sight, so it trains its own on data of scikit-learn."""
    where = ("--bench", str(folder / "nothing"), "-o", str(folder / "out"))
    return [sys.executable, "-m", "benchmarks.paper", "--size", "tiny", *where, *arguments]


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.is_file() else []


@pytest.mark.slow
def test_all_experiments_interrupted_and_resumed(tmp_path: Path) -> None:
    records = tmp_path / "out" / "ablation_binary.jsonl"
    command = driver(tmp_path)
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as first:
        until = time.monotonic() + 300
        while len(lines(records)) < 2 and first.poll() is None and time.monotonic() < until:
            time.sleep(0.02)
        first.send_signal(signal.SIGINT)
        _, errors = first.communicate(timeout=120)
    assert first.returncode == 130, errors
    assert (tmp_path / "out" / "paper.md").is_file()
    before = {path: path.read_text() for path in (tmp_path / "out").glob("*.jsonl")}
    assert sum(len(text.splitlines()) for text in before.values()) < sum(ASKED.values())
    with records.open("a") as file:
        file.write('{"cut')

    done = subprocess.run(driver(tmp_path, "-j", "2"), cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert all(path.read_text().startswith(text) for path, text in before.items())
    for name, number in ASKED.items():
        found = [json.loads(x) for x in lines(tmp_path / "out" / f"{name}.jsonl") if x != '{"cut']
        questions = Counter((r["key"], r["backend"], r["pipeline"]) for r in found)
        assert len(questions) == number
        assert set(questions.values()) == {1}
        for record in found:
            assert len(record["model_sha256"]) == 64
            assert record["run"]["packages"]["highspy"]
            assert record["run"]["machine"]["cores"] >= 1
            assert (record["limit"], record["run"]["seed"]) == (1.0, 7)
        ElementTree.parse(tmp_path / "out" / f"{name}.svg")
    report = (tmp_path / "out" / "paper.md").read_text()
    assert "0 questions not asked yet" in report
    printed = done.stdout.splitlines()
    for claim in (
        "ensense solves more than kant on highs",
        "Aff contributes most",
        "more varied features make it easier",
    ):
        mine = [x for x in printed if claim in x]
        assert mine
        assert all(x.partition(":")[0] in {"met", "UNMET"} and f"- {x}" in report for x in mine), mine

    other = subprocess.run(driver(tmp_path, "--limit", "2"), cwd=ROOT, capture_output=True, text=True, check=False)
    assert other.returncode == 1
    assert "was measured with 1 s per question" in other.stderr


def test_a_budget_of_nothing_asks_nothing_and_decides_nothing(tmp_path: Path) -> None:
    command = driver(tmp_path, "--budget", "0", "--only", "ablation")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert lines(tmp_path / "out" / "ablation_binary.jsonl") == []
    assert "10 questions not asked yet" in (tmp_path / "out" / "ablation_binary.md").read_text()
    assert "open: binary: Aff contributes most" in done.stdout


A, B = (Instance("m", (f,), Level("margin", "0.5")) for f in (1, 2))


def experiment(settings: list[Setting], variants: dict[str, str] | None = None, baseline: str = "kant") -> Experiment:
    return Experiment(
        "runtime_binary", "t", Path(), [Item(x, x.key) for x in (A, B)], settings, baseline, variants or {}
    )


def record(
    instance: Instance, setting: Setting, seconds: float | None, termination: str = "satisfied"
) -> dict[str, Any]:
    """A line of the runner; no seconds: not solved."""
    return {
        "key": instance.key,
        "backend": setting.backend,
        "pipeline": setting.pipeline,
        "verdict": "unknown" if seconds is None else "found",
        "known": None,
        "termination": termination if seconds is not None or termination == "licence" else "time",
        "build": 0.0,
        "solve": seconds or 0.0,
        "limit": 10.0,
    }


def test_only_whole_blocks_count_and_a_licence_leaves_its_solver_out() -> None:
    settings = settings_of(["highs", "gurobi"], ["kant", "ensense"])
    every = [record(x, s, 1.0) for x in (A, B) for s in settings]
    assert len(standing(experiment(settings), settings, every).records) == 8
    cut = standing(experiment(settings), settings, every[:-1])
    assert ({r["key"] for r in cut.records}, cut.unasked) == ({A.key}, 1)
    small = [record(A, s, None, "licence") if s.backend == "gurobi" else record(A, s, 1.0) for s in settings]
    m = standing(experiment(settings), settings, small + every[4:])
    assert Counter((r["backend"], r["key"]) for r in m.records) == {
        ("highs", A.key): 2,
        ("highs", B.key): 2,
        ("gurobi", B.key): 2,
    }
    assert any("gurobi: 1 of 2 blocks are too large for its licence" in text for text in m.remarks)


def measured(settings: list[Setting], times: dict[Setting, tuple[float | None, float | None]], **more: Any) -> Measured:
    found = [record(x, s, t) for s in settings for x, t in zip((A, B), times[s], strict=True)]
    return standing(experiment(settings, **more), settings, found)


@pytest.mark.parametrize(("kant", "ensense", "met"), [((1.0, None), (1.0, 2.0), True), ((1.0, 2.0), (0.1, 0.1), False)])
def test_the_first_finding_follows_the_records(kant: Any, ensense: Any, met: bool) -> None:
    settings = settings_of(["highs"], ["kant", "ensense"])
    m = measured(settings, dict(zip(settings, (kant, ensense), strict=True)))
    (finding,) = runtime.findings({"runtime_binary": m})
    assert finding.met is met
    assert finding.figures == (
        "binary 2 against 1 of 2, PAR2 10.5 s / 1.5 s = 7"
        if met
        else "binary 2 against 2 of 2, PAR2 1.5 s / 0.1 s = 15"
    )


def one_part(best: str, seconds: float) -> dict[str, Measured]:
    """An ablation where pipelines with the part `best` take 1 s and all others `seconds`."""
    names = ablation.variants()
    settings = settings_of(["highs"], list(names))
    quick = {f"base+{best}"} | {f"all-{p}" for p in ablation.PARTS if p != best} | {"all"}
    times = {s: (1.0, 1.0) if names[s.pipeline] in quick else (seconds, seconds) for s in settings}
    return {"ablation_binary": measured(settings, times, variants=names, baseline="base")}


@pytest.mark.parametrize("best", list(ablation.PARTS))
def test_the_second_finding_follows_the_records(best: str) -> None:
    (finding,) = ablation.findings(one_part(best, 4.0))
    assert finding.met is (best == "Aff")
    assert finding.figures.startswith(f"PAR2 ratios {best} 4 (alone 4, last 4)")


def test_noise_bears_no_claim_out() -> None:
    (finding,) = ablation.findings(one_part("Aff", 1.04))
    assert finding.figures.startswith("PAR2 ratios Aff 1.04")
    assert finding.met is False


def test_tables_and_curves() -> None:
    table = markdown_table([{"a|b": "x", "n": 2, "t": 0.12345}, {"a|b": "y|z", "n": 3, "t": None}])
    assert table.splitlines()[1:] == ["| --- | ---: | ---: |", "| x | 2 | 0.123 |", "| y\\|z | 3 | – |"]
    picture = curves_svg({"<a>": [2.0, 1.0], "none": []}, title="a & b", logarithmic=False)
    texts = [node.text for node in ElementTree.fromstring(picture).iter() if node.text]
    assert {"a & b", "<a> (2)", "none (0)"} <= set(texts)
