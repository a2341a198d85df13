"""Runs the command line as its users do, in a process of its own with its folder, its output and its exit code.

Most of such a process would be the start of Python and the loading of the package, for each of many hundred calls: on Linux the
process is a fork of one that has loaded it. What a start costs, and what it loads, is tested with real starts
(`tests/commands/test_info.py`, `tests/commands/test_doctor.py`, `tests/hostile/test_processes.py`).
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import pickle
import pkgutil
import struct
import subprocess
import sys
import threading
from pathlib import Path

from treesens.compiler.base.fork_server import ForkServer, serve
from treesens.compiler.base.processes import environment

CLI = [sys.executable, "-c", "from treesens.cli import main; main()"]


_HEADER = struct.Struct("<Q")


def run_command(
    folder: Path, *arguments: str, given: str = "", timeout: float = 120.0, memory: int | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    """`treesens ARGUMENTS` in a folder; `given` is its input, `memory` its address space in bytes, and `variables` more of the
    environment.
    """
    known = {**os.environ, **variables}
    if sys.platform != "linux":
        return subprocess.run(
            [*CLI, *arguments], cwd=folder, capture_output=True, text=True, check=False, timeout=timeout, input=given,
            env=known,
        )  # fmt: skip
    process = _server(os.getpid()).fork()
    job = pickle.dumps((str(folder), arguments, known, memory))
    with process.stdin, contextlib.suppress(BrokenPipeError):  # a command need not read its input
        process.stdin.write(_HEADER.pack(len(job)) + job + given.encode())
        process.stdin.flush()
    texts: dict[str, str] = {}

    def read(name: str) -> None:
        with getattr(process, name) as pipe:
            texts[name] = pipe.read().decode()

    readers = [threading.Thread(target=read, args=(name,)) for name in ("stdout", "stderr")]
    for reader in readers:
        reader.start()
    try:
        code = process.wait(timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    finally:
        for reader in readers:
            reader.join()
    return subprocess.CompletedProcess(["treesens", *arguments], code, texts["stdout"], texts["stderr"])


@functools.cache
def _server(_process: int) -> ForkServer:
    """The server of a process of tests; a fork of it (`pytest --forked`, say) has its own."""
    places = os.pathsep.join([str(Path(__file__).parents[1]), environment()["PYTHONPATH"]])
    return ForkServer.start(__name__, [], (os.getcwd(), tuple(sorted(environment(PYTHONPATH=places).items()))))


def load_all() -> None:
    """All that is ours, and what most commands load of others."""
    import treesens

    for module in pkgutil.walk_packages(treesens.__path__, "treesens."):
        if not module.name.endswith(("__main__", "pytest_plugin", "mlflow_evaluator")):
            importlib.import_module(module.name)
    for name in ("pandas", "xgboost"):
        importlib.import_module(name)


def _read(size: int) -> bytes:
    """So many bytes of the input, and none of those after them."""
    parts = b""
    while len(parts) < size:
        parts += os.read(0, size - len(parts))
    return parts


def _run() -> None:
    """One command, in a fork."""
    (size,) = _HEADER.unpack(_read(_HEADER.size))
    folder, arguments, env, memory = pickle.loads(_read(size))
    if memory is not None:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    os.environ.clear()
    os.environ.update(env)
    os.chdir(folder)
    sys.argv = ["treesens", *arguments]
    from treesens.cli import main

    main()


if __name__ == "__main__":
    load_all()
    serve(_run)
