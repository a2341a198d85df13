"""Questions on a Ray cluster, or on one that is started here."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from itertools import count, islice
from typing import Any

from treesens.compiler.base.packages import imported
from treesens.errors import UsageError
from treesens.sweeps.worker import KEPT, Outcome, Shipment, Task, answer_task


def ray_cores() -> int:
    import ray

    return int(ray.cluster_resources().get("CPU", 1))


_STARTING = 60.0
"""Seconds in which a Ray cluster may come up: its head opens the port before it can serve clients."""

_LEAST_ATTEMPTS = 2
"""A server that starts and never answers takes longer than `_STARTING` to be given up by Ray."""


def _connect_to_ray(address: str | None) -> None:
    """A cluster that answers, but cannot serve yet, is asked again. Raises what ray.init raises."""
    import ray

    patience = time.monotonic() + _STARTING
    for attempt in count(1):
        try:
            ray.init(address=address, log_to_driver=False, ignore_reinit_error=True)
        except ConnectionAbortedError:
            if attempt >= _LEAST_ATTEMPTS and time.monotonic() > patience:
                raise
            time.sleep(1.0)
        else:
            return


def _last_line(error: Exception) -> str:
    """Ray sends the traceback of its server, which ends with the reason."""
    return (str(error).strip().splitlines() or [type(error).__name__])[-1]


@contextmanager
def ray_store(address: str) -> Iterator[Callable[[Shipment], Any]]:
    ray = imported("ray", "clusters of Ray need ray")
    try:
        _connect_to_ray(f"ray://{address}" if address else None)
    except (ImportError, ValueError) as error:
        if isinstance(error, ValueError) and "ray[client]" not in str(error):
            raise UsageError(f"`ray://{address}` is no address: {error}", remedy="write ray://HOST:10001") from None
        raise UsageError(
            "ray is installed without its client, which ray://HOST:PORT needs", remedy="pip install 'treesens[ray]'"
        ) from None
    except (ConnectionError, RuntimeError) as error:
        raise UsageError(
            f"no Ray cluster answers at {address}: {_last_line(error)}",
            remedy="start one: ray start --head; if it wants a token, set RAY_AUTH_MODE and RAY_AUTH_TOKEN as for the cluster",
        ) from None
    try:
        yield ray.put
    finally:
        ray.shutdown()


def on_ray(timeout: float, cores: int) -> Callable[[Iterator[Any]], Iterator[Outcome]]:
    """Questions as tasks of Ray, a few per core on their way: its workers stay from one to the next. (joblib's backend for Ray
    starts new workers with every list of jobs.) Quick questions travel together, as joblib does it elsewhere.
    """
    import ray

    # A question that kills its worker is asked again by `_alone`, where it can be told from those beside it.
    ask = ray.remote(max_retries=0)(_answer_together)

    def run(jobs: Iterator[Any]) -> Iterator[Outcome]:
        away: dict[Any, int] = {}
        together = 1
        try:
            while True:
                while len(away) < 2 * cores and (bundle := [arguments for _, arguments, _ in islice(jobs, together)]):
                    away[ask.remote(bundle)] = len(bundle)
                if not away:
                    return
                done, _ = ray.wait(list(away), num_returns=1, timeout=timeout * max(away.values()))
                if not done:
                    raise TimeoutError("no answer came from the cluster")
                away.pop(done[0])
                outcomes: list[Outcome] = ray.get(done[0])
                together = bundle_size(together, sum(outcome.cpu for outcome in outcomes), len(outcomes))
                yield from outcomes
        finally:
            for task in away:
                ray.cancel(task, force=True)

    return run


_BUNDLE_SECONDS = 0.5
"""Of processor time that a task of a cluster should take, so that handing it over costs little beside it."""
_LARGEST_BUNDLE = 64


def bundle_size(size: int, seconds: float, answered: int) -> int:
    """How many questions travel together next, after some took so many seconds: twice as many at most."""
    fitting = int(_BUNDLE_SECONDS * answered / max(seconds, 1e-9))
    return max(1, min(fitting, 2 * size, _LARGEST_BUNDLE))


def _answer_together(bundle: list[tuple[Any, Task]]) -> list[Outcome]:
    """In a worker of Ray: questions that travel together, each with a reference to its shipment."""
    return [answer_task(_shipment(reference), task) for reference, task in bundle]


@lru_cache(maxsize=KEPT)
def _shipment(reference: Any) -> Shipment:
    """What lies in Ray's store, unpacked once in a worker."""
    import ray

    shipment: Shipment = ray.get(reference)
    return shipment
