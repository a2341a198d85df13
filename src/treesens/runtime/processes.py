"""Child processes, which import nothing from the working directory and do not outlive their parent.

An orphaned process would run until its own time limit, if any. On Linux the kernel kills a child when the thread that started
it ends; elsewhere, a thread of the child detects that the pipe from the parent is closed (`child.py`).
"""

from __future__ import annotations

import os
import signal
import sys

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
    """The environment of a child. The child's module path is the parent's, including plug-ins on paths added at run time: a
    file in the working directory must not shadow a library.
    """
    return {**os.environ, "PYTHONPATH": os.pathsep.join(import_path()), _SAFE: "1", **more}


def import_path() -> list[str]:
    """`sys.path` without the working directory, unless this directory was added explicitly."""
    paths = sys.path
    try:
        here = os.getcwd()
    except OSError:  # the folder was deleted, so relative paths lead nowhere
        return [path for path in paths if os.path.isabs(path)]
    if not sys.flags.safe_path and paths and paths[0] in ("", here):
        paths = paths[1:]
    return [os.path.abspath(path) for path in paths if path]


def launched(command: list[str], seconds: float, memory: int | None) -> list[str]:
    """The command line of an external program that is killed when this process ends (Linux), with limits on CPU and memory."""
    limits = [str(os.getpid()), str(int(seconds) + 1), str(memory or 0)]
    return [sys.executable, "-P", "-S", "-c", LAUNCHER, *limits, *command]


def die_with_starter() -> None:
    """Makes the kernel kill this process when the thread that started it ends (Linux)."""
    if sys.platform != "linux":
        return
    import ctypes

    parent = os.getppid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(3)
