"""Runs every solve in its own process (`runtime/child.py`) with limits on time and memory; crashes become reasons.

Some solver libraries cannot be loaded together (python-mip's CBC and OR-tools have conflicting symbols, highspy >= 1.15 and
OR-tools too, https://github.com/google/or-tools/issues/5246), and some ignore their own time limit: a server process loads only
one backend's library. Every incumbent is sent as soon as it is found, so that killing a worker does not lose the incumbent.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from treesens.backends.base import Artifact, Limits, RawOutcome, Termination, Trace, get_backend
from treesens.compiler.base.arrays import BoolArray
from treesens.compiler.base.budget import StopEvent
from treesens.compiler.result import Moment
from treesens.errors import BackendError, TreesensError
from treesens.runtime import child as processes
from treesens.runtime.child import Child, Parent, Value, wait_for_news

_CHECK_SECONDS = 30.0
_GRACE_SECONDS = 2.0
"""Grace period in seconds after the time limit, during which a solver may still return its bound."""
_APART = 0.02
"""Least seconds between two moments that are kept."""


def modules_of(backend: str) -> tuple[str, ...]:
    """The modules that the server of a backend loads: this module, the backend's, and the solver's library."""
    with contextlib.suppress(TreesensError):  # an unknown backend: its process says so
        found = get_backend(backend)
        return (__name__, type(found).__module__, *found.modules)
    return (__name__,)


def start_loading(backends: Iterable[str], threads: int) -> None:
    """Starts the servers of several backends, which load libraries while the backends' models are written."""
    for backend in backends:
        processes.start_loading(modules_of(backend), threads)


def solve(parent: Parent, backend: str, artifact: Artifact, limits: Limits, scratch: str | None) -> RawOutcome:
    """The child's side of a solve."""
    if scratch is not None:
        os.environ["TMPDIR"] = tempfile.tempdir = scratch

    def on_incumbent(assignment: BoolArray) -> None:
        parent.send((np.packbits(assignment), len(assignment)))

    solver = get_backend(backend)
    trace = Trace(artifact, parent.send)
    if limits.watch and artifact.optimises:
        limits = replace(limits, report=trace)
    try:
        with _logged(limits):
            outcome = solver.solve(artifact, limits, on_incumbent)
        trace.end()
        return outcome
    except MemoryError:
        return RawOutcome(Termination.MEMORY, detail="out of memory")
    except BackendError as error:
        return RawOutcome(Termination.UNSUPPORTED, detail=str(error))


@contextlib.contextmanager
def _logged(limits: Limits) -> Iterator[None]:
    """Appends the output of this process, which solvers write in C, to the log."""
    if limits.log is not None:
        with limits.log.open("ab") as file:
            os.dup2(file.fileno(), 1)
    try:
        yield
    finally:
        if limits.log is not None:
            if os.name == "posix":
                ctypes.CDLL(None).fflush(None)  # the process ends without flushing the buffers of C
            if not limits.log.stat().st_size:  # this solver has no log
                limits.log.unlink()


def reason_against(_parent: Parent, backend: str) -> tuple[str, str | None] | None:
    """The child's side of `check_options`: the message and the remedy of a rejected option, or None."""
    steered = get_backend(backend)
    try:
        steered.configure(steered.fresh())
    except BackendError as error:
        return error.message, error.remedy
    return None


def check_options(backend: str) -> None:
    """Raises BackendError if a backend is unknown, or if its solver rejects an option, e.g. of `highs{presolve=off}`.

    Only the solver knows its options, so a child process asks the solver. A missing solver accepts all options.
    """
    steered = get_backend(backend)
    if not steered.options or steered.available() is not None:
        return
    try:
        rejected = processes.run(reason_against, backend, seconds=_CHECK_SECONDS, loads=modules_of(backend))
    except processes.NoValue as reason:
        raise BackendError(f"the options of `{backend[:80]}` cannot be checked: {reason}") from None
    if rejected is not None:
        raise BackendError(rejected[0], remedy=rejected[1])


