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
import signal
import struct
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

from treesens.runtime.fork_server import Forked, ForkServer, serve
from treesens.runtime.processes import environment

CLI = [sys.executable, "-c", "from treesens.cli import main; main()"]


_HEADER = struct.Struct("<Q")


@dataclass
class ForkedCommand:
    """A command that runs in a fork, and what it has printed so far."""

    arguments: tuple[str, ...]
    process: Forked
    texts: dict[str, str]
    readers: list[threading.Thread]

    @staticmethod
    def start(
        folder: Path, arguments: tuple[str, ...], env: dict[str, str], limits: dict[str, int] | None = None
    ) -> ForkedCommand:
        """Starts a command, which waits for its input; `limits` are some of `resource`, as RLIMIT_AS."""
        process = _server(os.getpid()).fork()
        job = pickle.dumps((str(folder), arguments, env, limits or {}))
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(_HEADER.pack(len(job)) + job)
            process.stdin.flush()
        texts: dict[str, str] = {}

        def read(name: str) -> None:
            with getattr(process, name) as pipe:
                texts[name] = pipe.read().decode()

        readers = [threading.Thread(target=read, args=(name,)) for name in ("stdout", "stderr")]
        for reader in readers:
            reader.start()
        return ForkedCommand(arguments, process, texts, readers)

    def end(self, timeout: float, given: str = "") -> subprocess.CompletedProcess[str]:
        """Gives it all its input, unless that is closed, and waits for its end. One that does not end in so many seconds is
        killed, and `subprocess.TimeoutExpired` raised.
        """
        if not self.process.stdin.closed:
            with contextlib.suppress(BrokenPipeError), self.process.stdin:  # a command need not read its input
                self.process.stdin.write(given.encode())
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        finally:
            for reader in self.readers:
                reader.join()
        return subprocess.CompletedProcess(
            ["treesens", *self.arguments], code, self.texts["stdout"], self.texts["stderr"]
        )


def run_command(
    folder: Path,
    *arguments: str,
    given: str = "",
    timeout: float = 120.0,
    limits: dict[str, int] | None = None,
    **variables: str,
) -> subprocess.CompletedProcess[str]:
    """`treesens ARGUMENTS` in a folder; `given` is its input, `limits` are some of `resource` (RLIMIT_AS: bytes of its address
    space), which only Linux has here, and `variables` more of the environment.
    """
    known = {**os.environ, **variables}
    if sys.platform != "linux":
        return subprocess.run(
            [*CLI, *arguments], cwd=folder, capture_output=True, text=True, check=False, timeout=timeout, input=given,
            env=known,
        )  # fmt: skip
    return ForkedCommand.start(folder, arguments, known, limits).end(timeout, given)


@functools.cache
def _server(_process: int) -> ForkServer:
    """The server of a process of tests; a fork of it (`pytest --forked`, say) has its own."""
    places = os.pathsep.join([str(Path(__file__).parents[1]), environment()["PYTHONPATH"]])
    server = ForkServer.start(__name__, [], (os.getcwd(), tuple(sorted(environment(PYTHONPATH=places).items()))))
    server.channel.settimeout(None)  # it loads everything first; one that dies closes its end
    return server


def load_all() -> None:
    """All that is ours, and what most commands load of others."""
    import treesens

    for module in pkgutil.walk_packages(treesens.__path__, "treesens."):
        if not module.name.endswith(("__main__", "pytest_plugin", "mlflow_evaluator")):
            importlib.import_module(module.name)
    for name in ("pandas", "xgboost"):
        importlib.import_module(name)
    with contextlib.suppress(ImportError):
        importlib.import_module("skops.io")  # which looks at all of scikit-learn: 1.5 s for each model in a .skops file


def _read(size: int) -> bytes:
    """Exactly `size` bytes of the input, without reading ahead. The process exits if its starter is gone."""
    parts = b""
    while len(parts) < size:
        part = os.read(0, size - len(parts))
        if not part:
            os._exit(1)
        parts += part
    return parts


def _run() -> None:
    """One command, in a fork."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # as Python has it at its start; the server ignores it
    (size,) = _HEADER.unpack(_read(_HEADER.size))
    folder, arguments, env, limits = pickle.loads(_read(size))
    for name, most in limits.items():
        import resource

        resource.setrlimit(getattr(resource, name), (most, most))
    os.environ.clear()
    os.environ.update(env)
    os.chdir(folder)
    sys.argv = ["treesens", *arguments]
    from treesens.cli import main

    main()


if __name__ == "__main__":
    load_all()
    serve(_run)
