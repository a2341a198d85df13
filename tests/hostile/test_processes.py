"""Processes that we start: nothing from the working directory, nothing outlives its parent, nothing outlasts Ctrl-C."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.hostile.samples import MAKERS
from tests.trials import at_night
from treesens.backends.base import BACKENDS, get_backend
from treesens.backends.solvers.pb import VARIABLE

CLI = [sys.executable, "-P", "-c", "from treesens.cli import main; main()"]
HARD_TREES = 120
posix = pytest.mark.skipif(os.name != "posix", reason="signals and /proc")
linux = pytest.mark.skipif(sys.platform != "linux", reason="the kernel's help, and /proc")


@pytest.fixture(scope="module")
def hard(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a question that takes any solver more than a minute: an optimum over many trees."""
    xgboost = pytest.importorskip("xgboost")
    import numpy as np

    rng = np.random.default_rng(2)
    x = rng.random((4000, 8))
    y = (np.sin(9 * x[:, 0]) + np.sin(8 * x[:, 1] * x[:, 2]) + x[:, 3] * x[:, 4] + rng.random(4000) > 1).astype(int)
    data = xgboost.DMatrix(x, y, feature_names=[f"f{i}" for i in range(8)])
    folder = tmp_path_factory.mktemp("hard")
    xgboost.train({"objective": "binary:logistic", "max_depth": 8, "eta": 0.3}, data, HARD_TREES).save_model(
        folder / "m.json"
    )
    np.savetxt(folder / "d.csv", x[:300], delimiter=",", header=",".join(data.feature_names), comments="")
    pairs = "{f0, f1, f2, f3}, {f4, f5, f6, f7}, {f0, f2, f4, f6}, {f1, f3, f5, f7}"
    (folder / "q.sens").write_text(
        'model m from "m.json"\n'
        f"query q: for each s in {{{pairs}}}: find a, b such that a = b except s\n  maximize margin(a) - margin(b)\n"
    )
    (folder / "one.sens").write_text(
        'model m from "m.json"\nquery q: find a, b such that a = b except {f0, f1, f2, f3}\n  maximize margin(a) - margin(b)\n'
    )
    return folder


def children_of(group: int) -> list[int]:
    """Living processes whose session or ancestors go back to a process: everything that it has started."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            state, parent = stat.rpartition(")")[2].split()[:2]
            if state != "Z":
                parents[int(entry.name)] = int(parent)
    found, todo = [], [group]
    while todo:
        at = todo.pop()
        mine = [p for p, parent in parents.items() if parent == at]
        found += mine
        todo += mine
    return found


def alive(pids: list[int]) -> list[int]:
    living = []
    for pid in pids:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
                living.append(pid)
        except OSError:
            continue
    return living


def start(folder: Path, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*CLI, *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )


def let_work(process: subprocess.Popen[str], seconds: float) -> None:
    """Waits until a process and those it has started have computed for so many CPU seconds, however slow the machine is."""
    if sys.platform != "linux":
        time.sleep(8)
        return
    deadline = time.monotonic() + 180
    while process.poll() is None and time.monotonic() < deadline:
        if sum(map(cpu_seconds, [process.pid, *children_of(process.pid)])) >= seconds:
            return
        time.sleep(0.1)


def cpu_seconds(pid: int) -> float:
    """What a process has computed, 0 if it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


STARTED = 3.0
"""CPU seconds of a command that has loaded everything and searches; each process of a pool takes half of them more."""
CHILD_STARTED = 1.5
"""CPU seconds of a child that has loaded a solver and searches."""


