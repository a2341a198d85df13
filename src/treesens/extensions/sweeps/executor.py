"""Executors answer questions: in this process, in other processes of this machine, on a Dask cluster, or on Ray.

A local process that dies loses its current question. A cluster worker loses the few questions in flight, which are retried one
at a time to find the one that kills its worker. A question fails for good after it has killed two workers.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import BrokenExecutor, CancelledError
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

from treesens.compiler.base.budget import StopEvent
from treesens.errors import UsageError
from treesens.extensions.sweeps.clusters import Cluster, dask_cluster, ray_cluster
from treesens.extensions.sweeps.on_processes import lost_twice, on_processes
from treesens.extensions.sweeps.worker import Outcome, Shipment, Task, answer_task

Next = Callable[[], Task | None]

_PATIENCE = 4.0
"""A question counts as lost after this many times its limit, plus two minutes: its worker hangs or is gone."""


@dataclass(frozen=True)
class Executor:
    """`kind` is inline (this process, one question at a time), local (processes), dask or ray; `address` names a cluster."""

    kind: str = "local"
    jobs: int = 1
    address: str = ""

    @property
    def remote(self) -> bool:
        """True if workers possibly have no access to local files."""
        return self.kind in {"dask", "ray"}

    def for_questions(self, count: int) -> Executor:
        """The executor with at most one process per question."""
        return replace(self, jobs=min(self.jobs, max(1, count)))

    def run(
        self, take: Next, shipments: Mapping[str, Shipment], limit: float, stop: StopEvent | None = None
    ) -> Iterator[Outcome]:
        """The outcomes of all tasks from `take`, in order of completion.

        `take` may be called from other threads, one at a time, and must not wait. Local executors call `take` again after every
        outcome, even after it has returned None. `limit` is the time for one question, in seconds. If `stop` is set, local
        questions are stopped immediately, and clusters start no new questions.
        """
        if self.kind == "inline":
            while (task := take()) is not None:
                yield answer_task(shipments[task.document], task, stop)
            return
        patience = _PATIENCE * limit + 120.0
        if self.kind == "local":
            yield from on_processes(take, shipments, self.jobs, patience, stop)
            return
        with self._cluster() as cluster:
            held = {digest: cluster.hold(shipment) for digest, shipment in shipments.items()}
            yield from _on_cluster(take, held, cluster, patience)

    def _cluster(self) -> AbstractContextManager[Cluster]:
        return dask_cluster(self.address) if self.kind == "dask" else ray_cluster(self.address)


INLINE = Executor("inline")
"""The executor that uses this process, one question at a time."""


def _on_cluster(take: Next, held: Mapping[str, Any], cluster: Cluster, patience: float) -> Iterator[Outcome]:
    """The outcomes of all tasks on a cluster; `held` contains references to the shipments of the tasks."""

    def run(tasks: Iterator[Task]) -> Iterator[Outcome]:
        return cluster.run(((held[task.document], task) for task in tasks), patience)

    while True:
        away: dict[str, Task] = {}

        def tasks(away: dict[str, Task] = away) -> Iterator[Task]:
            while (task := take()) is not None:
                away[task.key] = task
                yield task

        try:
            for outcome in run(tasks()):
                away.pop(outcome.key, None)
                yield outcome
        except _crashes():
            for task in list(away.values()):
                yield _alone(task, run)
        else:
            return


def _alone(task: Task, run: Callable[[Iterator[Task]], Iterator[Outcome]]) -> Outcome:
    """Retries a question that was in flight when a worker died; meanwhile no other question is in flight."""
    try:
        (outcome,) = list(run(iter([task])))
    except _crashes() as error:
        return lost_twice(task, error)
    return replace(outcome, attempts=2)


def _crashes() -> tuple[type[BaseException], ...]:
    """The classes of errors that report a lost worker, including those of imported cluster libraries."""
    import sys

    found: list[type[BaseException]] = [BrokenExecutor, CancelledError, TimeoutError, EOFError, ConnectionError]
    if "distributed" in sys.modules:
        from distributed import KilledWorker

        found.append(KilledWorker)
    if "ray" in sys.modules:
        from ray.exceptions import RayError

        found.append(RayError)
    return tuple(found)


def parse_executor(text: str | None, jobs: int | None) -> Executor:
    """Parses `local`, `dask://HOST:PORT`, `ray` (a new local cluster) or `ray://HOST:PORT`. Raises UsageError otherwise."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if text is None or text == "local":
        return Executor("local", jobs or cores)
    kind, _, address = text.partition("://")
    if kind not in {"dask", "ray"} or (kind == "dask" and not address):
        raise UsageError(f"unknown executor `{text}`", remedy="write local, dask://HOST:8786, ray or ray://HOST:10001")
    if jobs is not None:
        raise UsageError(f"--jobs sets the local processes, but {kind} has its own workers", remedy="leave out --jobs")
    return Executor(kind, 1, address)
