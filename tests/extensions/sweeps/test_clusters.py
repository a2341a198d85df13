"""A real Dask scheduler with two workers on the loopback interface; Ray where it is installed."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.commands.test_command_line import run
from tests.extensions.sweeps.conftest import QUESTIONS
from tests.extensions.sweeps.test_answers import records
from treesens.compiler.base.budget import Budget
from treesens.compiler.result import Verdict
from treesens.extensions.sweeps.clusters import bundle_size
from treesens.extensions.sweeps.conquer import Coordinator
from treesens.extensions.sweeps.executor import Executor
from treesens.extensions.sweeps.part_certificates import with_part_certificates
from treesens.extensions.sweeps.run import sweep
from treesens.extensions.sweeps.settings import Settings
from treesens.extensions.sweeps.spec import read_spec
from treesens.extensions.sweeps.worker import Task, answer_task, ship
from treesens.records.journal import Entry, Journal
from treesens.records.questions import Question, document_of
from treesens.solve.options import Options

Cluster = tuple[str, dict[int, subprocess.Popen[bytes]]]


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The address of a scheduler and its two worker processes by process id."""
    pytest.importorskip("distributed", reason="pip install 'treesens[dask]'")
    folder = tmp_path_factory.mktemp("dask")
    place = folder / "scheduler.json"
    started: list[subprocess.Popen[bytes]] = []

    # By default spare copies of data that workers hold are removed every two seconds: tests do not wait for that.
    quick = {**os.environ, "DASK_DISTRIBUTED__SCHEDULER__ACTIVE_MEMORY_MANAGER__INTERVAL": "100ms"}

    def start(module: str, *arguments: str) -> subprocess.Popen[bytes]:
        with (folder / "log").open("ab") as log:
            command = [sys.executable, "-m", f"distributed.cli.{module}", "--scheduler-file", str(place), *arguments]
            started.append(subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, env=quick))
        return started[-1]

    try:
        start("dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        wait_for(place.exists, started, folder / "log")
        one_each = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1")
        workers = [start("dask_worker", *one_each) for _ in range(2)]
        address = str(json.loads(place.read_text())["address"]).removeprefix("tcp://")
        wait_for(lambda: workers_of(address) == 2, started, folder / "log")
        yield address, {worker.pid: worker for worker in workers}
    finally:
        for process in started:
            process.kill()
            process.wait()


def wait_for(met: Any, started: Sequence[subprocess.Popen[bytes]], log: Path) -> None:
    """Waits until something is met; fails as soon as one of the processes has ended."""
    deadline = time.monotonic() + 300
    while not met():
        assert all(process.poll() is None for process in started), log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.1)


def workers_of(address: str) -> int:
    from distributed import Client

    with Client(f"tcp://{address}", set_as_default=False) as client:
        return len(client.scheduler_info()["workers"])


def holder_of_a_model(address: str) -> int:
    """The process id of the only worker that still holds the data for questions about a model: the memory manager has removed
    spare copies.
    """
    from distributed import Client

    deadline = time.monotonic() + 60
    with Client(f"tcp://{address}", set_as_default=False) as client:
        pids = client.run(os.getpid)
        while time.monotonic() < deadline:
            held = {key: at for key, at in client.who_has().items() if str(key).startswith(("_same", "Shipment"))}
            if held and all(len(at) == 1 for at in held.values()):
                return int(pids[next(iter(held.values()))[0]])
            time.sleep(0.1)
    raise AssertionError("no worker is the only one to hold a model")


@pytest.mark.slow
def test_a_worker_is_killed_in_the_middle_and_every_answer_comes(folder: Path, cluster: Cluster) -> None:
    address, workers = cluster
    questions = read_spec(folder / "sweep.toml").questions
    seen: list[Entry] = []
    killed: list[int] = []

    def on_answer(_: Question, entry: Entry) -> None:
        seen.append(entry)
        if len(seen) == 1:
            killed.append(holder_of_a_model(address))
            workers[killed[0]].kill()

    with Journal(folder / "dask.sqlite") as journal:
        there = sweep(questions, Settings(share=False), Executor("dask", 1, address), journal, on_answer=on_answer)
        remote = {entry.key: entry.verdict for entry in journal.entries()}
    assert killed
    assert (there.left, there.failed, there.asked) == (0, 0, QUESTIONS)
    assert len({entry.key for entry in seen}) == len(seen) == QUESTIONS
    # Which worker begins is the cluster's choice; those that are left have answered.
    answered = {int(entry.worker.rpartition(":")[2]) for entry in seen}
    assert set(workers) - set(killed) <= answered <= set(workers)
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


def test_a_scheduler_without_workers_is_an_error(folder: Path, cluster: Cluster) -> None:
    address, workers = cluster
    for worker in workers.values():
        worker.kill()
        worker.wait()
    done = run(folder, "sweep", "sweep.toml", "--executor", f"dask://{address}")
    assert done.returncode == 1
    assert f"the Dask scheduler at {address} has no workers" in done.stderr
    assert f"dask worker {address}" in done.stderr


FEW = """models = ["m1.json"]
features = "all"
margins = [0.5, 1.5]
time_limit = 20
"""