def with_children(process: subprocess.Popen[str], *, least: int = 1, seconds: float = 60) -> list[int]:
    """The children of a process once there are some, and it has had time to work."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and process.poll() is None:
        if len(found := children_of(process.pid)) >= least:
            # A child that waits for others computes nothing.
            enough = time.monotonic() + 3
            while time.monotonic() < enough and sum(map(cpu_seconds, found)) < least * CHILD_STARTED:
                time.sleep(0.05)
                found = children_of(process.pid) or found
            return found
        time.sleep(0.1)
    pytest.fail(f"no child was started: {process.poll()}")


def killed_and_gone(process: subprocess.Popen[str], least: int = 1) -> None:
    pids = with_children(process, least=least)
    process.kill()
    process.wait()
    deadline = time.monotonic() + 60
    while alive(pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    left = alive(pids)
    commands = [Path(f"/proc/{p}/cmdline").read_text().replace("\0", " ")[:200] for p in left]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == [], commands


SOLVERS = sorted(set(BACKENDS.names()) - {"native", "pb", "countdown"})


@linux
@pytest.mark.slow
@pytest.mark.parametrize("backend", SOLVERS)
def test_no_solver_outlives_a_killed_parent(hard: Path, backend: str) -> None:
    """Fault 27: SCIP holds the interpreter's lock, so that no thread of the worker could see that its parent is gone."""
    if get_backend(backend).available() is not None:
        pytest.skip(f"{backend} is not installed")
    killed_and_gone(start(hard, "check", "one.sens", "-b", backend, "-p", "independent", "-t", "120"))


@linux
def test_no_pseudo_boolean_solver_outlives_a_killed_parent(hard: Path, tmp_path: Path) -> None:
    """Fault 27: the external program of `pb` had no limit once its parent was gone."""
    program = tmp_path / "solver"
    program.write_text("#!/bin/sh\nexec sleep 1000\n")
    program.chmod(0o755)
    command = start(hard, "check", "one.sens", "-b", "pb", "-p", "independent", "-t", "120", **{VARIABLE: str(program)})
    killed_and_gone(command, least=2)


@linux
@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments", [("check", "q.sens", "-j", "2", "-t", "100"), ("sweep", "q.sens", "-j", "2", "-t", "100")]
)
def test_no_process_of_a_pool_outlives_a_killed_parent(hard: Path, arguments: tuple[str, ...]) -> None:
    """Fault 27: processes of a pool, and the solvers that they had started, stayed."""
    killed_and_gone(start(hard, *arguments), least=3)


MARGINS = ",".join(f"{0.5 + i / 1000:g}" for i in range(500))
"""More than any machine audits in the time that passes before the interruption."""

INTERRUPTED = {
    "check": ("check", "q.sens", "-t", "100"),
    "check in processes": ("check", "q.sens", "-j", "2", "-t", "100"),
    "check with scip": ("check", "one.sens", "-b", "scip", "-p", "independent", "-t", "100"),
    "compare": ("compare", "q.sens", "-b", "native,z3", "-t", "100"),
    "gap": ("gap", "m.json", "-t", "100", "--data", "d.csv", "--replay", "emulated"),
    "audit": ("audit", "m.json", "--data", "d.csv", "-t", "100", "--margin", MARGINS),
    "sweep": ("sweep", "q.sens", "-j", "2", "-t", "100", "--journal", "i.sqlite"),
    "bench": ("bench", "list.jsonl", "--models", ".", "-t", "100", "-o", "b.jsonl", "-b", "z3"),
    "bench in processes": (
        "bench",
        "list.jsonl",
        "--models",
        ".",
        "-t",
        "100",
        "-o",
        "c.jsonl",
        "-b",
        "native",
        "-j",
        "2",
    ),
}

AT_NIGHT = {"check with scip", "gap", "bench", "bench in processes"}


