"""Where questions run: in this process, in processes of this machine or on a Dask cluster (through joblib), or on Ray.

A worker that dies takes the questions with it that were on their way, a handful. They are asked again one at a time, so
that the one that kills its worker is known; it fails for good when it does so twice.
"""

from __future__ import annotations

import logging
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import BrokenExecutor, CancelledError
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from treesens.compiler.base.processes import safe_children
from treesens.errors import UsageError
from treesens.sweeps.on_dask import dask_backend, dask_client
from treesens.sweeps.on_ray import on_ray, ray_cores, ray_store
from treesens.sweeps.worker import Outcome, Shipment, Task, answer_task, leash

Next = Callable[[], Task | None]

_LOOK_SECONDS = 0.05
_LAST_WORDS_SECONDS = 0.3
"""Until processes are killed after a Ctrl-C: for answers that are on their way."""
_PATIENCE = 4.0
"""A question that takes this many times its limit (and two minutes) is taken for lost: its worker hangs, or is gone."""


@dataclass(frozen=True)
class Executor:
    """`kind` is inline (this process, one at a time), local (processes), dask or ray; `address` is that of a cluster."""

    kind: str = "local"
    jobs: int = 1
    address: str = ""

    @property
    def remote(self) -> bool:
        """Whether workers may not see our files."""
        return self.kind in {"dask", "ray"}

    def for_questions(self, count: int) -> Executor:
        """With no more processes than there are questions."""
        return replace(self, jobs=min(self.jobs, max(1, count)))

    def run(
        self, take: Next, shipments: Mapping[str, Shipment], limit: float, stop: threading.Event | None = None
    ) -> Iterator[Outcome]:
        """The outcomes of all tasks that `take` gives, in the order in which they are finished.

        `take` is called from other threads, one at a time, and must not wait; `limit` are the seconds of one question. A set
        `stop` ends the questions of this process at once; elsewhere nothing new is begun.
        """
        if self.kind == "inline":
            while (task := take()) is not None:
                yield answer_task(shipments[task.document], task, stop)
            return
        patience = _PATIENCE * limit + 120.0
        if self.kind != "local":
            yield from self._asked(take, shipments, patience, threading.Event())
            return
        ended = threading.Event()
        with safe_children():
            yield from _until(stop, self._asked(take, shipments, patience, ended), ended)

    def _asked(
        self, take: Next, shipments: Mapping[str, Shipment], patience: float, ended: threading.Event
    ) -> Iterator[Outcome]:
        with self._backend(shipments) as (travelling, parallel):
            yield from _pool(take, travelling, lambda: parallel(patience), self.kind == "local", ended)

    @contextmanager
    def _backend(self, shipments: Mapping[str, Shipment]) -> Iterator[tuple[Mapping[str, Any], Callable[[float], Any]]]:
        """The shipments as workers get them, and what makes a `joblib.Parallel`."""
        import joblib

        # joblib runs a single job in the calling process; a crash must not end that one.
        shape: dict[str, Any] = {"n_jobs": max(2, self.jobs), "pre_dispatch": 2 * self.jobs if self.jobs > 1 else 1}
        common: dict[str, Any] = {"return_as": "generator_unordered", "batch_size": 1}
        if self.kind == "local":
            with joblib.parallel_config(backend=_processes(self.jobs)):
                yield shipments, lambda timeout: joblib.Parallel(timeout=timeout, max_nbytes=None, **shape, **common)
        elif self.kind == "dask":
            with dask_client(self.address) as client:
                # Scattered once to every worker; tasks carry a reference.
                scattered = list(shipments.values())
                # Quick questions travel together, slow ones alone: the scheduler takes longer for a task than many of them do.
                backend = dask_backend()(client=client, scatter=scattered, wait_for_workers_timeout=60)
                with joblib.parallel_config(backend=backend):
                    yield shipments, lambda timeout: joblib.Parallel(timeout=timeout, **common | {"batch_size": "auto"})
        else:
            with ray_store(self.address) as put:
                references = {name: put(shipment) for name, shipment in shipments.items()}
                cores = max(2, ray_cores())
                yield references, lambda timeout: on_ray(timeout, cores)


INLINE = Executor("inline")
"""This process, one question at a time."""


