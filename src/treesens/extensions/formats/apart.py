"""Reads a file in a separate process, with limited time and memory, if a damaged file may crash the library."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout

from treesens.errors import ModelError
from treesens.runtime.child import NoValue, Parent, run

_asked: set[str] = set()
"""Modules that were requested before; a fork server is started only for later files, because its start delays the first."""
_SECONDS, _SECONDS_PER_MB = 1, 2
_BYTES, _BYTES_PER_BYTE = 500_000_000, 100
_START_SECONDS = 60
"""Additional seconds for a busy machine to start Python."""


def read_apart(imports: str, body: str, arguments: Sequence[str], size: int, failed: str, place: str) -> str:
    """The output of a program that reads `size` bytes: the program runs `imports` (`import A, B`), and then `body` within
    limits, with `arguments` in `sys.argv[3:]`.

    Raises ModelError, with a message that begins with `failed`, if the program fails, crashes, or exceeds its time or memory.
    """
    seconds, memory = _SECONDS + _SECONDS_PER_MB * size // 1_000_000, _BYTES + _BYTES_PER_BYTE * size
    known, loads = imports in _asked, imports.removeprefix("import ").split(", ")
    _asked.add(imports)
    try:
        program = (imports, body, list(arguments), seconds, memory)
        found = run(read, *program, seconds=seconds + _START_SECONDS, loads=(__name__, *loads), fork=known)
    except NoValue as reason:
        last = (reason.words.splitlines() or ["it crashed"])[-1]
        words = failed if reason.late else f"{failed}: {last[:200]}"
        raise ModelError(words, place=place, remedy="save it again") from None
    return str(found)


def read(parent: Parent, imports: str, body: str, arguments: list[str], seconds: int, memory: int) -> str:
    """Runs the program in the child process, and returns its output."""
    del parent
    names = {"sys": sys}
    sys.argv = ["read", str(seconds), str(memory), *arguments]
    exec(imports, names)
    _limit(seconds, memory)
    with redirect_stdout(io.StringIO()) as printed:
        exec(body, names)
    return printed.getvalue()


def _limit(seconds: int, memory: int) -> None:
    """Sets limits after the imports, because damaged numbers can exhaust memory or cause endless loops."""
    try:
        import resource
    except ImportError:  # Windows
        return

    def limit(what: int, most: int) -> None:
        hard = resource.getrlimit(what)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (most, most))

    limit(resource.RLIMIT_CPU, int(sum(resource.getrusage(resource.RUSAGE_SELF)[:2])) + 1 + seconds)
    if sys.platform == "linux":
        with open("/proc/self/statm") as file:
            mapped = int(file.read().split()[0]) * resource.getpagesize()
        limit(resource.RLIMIT_AS, mapped + memory)
