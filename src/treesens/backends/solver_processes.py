"""Processes of solvers as forks of one that has the solver's library loaded (Linux).

One server serves one backend, because some libraries cannot be loaded together (`worker.py`). A solver's process then takes
milliseconds to start, where Python and the library take 0.4 to 1 s, more than most solves do.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Iterable

from treesens.backends.base import get_backend
from treesens.backends.job import solve_the_job
from treesens.compiler.base.fork_server import Forked, Place, Servers, serve
from treesens.compiler.base.processes import environment
from treesens.errors import TreesensError

_known = Servers(__name__)


def start_loading(backends: Iterable[str], threads: int) -> None:
    """Starts the servers of several backends, which load beside each other while their models are written."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):  # `fork_of` does without
            for backend in backends:
                _known.server((backend, threads), [backend], _place(threads))


def _place(threads: int) -> Place:
    return os.getcwd(), tuple(sorted(environment(OMP_NUM_THREADS=str(threads)).items()))


def fork_of(backend: str, threads: int) -> Forked | None:
    """A process with the backend's library loaded; None if this system has no servers of processes, or no room for one.

    A server is started at the first solve, and again if the environment or the working directory has changed. One that
    nobody needs any more ends by itself.
    """
    return _known.fork((backend, threads), [backend], lambda: _place(threads))


def main() -> None:
    """The server's side: loads the library of a backend."""
    # Whatever fails here fails in the fork again, which can say so.
    with contextlib.suppress(TreesensError, ImportError, OSError):
        for module in get_backend(sys.argv[1]).modules:
            importlib.import_module(module)
    serve(solve_the_job)


if __name__ == "__main__":
    main()
