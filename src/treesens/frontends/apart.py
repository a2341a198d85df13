"""Reading a file with a library that a damaged file may crash: in a process of its own, with limits on its time and memory."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from treesens.compiler.base.processes import environment
from treesens.errors import ModelError
from treesens.frontends.reading_process import fork_for

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
