"""Questions on a Ray cluster, or on one that is started here."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import count
from typing import Any

from treesens.compiler.base.packages import imported
from treesens.errors import UsageError
from treesens.extensions.sweeps.bundles import Cluster, Job, answer_together
from treesens.extensions.sweeps.worker import KEPT, Outcome, Shipment

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
