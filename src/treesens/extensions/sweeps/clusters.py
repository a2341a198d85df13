"""Runs questions on a Dask or Ray cluster: a few tasks per core are in flight, and quick questions share a task."""

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
"""A reference to a shipment in the cluster, and a question about it."""

_BUNDLE_SECONDS = 0.5
"""The processor time that a cluster task should take, so that its overhead is small."""
_LARGEST_BUNDLE = 64

_STARTING = 60.0
"""Seconds that a Ray cluster may take to start: its head opens the port before the head can serve clients."""
_LEAST_ATTEMPTS = 2
"""Minimum number of attempts: if a server starts but never answers, one attempt takes longer than `_STARTING`."""


class Cluster(ABC):
    """A cluster that runs bundles of questions."""

    @abstractmethod
    def cores(self) -> int:
        """The number of questions that the cluster can answer in parallel now."""

    @abstractmethod
    def hold(self, shipment: Shipment) -> Any:
        """A reference to a shipment in the cluster, to be sent with each question."""

    @abstractmethod
    def send(self, bundle: list[Job]) -> Any:
        """Submits a bundle."""

    @abstractmethod
    def ended(self, away: Sequence[Any], patience: float) -> Any:
        """One finished bundle. Raises TimeoutError after `patience` seconds."""

    @abstractmethod
    def outcomes(self, bundle: Any) -> list[Outcome]:
        """The outcomes of a finished bundle. Raises the error that killed the bundle's worker."""

    @abstractmethod
    def cancel(self, bundle: Any) -> None:
        """Abandons a submitted bundle."""

    def run(self, jobs: Iterator[Job], timeout: float) -> Iterator[Outcome]:
        """The outcomes of all jobs, in order of completion; `timeout`, in seconds, is the limit per question."""
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
    """The size of the next bundle, computed from the times of answered questions: at most twice the current size."""
    fitting = int(_BUNDLE_SECONDS * answered / max(seconds, 1e-9))
    return max(1, min(fitting, 2 * size, _LARGEST_BUNDLE))


def answer_together(bundle: list[tuple[Shipment, Task]]) -> list[Outcome]:
    """Answers the questions of a bundle, each with its shipment; runs in a worker."""
    return [answer_task(shipment, task) for shipment, task in bundle]


@contextmanager
def dask_cluster(address: str) -> Iterator[Cluster]:
    """The cluster of a scheduler. Raises UsageError if no scheduler answers, or the cluster has no workers."""
    distributed = imported("distributed", "Dask clusters need distributed")
    try:
        client = distributed.Client(
            f"tcp://{address}" if "://" not in address else address, timeout=10, set_as_default=False
        )
    except (OSError, ValueError) as error:
        raise UsageError(
            f"no Dask scheduler answers at {address}: {error}",
            remedy="start a scheduler: dask scheduler; dask worker HOST:8786",
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
        # A task result, not scattered data: scattered data is lost with the workers that have it (the active memory manager
        # removes spare copies), whereas the scheduler recomputes a missing result.
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
    """The cluster at an address, or a new local cluster if the address is empty. Raises UsageError if no cluster answers."""
    ray = imported("ray", "Ray clusters need ray")
    try:
        _connect_to_ray(f"ray://{address}" if address else None)
    except (ImportError, ValueError) as error:
        if isinstance(error, ValueError) and "ray[client]" not in str(error):
            raise UsageError(f"`ray://{address}` is not an address: {error}", remedy="write ray://HOST:10001") from None
        raise UsageError(
            "ray is installed without its client, which ray://HOST:PORT needs", remedy="pip install 'treesens[ray]'"
        ) from None
    except (ConnectionError, RuntimeError) as error:
        raise UsageError(
            f"no Ray cluster answers at {address}: {_last_line(error)}",
            remedy="start one: ray start --head; if it needs a token, set RAY_AUTH_MODE and RAY_AUTH_TOKEN as for the cluster",
        ) from None
    try:
        yield _Ray()
    finally:
        ray.shutdown()


def _connect_to_ray(address: str | None) -> None:
    """Connects to a cluster, and retries while the cluster cannot serve clients yet. Raises the errors of ray.init."""
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
    """The last line of an error: if Ray has sent its server's traceback, only this line states the reason."""
    return (str(error).strip().splitlines() or [type(error).__name__])[-1]


class _Ray(Cluster):
    """A Ray cluster, whose workers persist between questions. (joblib's Ray backend starts new workers per list of jobs.)"""

    def __init__(self) -> None:
        import ray

        # A question that kills its worker is retried alone, to separate it from the other questions of its bundle.
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
    """Answers the questions of a bundle, each with a reference to its shipment; runs in a Ray worker."""
    return answer_together([(_shipment(reference), task) for reference, task in bundle])


@lru_cache(maxsize=KEPT)
def _shipment(reference: Any) -> Shipment:
    """The shipment in Ray's store, unpacked once per worker."""
    import ray

    shipment: Shipment = ray.get(reference)
    return shipment