@posix
@pytest.mark.slow
@pytest.mark.parametrize("name", [at_night(n) if n in AT_NIGHT else n for n in INTERRUPTED])
def test_ctrl_c_ends_a_command_with_130(hard: Path, name: str) -> None:
    """Fault 28: `check -j 2` went on to its time limit, `compare` ended with 5."""
    # More than any machine decides before it is interrupted.
    margins = [6 + i / 1000 for i in range(2000)]
    lines = [json.dumps({"model": "m", "features": f, "margin": g}) for g in margins for f in ([0, 1, 2], [3, 4, 5])]
    (hard / "list.jsonl").write_text("\n".join(lines) + "\n")
    arguments = INTERRUPTED[name]
    if "scip" in arguments and find_spec("pyscipopt") is None:
        pytest.skip("scip is not installed")
    process = start(hard, *arguments)
    let_work(process, STARTED * (2 if "-j" in arguments else 1))
    if process.poll() is not None:
        pytest.fail(f"ended by itself: {process.communicate()}")
    with busy_machine():
        reaped = computed_by_children()
        before = sum(map(cpu_seconds, [process.pid, *children_of(process.pid)]))
        process.send_signal(signal.SIGINT)
        try:
            out, err = process.communicate(timeout=90)
        except subprocess.TimeoutExpired:
            process.kill()
            pytest.fail(f"did not end in 90 s: {process.communicate()}")
        used = computed_by_children() - reaped - before
    assert process.returncode == 130, (out, err)
    assert "Traceback" not in err
    # Each of its processes computes for at most 0.7 s before the work is abandoned; without that it computed for 18 s.
    assert used < 6, used
    assert "leaked" not in err


def computed_by_children() -> float:
    """CPU seconds of all awaited child processes, including those of the children that they awaited."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@contextmanager
def busy_machine() -> Iterator[None]:
    """Three processes per core that compute."""
    burning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(3 * (os.cpu_count() or 1))]
    try:
        yield
    finally:
        for one in burning:
            one.kill()
            one.wait()


@posix
def test_a_library_that_waits_at_the_end_of_the_process_is_not_waited_for(hard: Path) -> None:
    """A pool of processes joins its workers there: a worker that had just begun kept an interrupted command for ever."""
    waits = "import atexit, threading; atexit.register(threading.Event().wait)"
    command = [sys.executable, "-P", "-c", f"{waits}; from treesens.cli import main; main()"]
    process = subprocess.Popen(
        [*command, "check", "one.sens", "-t", "100"], cwd=hard, stderr=subprocess.PIPE, text=True
    )
    let_work(process, STARTED)
    process.send_signal(signal.SIGINT)
    try:
        _, err = process.communicate(timeout=90)
    except subprocess.TimeoutExpired:
        process.kill()
        pytest.fail(f"did not end in 90 s: {process.communicate()}")
    assert process.returncode == 130, err


UNWATCHFUL = {
    "python": "while True: pass",
    "a lock": "lock = threading.Lock(); lock.acquire(); lock.acquire()",
    "finishing": """
    try:
        for i in iter(int, 1): sum(range(9))
    except Hurry:
        while True: sum(range(9))""",
    "the engine": "solver.fix(10**15)",
}


@posix
@pytest.mark.parametrize("work", UNWATCHFUL)
def test_work_that_never_looks_up_is_left_after_ctrl_c(work: str) -> None:
    """A library that was imported for the first time, a parser or a pass went on to its end after Ctrl-C: 18 s under load."""
    script = f"""
import os, signal, sys, threading, time
import numpy as np
from tests.engine.tiny import Shape, random_problem
from treesens.runtime.interruption import Hurry, interruptible
from treesens.backends.native.solver import Solver
if {"solver" in UNWATCHFUL[work]}:
    shape = Shape(shared=14, sensitive=6, cells=30, trees=300, depth=9)
    solver = Solver(random_problem(np.random.default_rng(3), shape))
known = []
with interruptible() as interruption:
    known.append(1)
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    started = time.monotonic()
    {UNWATCHFUL[work]}
print(known, interruption.happened, time.monotonic() - started < 60)
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        cwd=Path(__file__).parents[2],
    )
    assert done.stdout == "[1] True True\n", (done.stdout, done.stderr)