def _processes(jobs: int) -> Any:
    """joblib's processes, one of them where one is asked for: joblib would take at least two, or none."""
    from joblib._parallel_backends import LokyBackend

    class Processes(LokyBackend):  # type: ignore[misc]
        def configure(self, *arguments: Any, **options: Any) -> int:
            seats = int(super().configure(*arguments, **options))
            self._workers._resize(jobs)  # nothing has been started yet
            return seats

    return Processes(inner_max_num_threads=1, initializer=leash, initargs=(os.getpid(),))


def _until(stop: threading.Event | None, outcomes: Iterator[Outcome], ended: threading.Event) -> Iterator[Outcome]:
    """The outcomes, until `stop` is set or nobody asks for more: then the processes are killed, with what they are doing.

    They are waited for in a thread: joblib waits for an answer, however long it takes. What is ready is still given out.
    """
    arrived: queue.SimpleQueue[Outcome | BaseException | None] = queue.SimpleQueue()

    def wait() -> None:
        try:
            for outcome in outcomes:
                arrived.put(outcome)
            arrived.put(None)
        except BaseException as error:  # noqa: BLE001 (raised again where the outcomes are wanted)
            arrived.put(error)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    last: float | None = None
    try:
        while last is None or time.monotonic() < last:
            try:
                got = arrived.get(timeout=_LOOK_SECONDS)
            except queue.Empty:
                if stop is not None and stop.is_set() and last is None:
                    last = time.monotonic() + _LAST_WORDS_SECONDS
                continue
            if got is None:
                return
            if isinstance(got, BaseException):
                raise got
            yield got
    finally:
        if thread.is_alive():
            ended.set()
            _kill_processes()
            thread.join(_LAST_WORDS_SECONDS)


def _is_told_to_people(record: logging.LogRecord) -> bool:
    """All but loky's complaint that a task could not be handed to a pool that we have ended ourselves."""
    return not str(record.msg).startswith("exception calling callback")


def _kill_processes() -> None:
    from joblib.externals.loky import reusable_executor

    # An answer that arrives now asks the pool for its next task, and the traceback of that would follow the Ctrl-C.
    logging.getLogger("concurrent.futures").addFilter(_is_told_to_people)
    pool = reusable_executor._executor
    if pool is not None:
        pool.shutdown(wait=False, kill_workers=True)


def _pool(
    take: Next, shipments: Mapping[str, Any], parallel: Callable[[], Any], leashed: bool, ended: threading.Event
) -> Iterator[Outcome]:
    import joblib

    job = joblib.delayed(answer_task)

    def run(tasks: Iterator[Task]) -> Iterator[Outcome]:
        yield from parallel()(job(shipments[task.document], replace(task, leashed=leashed)) for task in tasks)

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
            if ended.is_set():
                return
            for task in list(away.values()):
                yield _alone(task, run)
        else:
            return


def _alone(task: Task, run: Callable[[Iterator[Task]], Iterator[Outcome]]) -> Outcome:
    """A question that was away when a worker died, asked once more with nothing beside it."""
    try:
        (outcome,) = list(run(iter([task])))
    except _crashes() as error:
        text = str(error).strip().splitlines()
        reason = f"{type(error).__name__}: {text[0]}" if text else type(error).__name__
        return Outcome(task.key, failure=f"the worker died or hung twice ({reason})", attempts=2)
    return replace(outcome, attempts=2)


def _crashes() -> tuple[type[BaseException], ...]:
    """What a lost worker looks like here; names of clusters are looked up if they are in use."""
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
    """`local`, `dask://HOST:PORT` or `ray://HOST:PORT` (`ray` alone starts one here). UsageError for anything else."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if text is None or text == "local":
        return Executor("local", jobs or cores)
    kind, _, address = text.partition("://")
    if kind not in {"dask", "ray"} or (kind == "dask" and not address):
        raise UsageError(
            f"there is no executor `{text}`", remedy="write local, dask://HOST:8786, ray or ray://HOST:10001"
        )
    if jobs is not None:
        raise UsageError(
            f"--jobs says how many processes run here, and {kind} has workers of its own", remedy="leave out --jobs"
        )
    return Executor(kind, 1, address)
