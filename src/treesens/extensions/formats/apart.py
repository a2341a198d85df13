"""Reading a file with a library that a damaged file may crash: in a process of its own, with limits on its time and memory.

On Linux the process is a fork of one that has the library loaded.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from treesens.compiler.base.fork_server import Forked, Servers, serve
from treesens.compiler.base.processes import environment
from treesens.errors import ModelError

_servers = Servers(__name__)
_asked: set[str] = set()
"""What was imported once already: a single file is read sooner without a server."""

# The limits begin when the libraries are there: damaged numbers make one ask for all memory, or for ever.
_LIMITS = """
import sys
try:
    import resource
except ImportError:
    pass
else:
    seconds, memory = int(sys.argv[1]), int(sys.argv[2])

    def limit(what, most):
        hard = resource.getrlimit(what)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (most, most))

    limit(resource.RLIMIT_CPU, int(sum(resource.getrusage(resource.RUSAGE_SELF)[:2])) + 1 + seconds)
    if sys.platform == "linux":
        mapped = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        limit(resource.RLIMIT_AS, mapped + memory)
"""

_SECONDS, _SECONDS_PER_MB = 1, 2
_BYTES, _BYTES_PER_BYTE = 500_000_000, 100
_START_SECONDS = 60
"""On top, for a busy machine to start Python."""


def read_apart(imports: str, body: str, arguments: Sequence[str], size: int, failed: str, place: str) -> str:
    """What a program writes that reads `size` bytes: `imports`, then `body` within limits; `sys.argv[3:]` are the arguments.

    ModelError that begins with `failed` if it ends in an error, takes too long or too much memory, or crashes.
    """
    seconds = _SECONDS + _SECONDS_PER_MB * size // 1_000_000
    limits = [str(seconds), str(_BYTES + _BYTES_PER_BYTE * size)]
    try:
        code, told, errors = _run(imports, f"{_LIMITS}\n{body}", [*limits, *arguments], seconds + _START_SECONDS)
    except (subprocess.TimeoutExpired, UnicodeDecodeError):
        raise ModelError(failed, place=place, remedy="save it again") from None
    if code:
        last = (errors.strip().splitlines() or ["it crashed"])[-1]
        raise ModelError(f"{failed}: {last[:200]}", place=place, remedy="save it again")
    return told


def _run(imports: str, program: str, arguments: list[str], seconds: float) -> tuple[int, str, str]:
    """How a process ended, and what it wrote and complained. Raises `subprocess.TimeoutExpired`."""
    with tempfile.TemporaryDirectory() as folder:
        forked = fork_for(imports, program, arguments, Path(folder))
        if forked is not None:
            try:
                code = forked.wait(seconds)
            finally:
                forked.kill()
                forked.stdout.close()
                forked.stderr.close()
            return code, _text(Path(folder) / "out"), _text(Path(folder) / "err")
    command = [sys.executable, "-P", "-c", f"{imports}\n{program}", *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=seconds, check=False, env=environment(), encoding="utf-8"
    )
    return done.returncode, done.stdout, done.stderr


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def fork_for(imports: str, program: str, arguments: list[str], folder: Path) -> Forked | None:
    """A process that runs a program after these imports, the arguments in `sys.argv[1:]`; None if it has to be started.

    It writes into the files `out` and `err` of a folder.
    """
    if imports not in _asked:
        _asked.add(imports)
        return None
    forked = _servers.fork(imports, [imports], lambda: (os.getcwd(), tuple(sorted(environment().items()))))
    if forked is not None:
        job = {"program": program, "arguments": arguments, "folder": str(folder)}
        with forked.stdin as pipe:
            pipe.write(json.dumps(job).encode())
    return forked


def main() -> None:
    """The server's side: imports, and in each fork the program."""
    imports, names = sys.argv[1], dict[str, Any]()
    with contextlib.suppress(ImportError):  # fails in the fork again, which can say so
        exec(imports, names)

    def read() -> None:
        job = json.loads(sys.stdin.read())
        for place, name in ((1, "out"), (2, "err")):
            descriptor = os.open(Path(job["folder"]) / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            os.dup2(descriptor, place)
            os.close(descriptor)
        sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
        sys.argv = ["read", *job["arguments"]]
        exec(imports, names)
        exec(job["program"], names)
        sys.stdout.flush()
        os._exit(0)  # to tidy up a library takes longer than to read a file

    serve(read)


if __name__ == "__main__":
    main()
