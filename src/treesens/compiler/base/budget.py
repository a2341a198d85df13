"""The budget of a piece of work: a deadline in seconds, and a stop event.

Searches enforce a budget themselves. Long work outside of searches (lowering, a pass, a writer) runs within `working_within`:
the work calls `check_in`, or iterates with `steadily`, and is aborted by `OutOfTime` once its result would be useless. Outside
of such a block, both functions do nothing, so that a pass or a writer needs no parameter for the budget.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

LEAST = 0.05
"""Minimum seconds for which a search is worthwhile."""


class StopEvent(Protocol):
    """An event that other code can set, e.g. a `threading.Event`."""

    def is_set(self) -> bool: ...


@dataclass(frozen=True)
class Budget:
    """`deadline` is a time on the monotonic clock, in seconds; `stop`, an event shared by all parts, stops the work early."""

    deadline: float
    stop: StopEvent | None = None

    @staticmethod
    def of(seconds: float, stop: StopEvent | None = None) -> Budget:
        """A budget of this many seconds that starts now."""
        return Budget(time.monotonic() + seconds, stop)

    @property
    def stopped(self) -> bool:
        """True if the stop event is set."""
        return self.stop is not None and self.stop.is_set()

    def left(self) -> float:
        """Seconds until the deadline; 0 after the deadline, or if the stop event is set."""
        return 0.0 if self.stopped else max(0.0, self.deadline - time.monotonic())

    @property
    def over(self) -> bool:
        """True if no time is left."""
        return self.left() <= 0

    @property
    def worthwhile(self) -> bool:
        """True if the remaining time is long enough for a search."""
        return self.left() >= LEAST

    @property
    def reason(self) -> str:
        """The reason for an early end: `interrupted` or `time`."""
        return "interrupted" if self.stopped else "time"

    def within(self, seconds: float) -> Budget:
        """A part of the budget: at most this many seconds from now."""
        return replace(self, deadline=min(self.deadline, time.monotonic() + seconds))

    def share(self, part: float) -> Budget:
        """A part of the budget: a share of the remaining time, 0 <= part <= 1."""
        return self.within(part * self.left())

    def at_least(self, seconds: float) -> Budget:
        """The same budget, extended to at least this many seconds from now: a search needs time for its first result."""
        return replace(self, deadline=max(self.deadline, time.monotonic() + seconds))


Item = TypeVar("Item")
ITEMS_PER_CHECK = 1024
"""Items between two time checks. Processing a line of text takes microseconds, so time is checked every few milliseconds."""
_CONDITIONS: ContextVar[tuple[Callable[[], bool], ...]] = ContextVar("conditions", default=())


class OutOfTime(Exception):
    """Raised to abort work: time has run out, or the result is no longer needed."""


@contextmanager
def working_while(may_go_on: Callable[[], bool]) -> Iterator[None]:
    """A block of work that `OutOfTime` aborts once its own condition or the condition of an enclosing block fails. New threads
    start without conditions.
    """
    token = _CONDITIONS.set((*_CONDITIONS.get(), may_go_on))
    try:
        check_in()
        yield
    finally:
        _CONDITIONS.reset(token)


def working_within(
    budget: Budget, *, least: float = 0.0, unless: StopEvent | None = None
) -> AbstractContextManager[None]:
    """A block of work that is aborted once at most `least` seconds of the budget remain, or the event `unless` is set."""
    return working_while(lambda: budget.left() > least and not (unless is not None and unless.is_set()))


def check_in() -> None:
    """Raises `OutOfTime` if the enclosing work has to end."""
    if not all(may_go_on() for may_go_on in _CONDITIONS.get()):
        raise OutOfTime


def steadily(items: Iterable[Item]) -> Iterator[Item]:
    """Yields the items, and checks the time before the first item and after every `ITEMS_PER_CHECK`."""
    for number, item in enumerate(items):
        if number % ITEMS_PER_CHECK == 0:
            check_in()
        yield item
