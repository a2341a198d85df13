"""Runs questions in local processes. A process that dies affects no other process; idle processes are kept for some minutes."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from treesens.compiler.base.budget import StopEvent
from treesens.extensions.sweeps.worker import Outcome, Shipment, Task, answer_tasks
from treesens.runtime.child import Child, wait_for_news

_LOOK_SECONDS = 0.05
_LAST_WORDS_SECONDS = 0.3
"""Seconds for answers in transit to arrive after Ctrl-C, before processes are killed."""

_idle: list[Worker] = []
_lock = threading.Lock()


class Worker:
    """A process and its current task."""

    def __init__(self) -> None:
        self.child = _begun()
        self.task: Task | None = None
        self.since = 0.0

    def ask(self, shipment: Shipment, task: Task) -> None:
        """Sends a question. If the process has exited since its last answer, it is replaced first."""
        if self.child.ended or self.child.news:  # it was idle for long
            self.end()
            self.child = _begun()
        self.child.send((shipment, task))
        self.task, self.since = task, time.monotonic()

    def taken(self, patience: float) -> tuple[Task, Outcome | Exception] | None:
        """The task with its outcome, or with an error if the process has died or takes too long; None while it is running."""
        task, ended = self.task, self.child.ended
        if task is None:
            return None
        came: Outcome | Exception
        if self.child.news and isinstance(answer := self.child.news.popleft(), Outcome):
            came = answer
        elif ended:
            came = self.child.why()
        elif time.monotonic() - self.since > patience:
            self.end()
            came = TimeoutError(f"no answer in {patience:.0f} s")
        else:
            return None
        self.task = None
        return task, came

    def end(self) -> None:
        """Kills the process, even in the middle of a task."""
        self.child.close()


def _begun() -> Child:
    return Child.start(answer_tasks, loads=(answer_tasks.__module__,))


def _borrowed() -> Worker:
    with _lock:
        return _idle.pop() if _idle else Worker()


def _give_back(workers: list[Worker], most: int) -> None:
    """Keeps up to `most` idle workers for later runs, and kills all others."""
    with _lock:
        _idle.extend(worker for worker in workers if worker.task is None)
        spare, _idle[:] = _idle[most:], _idle[:most]
    for worker in (*spare, *(worker for worker in workers if worker.task is not None)):
        worker.end()


@dataclass
class _Crew:
    """The workers of one run, at most `jobs`, and the tasks to retry."""

    take: Callable[[], Task | None]
    shipments: Mapping[str, Shipment]
    jobs: int
    patience: float

    def __post_init__(self) -> None:
        self.workers: list[Worker] = []
        self.again: deque[Task] = deque()
        self.lost: set[str] = set()

    def set_to_work(self) -> None:
        """Assigns a question to every free worker while questions remain."""
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

    def busy(self) -> list[Child]:
        return [worker.child for worker in self.workers if worker.task is not None]

    def outcomes(self) -> Iterator[Outcome]:
        """The outcomes of tasks whose workers have answered, died or taken too long. A lost task is retried once."""
        for taken in (worker.taken(self.patience) for worker in self.workers):
            if taken is None:
                continue
            task, came = taken
            again = task.key in self.lost
            if isinstance(came, Exception) and not again:
                self.lost.add(task.key)
                self.again.append(task)
                continue
            self.lost.discard(task.key)
            if isinstance(came, Exception):
                yield lost_twice(task, came)
            else:
                yield replace(came, attempts=2) if again else came


def on_processes(
    take: Callable[[], Task | None],
    shipments: Mapping[str, Shipment],
    jobs: int,
    patience: float,
    stop: StopEvent | None,
) -> Iterator[Outcome]:
    """The outcomes of all tasks from `take`, which is called again after every outcome, even after it has returned None.

    If a worker has died, or has not answered in `patience` seconds, its question is retried once; all other workers continue.
    If the caller stops iterating, or shortly after `stop` is set, busy processes are killed.
    """
    crew = _Crew(take, shipments, jobs, patience)
    last: float | None = None
    try:
        while last is None or time.monotonic() < last:
            if last is None:
                crew.set_to_work()
            if not (busy := crew.busy()):
                return
            wait_for_news(busy, _LOOK_SECONDS)
            arrived = list(crew.outcomes())
            if stop is not None and stop.is_set() and last is None:
                last = time.monotonic() + _LAST_WORDS_SECONDS
            if last is None:
                crew.set_to_work()  # keep workers busy while outcomes are processed
            yield from arrived
    finally:
        _give_back(crew.workers, jobs)


def lost_twice(task: Task, error: BaseException) -> Outcome:
    """The failure of a question that was lost twice."""
    text = str(error).strip().splitlines()
    reason = f"{type(error).__name__}: {text[0]}" if text else type(error).__name__
    return Outcome(task.key, failure=f"the worker died or hung twice ({reason})", attempts=2)
