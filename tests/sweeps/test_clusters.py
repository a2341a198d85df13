"""A real Dask scheduler with two workers on the loopback interface; Ray where it is installed."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.commands.test_command_line import run
from tests.sweeps.conftest import QUESTIONS
from tests.sweeps.test_answers import records
from treesens.compiler.result import Verdict
from treesens.solve.options import Options
from treesens.sweeps.executor import Executor
from treesens.sweeps.journal import Entry, Journal
from treesens.sweeps.questions import Question
from treesens.sweeps.run import Settings, sweep
from treesens.sweeps.spec import read_spec
from treesens.sweeps.worker import Task, answer_task, ship

Cluster = tuple[str, dict[int, subprocess.Popen[bytes]]]


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The address of a scheduler and its two worker processes by process id."""
    pytest.importorskip("distributed", reason="pip install 'treesens[dask]'")
    folder = tmp_path_factory.mktemp("dask")
    place = folder / "scheduler.json"
    started: list[subprocess.Popen[bytes]] = []

    def start(module: str, *arguments: str) -> subprocess.Popen[bytes]:
        with (folder / "log").open("ab") as log:
            command = [sys.executable, "-m", f"distributed.cli.{module}", "--scheduler-file", str(place), *arguments]
            started.append(subprocess.Popen(command, cwd=folder, stdout=log, stderr=log))
        return started[-1]

    try:
        start("dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        wait_for(place.exists, folder / "log")
        one_each = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1")
        workers = [start("dask_worker", *one_each) for _ in range(2)]
        address = str(json.loads(place.read_text())["address"]).removeprefix("tcp://")
        wait_for(lambda: workers_of(address) == 2, folder / "log")
        yield address, {worker.pid: worker for worker in workers}
    finally:
        for process in started:
            process.kill()
            process.wait()


def wait_for(met: Any, log: Path) -> None:
    deadline = time.monotonic() + 300
    while not met():
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.1)


def workers_of(address: str) -> int:
    from distributed import Client

    with Client(f"tcp://{address}", set_as_default=False) as client:
        return len(client.scheduler_info()["workers"])


@pytest.mark.slow
def test_a_worker_is_killed_in_the_middle_and_every_answer_comes(folder: Path, cluster: Cluster) -> None:
    address, workers = cluster
    questions = read_spec(folder / "sweep.toml").questions
    seen: list[Entry] = []
    killed: list[int] = []

    def on_answer(_: Question, entry: Entry) -> None:
        seen.append(entry)
        if len(seen) == QUESTIONS // 3:
            killed.append(int(entry.worker.rpartition(":")[2]))
            workers[killed[0]].kill()

    with Journal(folder / "dask.sqlite") as journal:
        there = sweep(questions, Settings(share=False), Executor("dask", 1, address), journal, on_answer=on_answer)
        remote = {entry.key: entry.verdict for entry in journal.entries()}
    assert killed
    assert (there.left, there.failed, there.asked) == (0, 0, QUESTIONS)
    assert len({entry.key for entry in seen}) == len(seen) == QUESTIONS
    assert {int(entry.worker.rpartition(":")[2]) for entry in seen} == set(workers)
    with Journal(folder / "local.sqlite") as journal:
        sweep(questions, Settings(share=False), Executor("local", 2), journal)
        local = {entry.key: entry.verdict for entry in journal.entries()}
    assert remote == local


@pytest.mark.slow
def test_the_command_on_a_cluster_gives_the_answers_of_this_machine(folder: Path, cluster: Cluster) -> None:
    address, _ = cluster
    there = run(folder, "sweep", "sweep.toml", "--executor", f"dask://{address}", "--journal", "there.sqlite", "--json")
    assert there.returncode == 0, there.stderr
    here = run(folder, "sweep", "sweep.toml", "--journal", "here.sqlite", "--json")
    verdicts = [{k: r["verdict"] for k, r in records(done.stdout).items()} for done in (there, here)]
    assert verdicts[0] == verdicts[1]
    assert len(verdicts[0]) == QUESTIONS


def test_a_shipment_to_a_cluster_needs_no_files(folder: Path) -> None:
    question = read_spec(folder / "sweep.toml").questions[0]
    shipment = ship(question.document, remote=True)
    for model in folder.glob("m*.json"):
        model.unlink()
    task = Task("key", question.document.digest, question.name, Options("native"))
    outcome = answer_task(shipment, task)
    assert outcome.failure == ""
    assert outcome.result is not None
    assert outcome.result.verdict is not Verdict.UNKNOWN


def test_a_scheduler_that_is_not_there_is_an_error(folder: Path) -> None:
    pytest.importorskip("distributed", reason="pip install 'treesens[dask]'")
    done = run(folder, "sweep", "sweep.toml", "--executor", "dask://127.0.0.1:9")
    assert done.returncode == 1
    assert "no Dask scheduler answers" in done.stderr


@pytest.mark.slow
def test_ray_gives_the_answers_of_this_machine(folder: Path) -> None:
    pytest.importorskip("ray", reason="pip install 'treesens[ray]'")
    there = run(folder, "sweep", "sweep.toml", "--executor", "ray", "--journal", "there.sqlite", "--json")
    assert there.returncode == 0, there.stderr
    here = run(folder, "sweep", "sweep.toml", "--journal", "here.sqlite", "--json")
    verdicts = [{k: r["verdict"] for k, r in records(done.stdout).items()} for done in (there, here)]
    assert verdicts[0] == verdicts[1]
