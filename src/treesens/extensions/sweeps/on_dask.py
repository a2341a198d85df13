"""Questions on a Dask cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from treesens.compiler.base.packages import imported
from treesens.errors import UsageError
from treesens.extensions.sweeps.bundles import Cluster, Job, answer_together
from treesens.extensions.sweeps.worker import Outcome, Shipment


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
