"""Questions in processes of this machine. Each worker is a pool of one process, so that it dies alone.

In a pool of several processes none goes on if one of them dies, as all of them read from one pipe. Processes are kept from one
run to the next, for some minutes.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from dataclasses import dataclass, replace
from typing import Any

from treesens.extensions.sweeps.worker import Outcome, Shipment, Task, answer_task, leash

_LOOK_SECONDS = 0.05
_LAST_WORDS_SECONDS = 0.3
"""From a Ctrl-C until processes are killed: for answers that are on their way."""
_IDLE_SECONDS = 300.0
"""A process that has had nothing to do for so long ends."""

_idle: list[Worker] = []
_lock = threading.Lock()


class Worker:
    """A process, and what it is asked."""

    def __init__(self) -> None:
        self.pool = _pool_of_one()
        self.task: Task | None = None
        self.answer: Future[Outcome] | None = None
        self.since = 0.0

    def ask(self, shipment: Shipment, task: Task) -> None:
        """Sends a question. A process that has died since its last answer is replaced first."""
        leashed = replace(task, leashed=True)
        try:
            self.answer = self.pool.submit(answer_task, shipment, leashed)
        except BrokenExecutor:
            self.pool = _pool_of_one()
            self.answer = self.pool.submit(answer_task, shipment, leashed)
        self.task, self.since = task, time.monotonic()

    def taken(self) -> tuple[Task, Outcome | BaseException]:
        """What was asked and what came of it: an outcome, or the error that says that the process has died."""
        assert self.task is not None
        assert self.answer is not None
        task, answer = self.task, self.answer
        self.task = self.answer = None
        try:
            return task, answer.result()
        except BrokenExecutor as error:
            self.pool = _pool_of_one()
            return task, error

    def given_up(self, patience: float) -> tuple[Task, Outcome | BaseException]:
        """Ends a process that does not answer."""
        assert self.task is not None
        task = self.task
        self.end()
        self.task = self.answer = None
        self.pool = _pool_of_one()
        return task, TimeoutError(f"no answer in {patience:.0f} s")

    def end(self) -> None:
        """Ends the process, whatever it does.

        A pool that is killed after `submit`, before its thread passes the task on, ends with a KeyError in that thread, which
        prints its traceback.
        """
        until = time.monotonic() + _LAST_WORDS_SECONDS
        while (
            self.answer is not None and not (self.answer.running() or self.answer.done()) and time.monotonic() < until
        ):
            time.sleep(0.001)
        self.pool.shutdown(wait=False, kill_workers=True)


def _pool_of_one() -> Any:
    """One process, which starts with its first task. loky's, which runs no script of its parent a second time."""
    from joblib._parallel_backends import ParallelBackendBase
    from joblib.externals.loky import ProcessPoolExecutor

    threads = dict.fromkeys(ParallelBackendBase.MAX_NUM_THREADS_VARS, "1")
    return ProcessPoolExecutor(
        max_workers=1, timeout=_IDLE_SECONDS, initializer=leash, initargs=(os.getpid(),), env=threads
    )


def _borrowed() -> Worker:
    with _lock:
        return _idle.pop() if _idle else Worker()


def _give_back(workers: list[Worker], most: int) -> None:
    """Workers with nothing to do are kept, so many at most."""
    with _lock:
        _idle.extend(worker for worker in workers if worker.task is None)
        spare, _idle[:] = _idle[most:], _idle[:most]
    for worker in (*spare, *(worker for worker in workers if worker.task is not None)):
        worker.end()


@dataclass
class _Crew:
    """The workers of one run, of which there are `jobs` at most, and what has to be asked again."""

    take: Callable[[], Task | None]
    shipments: Mapping[str, Shipment]
    jobs: int
    patience: float

    def __post_init__(self) -> None:
        self.workers: list[Worker] = []
        self.again: deque[Task] = deque()
        self.lost: set[str] = set()

    def set_to_work(self) -> None:
        """Gives every free worker a question, as long as there are any."""
        free = [worker for worker in self.workers if worker.task is None]
        while free or len(self.workers) < self.jobs:
            task = self.again.popleft() if self.again else self.take()
            if task is None:
                return
            if free:
                worker = free.pop()
            else:
                worker = _borrowed()
                self.workers.append(worker)
            worker.ask(self.shipments[task.document], task)

    def busy(self) -> list[Future[Outcome]]:
        return [worker.answer for worker in self.workers if worker.answer is not None]

    def outcomes(self) -> Iterator[Outcome]:
        """Of the workers that have answered, have died, or have taken too long. The first loss is asked again."""
        for worker in self.workers:
            if worker.answer is None:
                continue
            if worker.answer.done():
                task, came = worker.taken()
            elif time.monotonic() - worker.since > self.patience:
                task, came = worker.given_up(self.patience)
            else:
                continue
            again = task.key in self.lost
            if isinstance(came, BaseException) and not again:
                self.lost.add(task.key)
                self.again.append(task)
                continue
            self.lost.discard(task.key)
            if isinstance(came, BaseException):
                yield lost_twice(task, came)
            else:
                yield replace(came, attempts=2) if again else came


def on_processes(
    take: Callable[[], Task | None],
    shipments: Mapping[str, Shipment],
    jobs: int,
    patience: float,
    stop: threading.Event | None,
) -> Iterator[Outcome]:
    """The outcomes of all tasks that `take` gives; it is asked again after every outcome, even if it had none before.

    A question whose worker has died, or has not answered in `patience` seconds, is asked a second time at once; all others go
    on. If nobody asks for more outcomes, or some moments after `stop` is set, the processes that are at work are killed.
    """
    crew = _Crew(take, shipments, jobs, patience)
    last: float | None = None
    try:
        while last is None or time.monotonic() < last:
            if last is None:
                crew.set_to_work()
            if not (busy := crew.busy()):
                return
            wait(busy, timeout=_LOOK_SECONDS, return_when=FIRST_COMPLETED)
            arrived = list(crew.outcomes())
            if stop is not None and stop.is_set() and last is None:
                last = time.monotonic() + _LAST_WORDS_SECONDS
            if last is None:
                crew.set_to_work()  # nobody waits while the outcomes are looked at
            yield from arrived
    finally:
        _give_back(crew.workers, jobs)


def lost_twice(task: Task, error: BaseException) -> Outcome:
    """What is said of a question that came back without an answer two times."""
    text = str(error).strip().splitlines()
    reason = f"{type(error).__name__}: {text[0]}" if text else type(error).__name__
    return Outcome(task.key, failure=f"the worker died or hung twice ({reason})", attempts=2)
