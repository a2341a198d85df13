"""Processes that read files, as forks of one that has the library for them loaded (Linux)."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path
from typing import Any

from treesens.compiler.base.fork_server import Forked, Servers, serve
from treesens.compiler.base.processes import environment

_servers = Servers(__name__)
_asked: set[str] = set()
"""What was imported once already: a single file is read sooner without a server."""


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