@pytest.fixture
def ray_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the clients' server of a Ray cluster on the loopback interface, without tokens."""
    pytest.importorskip("ray", reason="pip install 'treesens[ray]'")
    folder = tmp_path_factory.mktemp("ray")
    ports = free_ports(2)
    here = ("--head", "--block", "--node-ip-address", "127.0.0.1", "--include-dashboard", "false", "--num-cpus", "2")
    environment = {**os.environ, **RAY}
    # Its sockets lie in its folder, and the path of a socket has at most 107 bytes.
    with TemporaryDirectory(
        prefix="ray-", dir="/tmp" if os.name == "posix" else None, ignore_cleanup_errors=True
    ) as short:
        places = ("--port", str(ports[0]), "--ray-client-server-port", str(ports[1]), "--temp-dir", short)
        with (folder / "log").open("ab") as log:
            command = [sys.executable, "-m", "ray.scripts.scripts", "start", *here, *places]
            head = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, env=environment)
        try:
            wait_for(lambda: answers_at(ports[1]), [head], folder / "log")
            yield f"ray://127.0.0.1:{ports[1]}"
        finally:
            head.terminate()  # it ends what it has started
            head.wait(60)


RAY = {"RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]


def answers_at(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("where", ["one of its own", "a cluster"])
def test_ray_gives_the_answers_of_this_machine(
    folder: Path, where: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray", reason="pip install 'treesens[ray]'")
    executor = "ray" if where == "one of its own" else request.getfixturevalue("ray_address")
    for name, value in RAY.items():
        monkeypatch.setenv(name, value)
    (folder / "few.toml").write_text(FEW)
    there = run(folder, "sweep", "few.toml", "--executor", executor, "--journal", "there.sqlite", "--json")
    assert there.returncode == 0, there.stderr
    here = run(folder, "sweep", "few.toml", "--journal", "here.sqlite", "--json")
    verdicts = [{k: r["verdict"] for k, r in records(done.stdout).items()} for done in (there, here)]
    assert verdicts[0] == verdicts[1]
    assert len(verdicts[0]) == 10
    workers = (
        sqlite3.connect(folder / "there.sqlite").execute("SELECT COUNT(DISTINCT worker) FROM answers").fetchone()[0]
    )
    assert workers <= max(2, os.cpu_count() or 2), "workers stay from one question to the next"


@pytest.mark.parametrize(
    ("missing", "executor", "extra"),
    [
        ("distributed", "dask://127.0.0.1:9", "treesens[dask]"),
        ("ray", "ray", "treesens[ray]"),
        ("ray", "ray://127.0.0.1:9", "treesens[ray]"),
        ("grpc", "ray://127.0.0.1:9", "treesens[ray]"),
    ],
)
def test_a_missing_library_is_one_clear_line(folder: Path, missing: str, executor: str, extra: str) -> None:
    if missing == "grpc":
        pytest.importorskip("ray", reason="pip install 'treesens[ray]'")
    # As in an environment without it: the import fails.
    code = f"import sys; sys.modules[{missing!r}] = None; from treesens.cli import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", code, "sweep", "sweep.toml", "--executor", executor]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert f"pip install '{extra}'" in done.stderr.splitlines()[-1]


def test_one_question_in_parts_on_a_cluster(cluster: Cluster, trained: Path, tmp_path: Path) -> None:
    """The largest swing, with a proof whose parts the workers make; one of the two is killed on the way."""
    address, workers = cluster
    file = tmp_path / "q.sens"
    goal = "find a, b in m such that a = b except {age, income} maximize margin(a, 0) - margin(b, 0)"
    file.write_text(f'model m from "{trained / "three.json"}"\nquery q: {goal}\n')
    (whole,) = json.loads(run(tmp_path, "check", str(file), "--json").stdout)["results"]
    text, base = file.read_text(), file.parent
    document, session = document_of("q.sens", text, base)
    (asked,) = session.asked()
    executor = Executor("dask", 1, address)
    one = Coordinator(
        session.question(asked),
        ship(document, True),
        executor,
        Options(time_limit=60, replay="emulated"),
        slice_seconds=0.1,  # a busy machine needs a part of it to begin
        first_seconds=0.0,
    )
    take_in = one._take_in

    def also_kill(outcome: Any) -> None:
        take_in(outcome)
        first = next(iter(workers.values()))
        if first.poll() is None:
            first.kill()

    one._take_in = also_kill  # type: ignore[method-assign]
    result = one.run(Budget.of(120))
    assert result.objective is not None
    assert result.objective.value == pytest.approx(whole["objective"]["value"], rel=1e-5)
    assert result.objective.bound == pytest.approx(whole["objective"]["value"], rel=1e-5)
    made = with_part_certificates(one, result, tmp_path / "out", Budget.of(120))
    assert all(claim.path for claim in made.certificates), made.certificates
    (manifest,) = (tmp_path / "out").glob("*.manifest.json")
    assert run(tmp_path, "verify", str(manifest), "--model", str(trained / "three.json"), "-q").stdout.endswith(
        ": accepted\n"
    )


def test_bundles_grow_while_questions_are_quick() -> None:
    assert [bundle_size(size, 0.01 * size, size) for size in (1, 2, 4, 8, 16, 32)] == [2, 4, 8, 16, 32, 50]
    assert bundle_size(50, 100.0, 50) == 1
    assert bundle_size(64, 0.0, 64) == 64
