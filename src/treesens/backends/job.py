"""The worker's side of a solve: reads one job from standard input, and answers in messages on what was standard output.

Both are pickled, after their size; the parent's side is `worker.py`.
"""

from __future__ import annotations

import os
import pickle
import signal
import struct
import tempfile
import threading
from typing import IO, Any

import numpy as np

from treesens.backends.base import RawOutcome, Termination, get_backend
from treesens.compiler.base.arrays import BoolArray
from treesens.compiler.base.processes import die_at_end_of, die_with_starter

HEADER = struct.Struct("<Q")


def _limit_memory(limit: int | None) -> None:
    if limit is None or os.name != "posix":
        return
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _send(pipe: IO[bytes], lock: threading.Lock, message: Any) -> None:
    data = pickle.dumps(message)
    with lock:
        pipe.write(HEADER.pack(len(data)) + data)
        pipe.flush()


def solve_the_job() -> None:
    """The worker's side. Standard output becomes standard error for whatever the solver prints."""
    pipe = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    die_with_starter()
    source = os.fdopen(0, "rb", closefd=False)
    (size,) = HEADER.unpack(source.read(HEADER.size))
    name, artifact, limits, scratch = pickle.loads(source.read(size))  # noqa: S301 (written by our own parent)
    if scratch is not None:
        os.environ["TMPDIR"] = tempfile.tempdir = scratch
    die_at_end_of(lambda: os.read(0, 1))  # not of `source`: its lock would be held when the interpreter ends
    lock = threading.Lock()

    def on_incumbent(assignment: BoolArray) -> None:
        _send(pipe, lock, (np.packbits(assignment), len(assignment)))

    _limit_memory(limits.memory)
    try:
        outcome = get_backend(name).solve(artifact, limits, on_incumbent)
    except MemoryError:
        outcome = RawOutcome(Termination.MEMORY, detail="out of memory")
    _send(pipe, lock, outcome)
    os._exit(0)  # some solver libraries crash in their destructors; the answer is out


if __name__ == "__main__":
    solve_the_job()
