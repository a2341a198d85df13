"""Questions on a cluster, a few per core on their way; quick ones travel together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from treesens.extensions.sweeps.worker import Outcome, Shipment, Task, answer_task

Job = tuple[Any, Task]
"""A reference to a shipment that the cluster holds, and a question about it."""


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


_BUNDLE_SECONDS = 0.5
"""The processor time that a task of a cluster should take, so that handing it over costs little in comparison."""
_LARGEST_BUNDLE = 64


def bundle_size(size: int, seconds: float, answered: int) -> int:
    """The size of the next bundle, from the time that the answered questions took: at most twice the current size."""
    fitting = int(_BUNDLE_SECONDS * answered / max(seconds, 1e-9))
    return max(1, min(fitting, 2 * size, _LARGEST_BUNDLE))


def answer_together(bundle: list[tuple[Shipment, Task]]) -> list[Outcome]:
    """In a worker: questions that travel together, each with its shipment."""
    return [answer_task(shipment, task) for shipment, task in bundle]
