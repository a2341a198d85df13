"""Processes that we start: they import nothing from the working directory, and none outlives its parent.

A process that computes for nobody would go on until its own limit, if it has one. On Linux the kernel ends it with the thread
that started it; elsewhere (and besides) a thread of its own watches.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_WATCH_SECONDS = 0.3
_PR_SET_PDEATHSIG = 1
_SAFE = "PYTHONSAFEPATH"

LAUNCHER = """
import os, sys
parent, seconds, memory = (int(x) for x in sys.argv[1:4])
if sys.platform == "linux":
    import ctypes
    ctypes.CDLL(None).prctl(1, 9)
    if os.getppid() != parent:
        sys.exit(3)
if os.name == "posix":
    import resource
    if memory:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
os.execvp(sys.argv[4], sys.argv[4:])
"""


def environment(**more: str) -> dict[str, str]:
    """The environment of a child: it sees the modules that we see, plug-ins on a path added while running included, and no
    others. A file of the working directory must not stand in for a library.
    """
    return {**os.environ, "PYTHONPATH": os.pathsep.join(import_path()), _SAFE: "1", **more}


def import_path() -> list[str]:
    """`sys.path` without the working directory, if it is there only because Python was started in it."""
    paths = sys.path
    try:
        here = os.getcwd()
    except OSError:  # the folder has been removed: what is relative to it is gone, too
        return [path for path in paths if os.path.isabs(path)]
    if not sys.flags.safe_path and paths and paths[0] in ("", here):
        paths = paths[1:]
    return [os.path.abspath(path) for path in paths if path]


@contextmanager
def safe_children() -> Iterator[None]:
    """For the time of the block children that other libraries start do not import from the working directory, either."""
    before = os.environ.get(_SAFE)
    os.environ[_SAFE] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_SAFE]
        else:
            os.environ[_SAFE] = before


def launched(command: list[str], seconds: float, memory: int | None) -> list[str]:
    """The command of a foreign program that ends with this process (Linux) and has limits of its own: seconds of CPU, bytes."""
    limits = [str(os.getpid()), str(int(seconds) + 1), str(memory or 0)]
    return [sys.executable, "-P", "-S", "-c", LAUNCHER, *limits, *command]


def die_with_starter() -> None:
    """The kernel kills this process when the thread that started it ends (Linux)."""
    if sys.platform != "linux":
        return
    import ctypes

    parent = os.getppid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(3)


def die_without_parent(parent: int) -> None:
    """A thread of this process ends it when its parent, the process of that number, is gone (perhaps by now). Needs the
    interpreter's lock from time to time.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_WATCH_SECONDS)
        os._exit(3)

    threading.Thread(target=watch, daemon=True).start()


def die_at_end_of(read: Callable[[], bytes]) -> None:
    """A thread of this process ends it when a pipe from its parent is closed: on every system."""

    def watch() -> None:
        try:
            while read():
                pass
        finally:
            os._exit(3)

    threading.Thread(target=watch, daemon=True).start()
