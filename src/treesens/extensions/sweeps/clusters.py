"""Questions on a cluster of Dask or Ray, a few per core on their way; quick ones travel together."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import count, islice
from typing import Any

from treesens.compiler.base.packages import imported
from treesens.errors import UsageError
from treesens.extensions.sweeps.worker import KEPT, Outcome, Shipment, Task, answer_task

Job = tuple[Any, Task]
"""A reference to a shipment that the cluster holds, and a question about it."""

_BUNDLE_SECONDS = 0.5
"""The processor time that a task of a cluster should take, so that handing it over costs little in comparison."""
_LARGEST_BUNDLE = 64

_STARTING = 60.0
"""Seconds in which a Ray cluster may come up: its head opens the port before it can serve clients."""
_LEAST_ATTEMPTS = 2
"""A server that starts and never answers takes longer than `_STARTING` to be given up by Ray."""


class Cluster(ABC):
    """A cluster that runs bundles of questions."""

    @abstractmethod
    def cores(self) -> int:
        """How many questions it answers at a time now."""

    @abstractmethod
    def hold(self, shipment: Shipment) -> Any:
        """A reference to a shipment, which a question is sent with."""

    @abstractmethod
    def send(self, bundle: list[Job]) -> Any:
        """A bundle that is on its way from now on."""

    @abstractmethod
    def ended(self, away: Sequence[Any], patience: float) -> Any:
        """One of the bundles that are away, once it has ended. TimeoutError after `patience` seconds."""

    @abstractmethod
    def outcomes(self, bundle: Any) -> list[Outcome]:
        """The outcomes of a bundle that has ended. Raises the error that killed its worker."""

    @abstractmethod
    def cancel(self, bundle: Any) -> None:
        """Gives up a bundle that is away."""

    def run(self, jobs: Iterator[Job], timeout: float) -> Iterator[Outcome]:
        """The outcomes of all jobs, in the order in which they come back; `timeout` in seconds is that of one question."""
        away: dict[Any, int] = {}
        together = 1
        try:
            while True:
                while len(away) < 2 * self.cores() and (bundle := list(islice(jobs, together))):
                    away[self.send(bundle)] = len(bundle)
                if not away:
                    return
                done = self.ended(list(away), timeout * max(away.values()))
                away.pop(done)
                outcomes = self.outcomes(done)
                together = bundle_size(together, sum(outcome.cpu for outcome in outcomes), len(outcomes))
                yield from outcomes
        finally:
            for bundle_away in away:
                self.cancel(bundle_away)


def bundle_size(size: int, seconds: float, answered: int) -> int:
    """The size of the next bundle, from the time that the answered questions took: at most twice the current size."""
    fitting = int(_BUNDLE_SECONDS * answered / max(seconds, 1e-9))
    return max(1, min(fitting, 2 * size, _LARGEST_BUNDLE))


def answer_together(bundle: list[tuple[Shipment, Task]]) -> list[Outcome]:
    """In a worker: questions that travel together, each with its shipment."""
    return [answer_task(shipment, task) for shipment, task in bundle]


@contextmanager
def dask_cluster(address: str) -> Iterator[Cluster]:
    """The cluster of a scheduler. UsageError if no scheduler answers, or it lacks workers."""
    distributed = imported("distributed", "clusters of Dask need distributed")
    try:
        client = distributed.Client(
            f"tcp://{address}" if "://" not in address else address, timeout=10, set_as_default=False
        )
    except (OSError, ValueError) as error:
        raise UsageError(
            f"no Dask scheduler answers at {address}: {error}",
            remedy="start one: dask scheduler; dask worker HOST:8786",
        ) from None
    try:
        try:
            client.wait_for_workers(1, timeout=10)
        except TimeoutError:
            raise UsageError(
                f"the Dask scheduler at {address} has no workers", remedy=f"start some: dask worker {address}"
            ) from None
        yield _Dask(client)
    finally:
        client.close()


class _Dask(Cluster):
    def __init__(self, client: Any) -> None:
        self.client = client

    def cores(self) -> int:
        return max(1, sum(map(int, self.client.nthreads().values())))

    def hold(self, shipment: Shipment) -> Any:
        # The result of a task, and not scattered data: those lie on some workers and are lost with them (the active memory
        # manager takes spare copies away), whereas the scheduler makes a result again wherever it is missed.
        return self.client.submit(_same, shipment, pure=False)

    def send(self, bundle: list[Job]) -> Any:
        return self.client.submit(answer_together, bundle, pure=False)

    def ended(self, away: Sequence[Any], patience: float) -> Any:
        from distributed import wait

        with self.client.as_current():
            return next(iter(wait(away, timeout=patience, return_when="FIRST_COMPLETED").done))

    def outcomes(self, bundle: Any) -> list[Outcome]:
        outcomes: list[Outcome] = bundle.result()
        return outcomes

    def cancel(self, bundle: Any) -> None:
        bundle.cancel()


def _same(shipment: Shipment) -> Shipment:
    return shipment


@contextmanager
def ray_cluster(address: str) -> Iterator[Cluster]:
    """The cluster at an address, or one that is started here for an empty one. UsageError if none answers."""
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
        yield _Ray()
    finally:
        ray.shutdown()


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


class _Ray(Cluster):
    """Its workers stay from one question to the next. (joblib's backend for Ray starts new ones with every list of jobs.)"""

    def __init__(self) -> None:
        import ray

        # A question that kills its worker runs again alone, which separates it from the others of its bundle.
        self.ask = ray.remote(max_retries=0)(_answer_held)

    def cores(self) -> int:
        import ray

        return max(2, int(ray.cluster_resources().get("CPU", 1)))

    def hold(self, shipment: Shipment) -> Any:
        import ray

        return ray.put(shipment)

    def send(self, bundle: list[Job]) -> Any:
        return self.ask.remote(bundle)

    def ended(self, away: Sequence[Any], patience: float) -> Any:
        import ray

        done, _ = ray.wait(list(away), num_returns=1, timeout=patience)
        if not done:
            raise TimeoutError("no answer came from the cluster")
        return done[0]

    def outcomes(self, bundle: Any) -> list[Outcome]:
        import ray

        outcomes: list[Outcome] = ray.get(bundle)
        return outcomes

    def cancel(self, bundle: Any) -> None:
        import ray

        ray.cancel(bundle, force=True)


def _answer_held(bundle: list[Job]) -> list[Outcome]:
    """In a worker of Ray: questions that travel together, each with a reference to its shipment."""
    return answer_together([(_shipment(reference), task) for reference, task in bundle])


@lru_cache(maxsize=KEPT)
def _shipment(reference: Any) -> Shipment:
    """What lies in Ray's store, unpacked once in a worker."""
    import ray

    shipment: Shipment = ray.get(reference)
    return shipment
