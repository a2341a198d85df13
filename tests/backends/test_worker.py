"""The worker: whatever happens to it is a reason, never a verdict and never a guess."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
from pathlib import Path

import pytest

from treesens.backends import worker as workers
from treesens.backends.base import Limits, Termination, get_backend
from treesens.backends.solvers.pb import VARIABLE
from treesens.backends.worker import Worker, run_all, solve_isolated
from treesens.extensions.conformance.cases import hard_module
from treesens.extensions.conformance.shapes import cases

SMALL = next(case.module for case in cases() if case.name == "path")


def test_a_worker_that_cannot_start_is_a_crash_with_its_words() -> None:
    outcome = solve_isolated("no-such-backend", get_backend("z3").emit(SMALL), Limits(seconds=20))
    assert outcome.termination is Termination.CRASH
    assert "unknown backend `no-such-backend`" in outcome.detail


def test_a_file_in_the_working_directory_stands_in_for_nothing(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(str(tmp_path))
    with open("z3.py", "w") as file:
        file.write("raise SystemExit('the wrong z3')\n")
    outcome = solve_isolated("z3", get_backend("z3").emit(SMALL), Limits(seconds=20))
    assert outcome.termination is Termination.SATISFIED


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_a_worker_that_is_killed_from_outside_is_a_crash() -> None:
    worker = Worker.start("z3", get_backend("z3").emit(hard_module()), Limits(seconds=30))
    threading.Timer(0.5, lambda: os.kill(worker.child.process.pid, signal.SIGKILL)).start()
    ((_, outcome),) = run_all([worker])
    assert outcome.termination is Termination.CRASH
    assert f"code -{int(signal.SIGKILL)}" in outcome.detail


def test_stop_ends_a_worker_at_once() -> None:
    stop = threading.Event()
    threading.Timer(0.5, stop.set).start()
    started = time.monotonic()
    outcome = solve_isolated("z3", get_backend("z3").emit(hard_module()), Limits(seconds=300), stop)
    assert outcome.termination is Termination.INTERRUPTED
    assert time.monotonic() - started < 150


def test_a_solver_past_its_limit_and_grace_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_GRACE_SECONDS", -0.9)
    outcome = solve_isolated("z3", get_backend("z3").emit(hard_module()), Limits(seconds=1.0))
    assert outcome.termination is Termination.TIME
    assert "killed" in outcome.detail


def test_a_worker_that_is_killed_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver of its own reads a file, which holds the question and the model; this one never ends."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv(VARIABLE, 'sh -c "sleep 60"')
    worker = Worker.start("pb", get_backend("pb").emit(SMALL), Limits(seconds=30))
    written: list[Path] = []

    def kill_when_written() -> None:
        while not written and worker.child.seconds < 20:
            written.extend(tmp_path.glob("*/*/model.opb"))
            time.sleep(0.01)
        os.killpg(worker.child.process.pid, signal.SIGKILL)

    threading.Thread(target=kill_when_written).start()
    ((_, outcome),) = run_all([worker])
    assert outcome.termination is Termination.CRASH
    assert written
    assert list(tmp_path.iterdir()) == []
