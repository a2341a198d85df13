"""Runs studies: tasks in threads, a shared library for replay, answers of earlier runs, and certificates."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from importlib.util import find_spec
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.model.evaluate import LibraryReplay, Predicted
from treesens.compiler.query.query import Query
from treesens.compiler.result import Result
from treesens.frontends.base import LoadedModel
from treesens.frontends.registry import libraries_of
from treesens.runtime.interruption import Hurry
from treesens.solve.options import Options
from treesens.solve.question import with_certificates

_Done = TypeVar("_Done")


class Memory(Protocol):
    """The answers of earlier runs; a key states everything on which its answer depends."""

    def known(self, key: str) -> dict[str, Any] | None: ...

    def keep(self, key: str, verdict: str, record: dict[str, Any]) -> None: ...


def as_finished(tasks: Sequence[Callable[[], _Done]], threads: int) -> Iterator[tuple[int, _Done]]:
    """Runs tasks in threads, and yields the index and the value of each task in the order of completion (by index if tasks end
    between two checks). When the grace period after Ctrl-C is over, running tasks are abandoned.
    """
    pool = ThreadPoolExecutor(max(1, threads))
    try:
        running: dict[Future[_Done], int] = {pool.submit(task): number for number, task in enumerate(tasks)}
        while running:
            # The waits are short, because an interruption is handled between them.
            finished, _ = wait(running, timeout=0.2, return_when=FIRST_COMPLETED)
            for future in sorted(finished, key=running.__getitem__):
                yield running.pop(future), future.result()
    except Hurry:
        pool.shutdown(wait=False, cancel_futures=True)
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    else:
        pool.shutdown()


def gathered(
    tasks: Sequence[Callable[[], _Done | None]], threads: int, advance: Callable[[_Done], None]
) -> list[_Done]:
    """The values of tasks, in the order of the tasks; tasks that returned None or did not end are left out."""
    found: dict[int, _Done] = {}
    for number, one in as_finished(tasks, threads):
        if one is not None:
            found[number] = one
            advance(one)
    return [found[number] for number in sorted(found)]


def one_at_a_time(replay: LibraryReplay) -> LibraryReplay:
    """The replay behind a lock: libraries load lazily, and not all libraries can predict in several threads at once."""
    lock, predicts = threading.Lock(), replay.predicts

    def locked(rows: NDArray[np.float64]) -> NDArray[Any]:
        with lock:
            return replay.margins(rows)

    def predicted(rows: NDArray[np.float64]) -> Predicted:
        assert predicts is not None
        with lock:
            return predicts(rows)

    return LibraryReplay(locked, None if predicts is None else predicted)


def library_of(model: LoadedModel, replay: str) -> list[LibraryReplay] | None:
    """The replay of witnesses in the model's library, if `replay` is `library`, or `auto` with an installed library; None if
    only the emulated arithmetic is used.
    """
    (library,) = libraries_of([model], replay)
    wanted = replay == "library" or (replay == "auto" and library != "" and find_spec(library) is not None)
    return [one_at_a_time(model.replay)] if wanted else None


def with_study_certificates(query: Query, result: Result, options: Options, seconds: float) -> Result:
    """Like `with_certificates`, but for a claim of a study; the claim is proved after its question, with its own time limit."""
    from treesens.extensions.certify.produce import proof_budget

    return with_certificates(query, result, options, proof_budget(seconds))
