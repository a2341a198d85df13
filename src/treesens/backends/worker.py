"""Every solve in a process of its own: hard limits on time and memory, and a crash that stays a reason.

On Linux such a process is a fork of one that has the library loaded (`solver_processes.py`); elsewhere it starts from nothing.

Some solver libraries cannot be loaded together (python-mip's CBC and OR-tools share symbols and break each other,
highspy >= 1.15 and OR-tools too, https://github.com/google/or-tools/issues/5246), and some ignore their own time limit.
The parent writes one pickled job to the worker's standard input; the worker (`job.py`) answers in pickled messages on a private
pipe, because solvers print to standard output as they like. Every incumbent is sent as soon as it is found, so that a killed
worker has not lost it.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from treesens.backends.base import Artifact, Limits, RawOutcome, Termination
from treesens.backends.job import HEADER
from treesens.backends.solver_processes import fork_of
from treesens.compiler.base.arrays import BoolArray
from treesens.compiler.base.budget import Flag
from treesens.compiler.base.fork_server import Forked
from treesens.compiler.base.processes import environment

_GRACE_SECONDS = 2.0
"""What a solver gets on top of its time limit to come back by itself with its bound."""


@dataclass
class Worker:
    """One running solve. `poll` reads what has arrived; `outcome` is set when it is over."""

    backend: str
    limits: Limits
    process: subprocess.Popen[bytes] | Forked
    started: float
    outcome: RawOutcome | None = None
    incumbents: list[BoolArray] = field(default_factory=list)
    _buffer: bytearray = field(default_factory=bytearray)
    _killed: Termination | None = None
    _stderr: list[bytes] = field(default_factory=list)
    _drainer: threading.Thread | None = None
    _scratch: tempfile.TemporaryDirectory[str] | None = None
    """The files of the solve. We own their folder, because a killed process leaves what it wrote."""

    @staticmethod
    def start(backend: str, artifact: Artifact, limits: Limits) -> Worker:
        started = time.monotonic()
        scratch = None
        with contextlib.suppress(OSError):  # no room for one: a backend that writes no file does without
            scratch = tempfile.TemporaryDirectory(prefix="treesens-", ignore_cleanup_errors=True)
        process = fork_of(backend, limits.threads) or subprocess.Popen(
            [sys.executable, "-P", "-m", "treesens.backends.job"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(OMP_NUM_THREADS=str(limits.threads)),
            start_new_session=os.name == "posix",
        )
        worker = Worker(backend, limits, process, started, _scratch=scratch)
        job = pickle.dumps((backend, artifact, limits, scratch and scratch.name))
        # Written from a thread: a large job must not block on a worker that is still importing.
        threading.Thread(target=worker._feed, args=(job,), daemon=True).start()
        worker._drainer = threading.Thread(target=worker._drain, daemon=True)
        worker._drainer.start()
        return worker

    def _feed(self, job: bytes) -> None:
        assert self.process.stdin is not None
        # The pipe stays open: its end tells the worker that we are gone.
        with contextlib.suppress(BrokenPipeError, ValueError):
            self.process.stdin.write(HEADER.pack(len(job)) + job)
            self.process.stdin.flush()

    def _drain(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._stderr.append(line)
            del self._stderr[:-20]

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started

    def read(self) -> bool:
        """Reads what the pipe holds now (blocks if it holds nothing); False at its end."""
        assert self.process.stdout is not None
        chunk = os.read(self.process.stdout.fileno(), 1 << 20)
        self._buffer += chunk
        while len(self._buffer) >= HEADER.size:
            (size,) = HEADER.unpack_from(self._buffer)
            if len(self._buffer) < HEADER.size + size:
                break
            message = pickle.loads(bytes(self._buffer[HEADER.size : HEADER.size + size]))  # noqa: S301 (our own child)
            del self._buffer[: HEADER.size + size]
            if isinstance(message, RawOutcome):
                self.outcome = message
            else:
                self.incumbents.append(np.unpackbits(message[0], count=message[1]).astype(bool))
        return bool(chunk)

    def kill(self, reason: Termination) -> None:
        """Ends the worker and everything it started, at once."""
        if self.process.poll() is None:
            self._killed = reason
            with contextlib.suppress(ProcessLookupError):
                if os.name == "posix":
                    os.killpg(self.process.pid, signal.SIGKILL)
                else:
                    self.process.kill()
        self.process.wait()

    def tidy(self) -> None:
        """Removes the files of an ended worker."""
        if self._scratch is not None:
            self._scratch.cleanup()

    def end(self) -> None:
        """Ends a worker that has closed its pipe. One that says nothing is dying by itself: how it ends is the reason."""
        if self.outcome is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=_GRACE_SECONDS)
        self.kill(Termination.INTERRUPTED)  # one that has answered has nothing left to do

    def finish(self) -> RawOutcome:
        """The outcome of an ended worker; what it did not say itself is read off its end."""
        code = self.process.wait()
        last = self.incumbents[-1] if self.incumbents else None
        if self.outcome is not None:
            if (
                self.outcome.assignment is None
                and last is not None
                and self.outcome.termination is not Termination.INFEASIBLE
            ):
                return RawOutcome(
                    self.outcome.termination, last, self.outcome.bound, self.outcome.detail, self.outcome.statistics
                )
            return self.outcome
        if self._killed is not None:
            return RawOutcome(self._killed, last, detail=f"killed after {self.seconds:.1f} s")
        if self._drainer is not None:
            self._drainer.join(timeout=_GRACE_SECONDS)
        words = b"".join(self._stderr).decode(errors="replace").strip()
        memory = "MemoryError" in words or "bad_alloc" in words
        reason = Termination.MEMORY if memory else Termination.CRASH
        return RawOutcome(reason, last, detail=f"the solver process ended with code {code}: {words[-400:]}")


def run_all(
    workers: list[Worker],
    *,
    stop: Flag | None = None,
    on_incumbent: Callable[[Worker, BoolArray], None] | None = None,
) -> Iterator[tuple[Worker, RawOutcome]]:
    """Waits for workers and yields each outcome as it comes; the rest is killed when the consumer stops asking.

    A worker past its time limit and a grace period is killed, and so are all when `stop` is set.
    """
    selector = selectors.DefaultSelector()
    running = list(workers)
    for worker in running:
        assert worker.process.stdout is not None
        selector.register(worker.process.stdout, selectors.EVENT_READ, worker)
    try:
        while running:
            for key, _ in selector.select(timeout=0.05):
                worker = key.data
                known = len(worker.incumbents)
                alive = worker.read()
                if on_incumbent is not None:
                    for assignment in worker.incumbents[known:]:
                        on_incumbent(worker, assignment)
                if not alive or worker.outcome is not None:
                    selector.unregister(key.fileobj)
                    running.remove(worker)
                    worker.end()
                    yield worker, worker.finish()
            for worker in running:
                if stop is not None and stop.is_set():
                    worker.kill(Termination.INTERRUPTED)
                elif worker.seconds > worker.limits.seconds + _GRACE_SECONDS:
                    worker.kill(Termination.TIME)
    finally:
        for worker in workers:
            worker.kill(Termination.INTERRUPTED)
            for pipe in (worker.process.stdout, worker.process.stdin):
                if pipe is not None:
                    with contextlib.suppress(BrokenPipeError):
                        pipe.close()
            worker.tidy()
        selector.close()


def solve_isolated(backend: str, artifact: Artifact, limits: Limits, stop: Flag | None = None) -> RawOutcome:
    """One solve in one worker."""
    worker = Worker.start(backend, artifact, limits)
    for _, outcome in run_all([worker], stop=stop):
        return outcome
    return RawOutcome(Termination.CRASH, detail="the solver process did not start")