@posix
def test_a_second_ctrl_c_ends_the_program() -> None:
    script = """
import os, signal
from treesens.runtime.interruption import interruptible
try:
    with interruptible() as interruption:
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(1000): pass
    print("went on")
except KeyboardInterrupt:
    print("ended")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=300)
    assert done.stdout == "ended\n", done.stderr


@linux
@pytest.mark.slow
def test_a_question_alone_needs_no_pool(hard: Path) -> None:
    """Fault 29: `check -j 8` started eight processes for one question."""
    process = start(hard, "check", "one.sens", "-j", "8", "-t", "200")
    try:
        let_work(process, STARTED)
        assert process.poll() is None
        assert sum(map(cpu_seconds, [process.pid, *children_of(process.pid)])) >= STARTED, "nothing searches"
        commands = [Path(f"/proc/{pid}/cmdline").read_text() for pid in children_of(process.pid)]
        assert not any("sweeps.worker" in command for command in commands), commands
    finally:
        process.kill()
        process.communicate()


@linux
@pytest.mark.slow
def test_one_open_question_of_a_sweep_needs_one_process(hard: Path) -> None:
    """`sweep -j 8` with a single open question started two processes."""
    process = start(hard, "sweep", "one.sens", "-j", "8", "-t", "20", "--journal", "o.sqlite")
    try:
        let_work(process, STARTED)
        commands = [Path(f"/proc/{pid}/cmdline").read_text() for pid in children_of(process.pid)]
        assert sum("sweeps.worker" in command for command in commands) == 2, "a server and its only fork"
    finally:
        process.kill()
        process.communicate()


HOSTILE = 'import os\nopen(os.environ["MARK"], "a").write(__name__ + "\\n")\n'


@pytest.mark.parametrize(
    "command",
    [
        ("info", "model.tl"),
        ("check", "q.sens", "-j", "2"),
        ("sweep", "q.sens", "-j", "2"),
        ("check", "q.sens", "-b", "z3"),
    ],
)
def test_no_child_imports_from_the_working_directory(tmp_path: Path, command: tuple[str, ...]) -> None:
    """Fault 15: `info x.tl` ran `./treelite.py`; `sweep` and `check -j 2` imported from there in their processes."""
    if command[0] == "info":
        pytest.importorskip("treelite")
    (tmp_path / "model.tl").write_bytes(MAKERS["treelite.tl"](tmp_path) if command[0] == "info" else b"")
    (tmp_path / "xgboost.json").write_bytes(MAKERS["xgboost.json"](tmp_path))
    queries = [f"query q{i}: sensitive m to {{a}} margin 0.{i}\n" for i in (1, 2)]
    (tmp_path / "q.sens").write_text('model m from "xgboost.json"\n' + "".join(queries))
    for name in (
        "treelite",
        "json",
        "joblib",
        "numpy",
        "z3",
        "secrets",
        "lark",
        "sqlite3",
        "random",
        "ctypes",
        "xgboost",
    ):
        (tmp_path / f"{name}.py").write_text(HOSTILE)
    mark = tmp_path / "mark"
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONSAFEPATH"}
    done = subprocess.run(
        [*CLI, *command],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**environment, "MARK": str(mark)},
        timeout=120,
        check=False,
    )
    assert not mark.exists(), mark.read_text()
    assert done.returncode == 0, done.stderr


def test_no_module_needs_what_only_posix_has() -> None:
    """`extensions/sweeps/worker.py` imported `resource`: `sweep` and `check -j 2` could not start on Windows."""
    script = """
import importlib, pkgutil, sys
for name in ("resource", "fcntl", "termios", "pwd", "grp", "pty", "tty", "syslog", "crypt", "spwd"):
    sys.modules[name] = None
import treesens
for found in pkgutil.walk_packages(treesens.__path__, "treesens."):
    if not found.name.endswith("__main__"):
        importlib.import_module(found.name)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
