"""The process of a solver is a fork of one that has the library loaded: as much a process of its own as any other."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from treesens.backends.base import Limits, Termination, get_backend
from treesens.backends.worker import Worker, modules_of, run_all, solve_isolated
from treesens.extensions.conformance.cases import hard_module
from treesens.extensions.conformance.shapes import cases
from treesens.runtime import child, fork_server
from treesens.runtime.fork_server import ForkServer, cpu_seconds

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks of a server are for Linux")
SMALL = next(case.module for case in cases() if case.name == "path")
LIMITS = Limits(seconds=20)


def the_server() -> ForkServer:
    return child.servers.servers[modules_of("z3"), 1]


def solved() -> Termination:
    return solve_isolated("z3", get_backend("z3").emit(SMALL), LIMITS).termination


def until(done: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 120
    while not done() and time.monotonic() < deadline:
        time.sleep(0.01)
    return done()


def test_solves_are_processes_of_one_server_and_end() -> None:
    artifact = get_backend("z3").emit(SMALL)
    workers = [Worker.start("z3", artifact, LIMITS) for _ in range(3)]
    pids = [worker.child.process.pid for worker in workers]
    parents = {int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]) for pid in pids}
    assert parents == {the_server().process.pid}
    assert {outcome.termination for _, outcome in run_all(workers)} == {Termination.SATISFIED}
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_solves_of_several_threads_do_not_mix() -> None:
    ended: list[Termination] = []
    threads = [threading.Thread(target=lambda: ended.append(solved())) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ended == [Termination.SATISFIED] * 6


def test_a_server_that_was_killed_is_started_again() -> None:
    assert solved() is Termination.SATISFIED
    first = the_server()
    os.kill(first.process.pid, signal.SIGKILL)
    assert until(lambda: not Path(f"/proc/{first.process.pid}/exe").exists() or first.process.poll() is not None)
    assert solved() is Termination.SATISFIED
    assert the_server() is not first


def test_a_server_that_says_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A solve has its time limit: it must not wait for a library that never loads."""
    monkeypatch.setattr(fork_server, "PATIENCE", 4.0)
    monkeypatch.setenv("TREESENS_OF_A_TEST", "2")  # a server of its own, which has this patience
    assert solved() is Termination.SATISFIED
    silent = the_server()
    os.kill(silent.process.pid, signal.SIGSTOP)
    assert solved() is Termination.SATISFIED
    assert the_server() is not silent
    assert until(lambda: silent.process.poll() is not None)


def test_a_solve_whose_server_is_killed_is_a_crash() -> None:
    worker = Worker.start("z3", get_backend("z3").emit(hard_module()), Limits(seconds=30))
    threading.Timer(0.5, lambda: os.kill(the_server().process.pid, signal.SIGKILL)).start()
    ((_, outcome),) = run_all([worker])
    assert outcome.termination is Termination.CRASH


def test_a_solve_sees_the_environment_and_the_folder_of_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert solved() is Termination.SATISFIED
    first = the_server()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TREESENS_OF_A_TEST", "1")
    worker = Worker.start("z3", get_backend("z3").emit(hard_module()), Limits(seconds=30))
    try:
        assert b"TREESENS_OF_A_TEST=1" in Path(f"/proc/{the_server().process.pid}/environ").read_bytes().split(b"\0")
        assert os.readlink(f"/proc/{worker.child.process.pid}/cwd") == str(tmp_path)
    finally:
        worker.kill(Termination.INTERRUPTED)
    # The server that was replaced has nothing left to do.
    pid = first.process.pid
    del first
    assert until(lambda: not Path(f"/proc/{pid}").exists())


def test_a_folder_that_is_gone_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert solved() is Termination.SATISFIED


def test_cpu_time_of_forks_is_counted() -> None:
    before, children = cpu_seconds(), sum(os.times()[:4])
    solve_isolated("z3", get_backend("z3").emit(hard_module()), Limits(seconds=1.0))
    assert cpu_seconds() - before >= sum(os.times()[:4]) - children + 0.2


def test_a_fork_of_this_process_has_servers_of_its_own() -> None:
    assert solved() is Termination.SATISFIED
    pid = os.fork()
    if pid == 0:
        os._exit(0 if not child.servers.servers else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert solved() is Termination.SATISFIED


def test_a_server_ends_with_the_process_that_started_it() -> None:
    code = (
        "from tests.backends.test_solver_processes import solved, the_server\n"
        "solved(); print(the_server().process.pid, flush=True); input()"
    )
    root = Path(__file__).parents[2]
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        assert Path(f"/proc/{pid}").exists()
        process.kill()
    assert until(lambda: not Path(f"/proc/{pid}/exe").exists())