@dataclass
class Worker:
    """One running solve. `take` reads the messages received so far; `outcome` is set when the solve is over."""

    backend: str
    limits: Limits
    child: Child
    outcome: RawOutcome | None = None
    incumbents: list[BoolArray] = field(default_factory=list)
    moments: list[Moment] = field(default_factory=list)
    _killed: Termination | None = None
    _scratch: tempfile.TemporaryDirectory[str] | None = None
    """Temporary files of the solve. This process owns the folder, because a killed solver cannot remove its files."""

    @staticmethod
    def start(backend: str, artifact: Artifact, limits: Limits) -> Worker:
        scratch = None
        with contextlib.suppress(OSError):  # no temporary folder: a backend that writes no file works without
            scratch = tempfile.TemporaryDirectory(prefix="treesens-", ignore_cleanup_errors=True)
        child = Child.start(
            solve,
            *(backend, artifact, limits, scratch and scratch.name),
            loads=modules_of(backend),
            threads=limits.threads,
            memory=limits.memory,
        )
        return Worker(backend, limits, child, _scratch=scratch)

    def take(self) -> list[BoolArray]:
        """The incumbents received since the last call; the outcome is stored."""
        known = len(self.incumbents)
        while self.child.news:
            message = self.child.news.popleft()
            if isinstance(message, Value):
                self.outcome = message.value
            elif len(message) == 3:
                if len(self.moments) > 1 and message[0] - self.moments[-2][0] < _APART:
                    self.moments.pop()
                self.moments.append(message)
            else:
                self.incumbents.append(np.unpackbits(message[0], count=message[1]).astype(bool))
        return self.incumbents[known:]

    def kill(self, reason: Termination) -> None:
        """Kills the solve's process and all its child processes immediately."""
        if self.child.process.poll() is None:
            self._killed = reason
        self.child.kill()

    def close(self) -> None:
        """Terminates the solve, and removes its files."""
        self.child.close()
        if self._scratch is not None:
            self._scratch.cleanup()

    def finish(self) -> RawOutcome:
        """The outcome of a solve that has closed its pipe, with the moments that it reported."""
        return replace(self._outcome(), trajectory=tuple(self.moments) or None)

    def _outcome(self) -> RawOutcome:
        """The outcome; if the solve sent no outcome, its exit status gives the reason."""
        last = self.incumbents[-1] if self.incumbents else None
        if self.outcome is not None:
            found = self.outcome
            if found.assignment is None and last is not None and found.termination is not Termination.INFEASIBLE:
                return RawOutcome(found.termination, last, found.bound, found.detail, found.statistics)
            return found
        if self._killed is not None:
            return RawOutcome(self._killed, last, detail=f"killed after {self.child.seconds:.1f} s")
        why = self.child.why()
        memory = "MemoryError" in why.words or "bad_alloc" in why.words
        reason = Termination.MEMORY if memory else Termination.CRASH
        return RawOutcome(
            reason, last, detail=f"{str(why).replace('the process', 'the solver process')}: {why.words[-400:]}"
        )


def run_all(
    workers: list[Worker],
    *,
    stop: StopEvent | None = None,
    on_incumbent: Callable[[Worker, BoolArray], None] | None = None,
) -> Iterator[tuple[Worker, RawOutcome]]:
    """Waits for workers and yields each outcome as it arrives; if the consumer stops, the remaining workers are killed.

    A worker is killed after its time limit and a grace period; all workers are killed if `stop` is set.
    """
    running = list(workers)
    try:
        while running:
            wait_for_news([worker.child for worker in running], 0.05)
            for worker in list(running):
                ended = worker.child.ended
                for assignment in worker.take():
                    if on_incumbent is not None:
                        on_incumbent(worker, assignment)
                if ended or worker.outcome is not None:
                    running.remove(worker)
                    yield worker, worker.finish()
            for worker in running:
                if stop is not None and stop.is_set():
                    worker.kill(Termination.INTERRUPTED)
                elif worker.child.seconds > worker.limits.seconds + _GRACE_SECONDS:
                    worker.kill(Termination.TIME)
    finally:
        for worker in workers:
            worker.close()


def solve_isolated(backend: str, artifact: Artifact, limits: Limits, stop: StopEvent | None = None) -> RawOutcome:
    """Runs one solve in one worker."""
    worker = Worker.start(backend, artifact, limits)
    for _, outcome in run_all([worker], stop=stop):
        return outcome
    return RawOutcome(Termination.CRASH, detail="the solver process did not start")
