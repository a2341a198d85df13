"""Processes of solvers as forks of one that has the solver's library loaded (Linux).

One server serves one backend, because some libraries cannot be loaded together (`worker.py`). A solver's process then takes
milliseconds to start, where Python and the library take 0.4 to 1 s, more than most solves do.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import os
import sys
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field

from treesens.backends.base import get_backend
from treesens.backends.job import solve_the_job
from treesens.compiler.base.fork_server import Forked, ForkServer, Place, serve
from treesens.compiler.base.processes import environment
from treesens.errors import TreesensError


@dataclass
class _Known:
    """The servers of this process, by backend and number of threads."""

    servers: dict[tuple[str, int], ForkServer] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def server(self, backend: str, threads: int, place: Place) -> ForkServer:
        """The server of a backend, started if there is none in that place. OSError if it cannot be."""
        with self.lock:
            known = self.servers.get((backend, threads))
            if known is None or known.place != place or known.process.poll() is not None:
                known = self.servers[backend, threads] = ForkServer.start(__name__, [backend], place)
            return known

    def drop(self, backend: str, threads: int, server: ForkServer | None) -> None:
        """Ends a server that does not answer, and forgets it if it is still the one in use."""
        with self.lock:
            if server is not None and self.servers.get((backend, threads)) is server:
                del self.servers[backend, threads]
        if server is not None:
            server.process.kill()

    def forget(self) -> None:
        """A fork of this process must not talk with our servers, nor keep them alive."""
        for server in self.servers.values():
            server.channel.close()
        self.servers.clear()
        self.lock = threading.Lock()

    def end(self) -> None:
        while self.servers:
            self.servers.popitem()[1].end()


_known = _Known()
if sys.platform == "linux":
    os.register_at_fork(after_in_child=_known.forget)
    atexit.register(_known.end)


def start_loading(backends: Iterable[str], threads: int) -> None:
    """Starts the servers of several backends, which load beside each other while their models are written."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):  # `fork_of` does without
            for backend in backends:
                _known.server(backend, threads, _place(threads))


def _place(threads: int) -> Place:
    return os.getcwd(), tuple(sorted(environment(OMP_NUM_THREADS=str(threads)).items()))


def fork_of(backend: str, threads: int) -> Forked | None:
    """A process with the backend's library loaded; None if this system has no servers of processes, or no room for one.

    A server is started at the first solve, and again if the environment or the working directory has changed. One that
    nobody needs any more ends by itself.
    """
    if sys.platform != "linux":
        return None
    for _ in range(2):
        server = None
        try:
            server = _known.server(backend, threads, _place(threads))
            return server.fork()
        except OSError:  # killed from outside: the second one is new
            _known.drop(backend, threads, server)
    return None


def main() -> None:
    """The server's side: loads the library of a backend."""
    # Whatever fails here fails in the fork again, which can say so.
    with contextlib.suppress(TreesensError, ImportError, OSError):
        for module in get_backend(sys.argv[1]).modules:
            importlib.import_module(module)
    serve(solve_the_job)


if __name__ == "__main__":
    main()
