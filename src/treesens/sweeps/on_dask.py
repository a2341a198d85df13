"""Questions on a Dask cluster, through joblib's backend for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from treesens.compiler.base.packages import imported
from treesens.errors import UsageError


@contextmanager
def dask_client(address: str) -> Iterator[Any]:
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
        yield client
    finally:
        client.close()


def dask_backend() -> Any:
    from joblib._dask import DaskDistributedBackend

    class AtLeastTwo(DaskDistributedBackend):  # type: ignore[misc]
        """joblib runs everything in the calling process if one worker (with one thread) is there."""

        def effective_n_jobs(self, n_jobs: int) -> int:
            return max(2, int(super().effective_n_jobs(n_jobs)))

    return AtLeastTwo
