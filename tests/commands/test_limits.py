"""`treesens check` in a process of its own, cut short by time, Ctrl-C and memory: `unknown` with bounds, and no traceback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treesens as ts
from tests.command import CLI
from tests.extensions.studies.asked import found as found_by

xgboost = pytest.importorskip("xgboost")

FEATURES = 16


@pytest.fixture(scope="module")
def hard(folder: Path) -> float:
    """A margin of the first feature between what a search of seconds reaches and what it excludes, nearer to the former. The
    search has its seconds of CPU, however slow the machine is: with less, the next ones would find what it had not reached.
    """
    model, limit, used = ts.load(folder / "m.json"), 4.0, 0.0
    while used < 3.5:
        before = time.process_time()
        (known,) = found_by("gap", model, vary=[["f0"]], time_limit=limit, threads=1).result
        used, limit = time.process_time() - before, 2 * limit
    assert known.value is not None
    assert known.bound is not None
    assert not known.closed
    return (7 * known.value + known.bound) / 8


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of noise, which has no structure to exploit: nothing about one of its features is decided in seconds."""
    place = tmp_path_factory.mktemp("limits")
    rng = np.random.default_rng(3)
    x = rng.normal(size=(2500, FEATURES))
    y = rng.integers(0, 2, 2500)
    xgboost.XGBClassifier(n_estimators=350, max_depth=6, learning_rate=0.3, n_jobs=1).fit(x, y).save_model(
        place / "m.json"
    )
    return place


def ask(folder: Path, varied: int, margin: float) -> Path:
    names = ", ".join(f"f{i}" for i in range(varied))
    file = folder / f"q{varied}.sens"
    file.write_text(
        f'model m from "m.json"\nquery q: find a, b such that a = b except {{{names}}}\n'
        f"  margin(a) >= {margin}\n  margin(b) <= -{margin}\n"
    )
    return file


def check(file: Path, *options: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*CLI, "check", str(file), "-b", "native", "--replay", "emulated", "--json", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def cpu_seconds(pid: int) -> float:
    """User time of a process so far; waits on the clock where the system does not tell."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except FileNotFoundError:
        time.sleep(15)
        return 15.0
    return int(fields[11]) / os.sysconf("SC_CLK_TCK")


def unknown(process: subprocess.Popen[str], code: int) -> dict[str, Any]:
    """The record of the only answer."""
    out, err = process.communicate(timeout=120)
    assert process.returncode == code, err
    assert "Traceback" not in err
    (record,) = json.loads(out)["results"]
    assert record["verdict"] == "unknown"
    near = record["near_miss"]
    assert near["slack_bound"] >= 0
    # A tenth of a second may be over before the first point.
    assert near.get("best_slack", -1.0) < 0
    return dict(record)


def test_a_tenth_of_a_second(folder: Path, hard: float) -> None:
    record = unknown(check(ask(folder, 1, hard), "-t", "0.1"), 5)
    assert "time" in record["reason"]


def test_interruption_in_the_search(folder: Path, hard: float) -> None:
    process = check(ask(folder, 1, hard), "-t", "100")
    # Starting and compiling take two or three seconds of CPU, the search a minute.
    deadline = time.monotonic() + 90
    while cpu_seconds(process.pid) < 6 and time.monotonic() < deadline:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    unknown(process, 130)


def test_64_megabytes(folder: Path) -> None:
    """All features vary: the joint entries of both copies of the trees do not fit."""
    record = unknown(check(ask(folder, FEATURES, 30.0), "-t", "600", "--memory-limit", "64"), 5)
    assert "memory" in record["reason"]
