"""Processes that die: the sweep itself, a worker from outside, a question that kills its worker."""

from __future__ import annotations

import itertools
import os
import pickle
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from tests.command import CLI
from tests.commands.test_command_line import run
from tests.corpus import boosted
from tests.extensions.sweeps.conftest import QUESTIONS
from treesens.extensions.sweeps.executor import Executor
from treesens.extensions.sweeps.on_processes import Worker
from treesens.extensions.sweeps.run import sweep
from treesens.extensions.sweeps.settings import Settings
from treesens.extensions.sweeps.spec import read_spec
from treesens.extensions.sweeps.worker import Outcome, Shipment, Task
from treesens.records.journal import Entry, Journal
from treesens.records.questions import Document, Question, file_digest
from treesens.runtime.child import wait_for_news
from treesens.solve.options import Options

posix = pytest.mark.skipif(os.name != "posix", reason="signals")


def answers(journal: Path) -> dict[str, tuple[int, str]]:
    """Run and verdict of every answer."""
    with sqlite3.connect(journal) as db:
        return {key: (run, verdict) for key, run, verdict in db.execute("SELECT key, run, verdict FROM answers")}


def stopped_after(folder: Path, number: int, how: signal.Signals) -> subprocess.CompletedProcess[str]:
    """A sweep that gets a signal when its journal has some answers."""
    arguments = [*CLI, "sweep", "sweep.toml", "-j", "2", "--no-share"]
    process = subprocess.Popen(arguments, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 100
    while process.poll() is None and time.monotonic() < deadline:
        try:
            if len(answers(folder / "sweep.sqlite")) >= number:
                break
        except sqlite3.OperationalError:
            pass  # no tables yet
        time.sleep(0.005)
    process.send_signal(how)
    out, err = process.communicate(timeout=100)
    return subprocess.CompletedProcess(arguments, process.returncode, out, err)


@posix
def test_a_killed_sweep_goes_on_and_asks_nothing_twice(folder: Path) -> None:
    assert stopped_after(folder, 10, signal.SIGKILL).returncode == -signal.SIGKILL
    before = answers(folder / "sweep.sqlite")
    assert 10 <= len(before) < QUESTIONS
    done = run(folder, "sweep", "sweep.toml", "-j", "2", "--no-share")
    assert done.returncode == 0, done.stderr
    after = answers(folder / "sweep.sqlite")
    assert len(after) == QUESTIONS
    assert {key: after[key] for key in before} == before
    assert sum(number == 2 for number, _ in after.values()) == QUESTIONS - len(before)
    assert f"{QUESTIONS - len(before)} asked" in done.stderr


@posix
def test_ctrl_c_keeps_what_is_done(folder: Path) -> None:
    done = stopped_after(folder, 10, signal.SIGINT)
    assert done.returncode == 130, done.stderr
    assert "Traceback" not in done.stderr
    assert "the same command continues" in done.stdout
    assert len(answers(folder / "sweep.sqlite")) >= 10
    assert run(folder, "sweep", "sweep.toml", "-j", "2", "--no-share").returncode == 0
    assert len(answers(folder / "sweep.sqlite")) == QUESTIONS


@posix
def test_a_killed_worker_loses_no_question(folder: Path) -> None:
    questions = read_spec(folder / "sweep.toml").questions
    killed: list[int] = []
    seen: list[str] = []

    def on_answer(_: Question, entry: Entry) -> None:
        seen.append(entry.key)
        if len(seen) == 10:
            killed.append(int(entry.worker.rpartition(":")[2]))
            os.kill(killed[0], signal.SIGKILL)

    with Journal(folder / "j.sqlite") as journal:
        summary = sweep(questions, Settings(share=False), Executor("local", 2), journal, on_answer=on_answer)
        entries = list(journal.entries())
    assert killed
    assert len(seen) == len(set(seen)) == QUESTIONS
    assert (summary.left, summary.failed) == (0, 0)
    assert {entry.verdict for entry in entries} == {"found", "none"}
    assert max(entry.attempts for entry in entries) <= 2


@posix
def test_a_worker_is_ended_at_any_moment_without_a_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No thread of ours fails, and prints a traceback, if a process is killed while a task is on its way."""
    document = searched_for_long(tmp_path)
    task = Task("question", document.digest, "q", Options("native", time_limit=0.05), record=False)
    said: list[object] = []
    monkeypatch.setattr(threading, "excepthook", said.append)
    worker = Worker()
    for _ in range(2):
        worker.ask(Shipment(document), task)
        while (taken := worker.taken(120.0)) is None:
            wait_for_news([worker.child], 1.0)
        assert not isinstance(taken[1], Exception)
        worker.ask(Shipment(document), task)  # the process waits for it, and the thread is about to wake
        listeners = worker.child._listeners
        lost = worker.taken(0.0)
        assert lost is not None
        assert isinstance(lost[1], TimeoutError)
        assert not any(listener.is_alive() for listener in listeners)
    worker.end()
    assert not said


def searched_for_long(folder: Path) -> Document:
    """A question that no search of some tenths of a second ends: the labels of the model's rows are noise."""
    rng = np.random.default_rng(5)
    boosted(rng.normal(size=(500, 12)), rng.integers(0, 2, 500), 150, 5, path=folder / "noise.json")
    text = 'model m from "noise.json"\nquery q: find a, b in m such that a = b except {f0, f1} maximize margin(a) - margin(b)\n'
    return Document("noise", text, str(folder), (("noise.json", file_digest(folder / "noise.json")),))


@posix
def test_a_killed_worker_takes_nobody_along(tmp_path: Path) -> None:
    """One of two processes is killed while both search: its question is asked again, and the other one goes on."""
    document = searched_for_long(tmp_path)
    outcomes: list[Outcome] = []
    workers: list[int] = []
    numbers = itertools.count()
    killed = before = 0

    def take() -> Task | None:
        if killed and len(outcomes) >= before + 4:
            return None
        name, options = f"question {next(numbers)}", Options("native", time_limit=0.3)
        return Task(name, document.digest, "q", options, record=False)

    for outcome in Executor("local", 2).run(take, {document.digest: Shipment(document)}, 20.0):
        outcomes.append(outcome)
        workers.append(int(outcome.worker.rpartition(":")[2]))
        if not killed and len(set(workers)) == 2:
            killed, before = workers[-1], len(workers)  # it has its next question already
            os.kill(killed, signal.SIGKILL)
    (other,) = set(workers[:before]) - {killed}
    assert sorted(outcome.key for outcome in outcomes) == sorted(f"question {i}" for i in range(next(numbers)))
    assert not any(outcome.failure for outcome in outcomes)
    assert sum(outcome.attempts == 2 for outcome in outcomes) == 1
    assert other in workers[before:], "it went on"
    assert len(set(workers)) <= 3, "no other process was begun than one in the place of the killed one"


class Deadly:
    """Ends every process but the one that made it when it is unpickled."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return eval, (
            f"__import__('os').getpid() == {os.getpid()} or __import__('os').kill(__import__('os').getpid(), 9)",
        )


@posix
def test_a_question_that_kills_its_worker_is_tried_twice_and_the_others_are_answered(folder: Path) -> None:
    (folder / "bad.pkl").write_bytes(pickle.dumps(Deadly(), protocol=4))
    good = read_spec(folder / "sweep.toml").questions[:12]
    text = 'model m from "bad.pkl"\nquery q: sensitive m to {age} margin 0.5\n'
    bad = Document("bad", text, str(folder), (("bad.pkl", file_digest(folder / "bad.pkl")),), trust_pickle=True)
    tasks = [Task(q.digest, q.document.digest, q.name, Options("native")) for q in good]
    tasks.insert(4, Task("bad", bad.digest, "q", Options("native")))
    waiting = iter(tasks)
    shipments = {d.digest: Shipment(d) for d in [bad, *(q.document for q in good)]}
    outcomes: dict[str, Outcome] = {}
    for outcome in Executor("local", 2).run(lambda: next(waiting, None), shipments, 20.0):
        assert outcome.key not in outcomes
        outcomes[outcome.key] = outcome
    assert set(outcomes) == {task.key for task in tasks}
    lost = outcomes.pop("bad")
    assert lost.result is None
    assert lost.attempts == 2
    assert "died or hung twice" in lost.failure
    assert all(outcome.result is not None and outcome.failure == "" for outcome in outcomes.values())


@posix
def test_a_failure_is_unknown_in_the_journal_and_is_asked_again_on_request(folder: Path) -> None:
    (folder / "sweep.toml").write_text('models = "m1.json"\nmargins = [0.5]\nfeatures = ["age"]\n')
    (question,) = read_spec(folder / "sweep.toml").questions
    content = (folder / "m1.json").read_bytes()
    (folder / "m1.json").write_bytes(content + b"\n")  # not the file that the question is about
    with Journal(folder / "j.sqlite") as journal:
        first = sweep([question], Settings(), Executor("local", 2), journal)
        (entry,) = journal.entries()
    assert (first.failed, entry.verdict) == (1, "unknown")
    assert "has changed since the sweep began" in str(entry.failure)
    (folder / "m1.json").write_bytes(content)
    with Journal(folder / "j.sqlite") as journal:
        assert sweep([question], Settings(), Executor("local", 2), journal).asked == 0
        assert sweep([question], Settings(retry=True), Executor("local", 2), journal).asked == 1
        (entry,) = journal.entries()
    assert (entry.failure, entry.verdict) in {(None, "found"), (None, "none")}


@posix
def test_nothing_outlives_a_killed_sweep(folder: Path) -> None:
    arguments = [*CLI, "sweep", "sweep.toml", "-j", "2", "--no-share"]
    process = subprocess.Popen(arguments, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    workers: set[int] = set()
    deadline = time.monotonic() + 100
    while not workers and time.monotonic() < deadline:
        if (folder / "sweep.sqlite").exists():
            with sqlite3.connect(folder / "sweep.sqlite") as db:
                try:
                    found = db.execute("SELECT DISTINCT worker FROM answers").fetchall()
                except sqlite3.OperationalError:
                    found = []
            workers = {int(row[0].rpartition(":")[2]) for row in found if row[0]}
        time.sleep(0.01)
    process.kill()
    process.wait()
    assert workers
    deadline = time.monotonic() + 60
    while any(alive(pid) for pid in workers):
        assert time.monotonic() < deadline, "a worker goes on without its sweep"
        time.sleep(0.05)


def alive(pid: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    if sys.platform != "linux":
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        return True
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
