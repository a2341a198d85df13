"""The budget of a piece of work: a deadline in seconds, and a stop event.

Searches enforce such a limit themselves. Other long work (lowering, a pass, a writer) runs within `working_within`; it calls
`check_in`, or iterates with `steadily`, and is aborted by `OutOfTime` once its result would be useless. Outside of such a block
nothing happens, so that a pass or a writer needs no parameter for it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

LEAST = 0.05
"""Minimum seconds for which a search is worthwhile."""


@dataclass(frozen=True)
class Budget:
    """`deadline` on the monotonic clock, in seconds; `stop` is an event that ends the work early, shared by all parts."""

    deadline: float
    stop: threading.Event | None = None

    @staticmethod
    def of(seconds: float, stop: threading.Event | None = None) -> Budget:
        """A budget that starts now."""
        return Budget(time.monotonic() + seconds, stop)

    @property
    def stopped(self) -> bool:
        """True if the stop event is set."""
        return self.stop is not None and self.stop.is_set()

    def left(self) -> float:
        """Seconds until the deadline; 0 past it, or if the stop event is set."""
        return 0.0 if self.stopped else max(0.0, self.deadline - time.monotonic())

    @property
    def over(self) -> bool:
        """True if no time is left."""
        return self.left() <= 0

    @property
    def worthwhile(self) -> bool:
        """True if the remaining time is enough for a search."""
        return self.left() >= LEAST

    @property
    def reason(self) -> str:
        """The reason for an early end, in one word."""
        return "interrupted" if self.stopped else "time"

    def within(self, seconds: float) -> Budget:
        """A part of at most this many seconds from now."""
        return replace(self, deadline=min(self.deadline, time.monotonic() + seconds))

    def share(self, part: float) -> Budget:
        """A share of the remaining time, 0 <= part <= 1."""
        return self.within(part * self.left())

    def at_least(self, seconds: float) -> Budget:
        """The same budget, or this many seconds from now if that is later: a search needs a moment for its first result."""
        return replace(self, deadline=max(self.deadline, time.monotonic() + seconds))


Item = TypeVar("Item")
ITEMS_PER_CHECK = 1024
"""A line of text takes microseconds, so the check is made every few milliseconds."""
_CONDITIONS: ContextVar[tuple[Callable[[], bool], ...]] = ContextVar("conditions", default=())


class OutOfTime(Exception):
    """Work was aborted: time has run out, or its result is no longer needed."""


@contextmanager
def working_while(may_go_on: Callable[[], bool]) -> Iterator[None]:
    """A block of work aborted by `OutOfTime` when the condition, or one of an enclosing block, no longer holds. A new thread
    starts without conditions.
    """
    token = _CONDITIONS.set((*_CONDITIONS.get(), may_go_on))
    try:
        check_in()
        yield
    finally:
        _CONDITIONS.reset(token)


class Flag(Protocol):
    """Any flag that can be set from elsewhere, e.g. a `threading.Event`."""

    def is_set(self) -> bool: ...


def working_within(budget: Budget, *, least: float = 0.0, unless: Flag | None = None) -> AbstractContextManager[None]:
    """A block of work aborted once at most `least` seconds of the budget are left, or the flag is set."""
    return working_while(lambda: budget.left() > least and not (unless is not None and unless.is_set()))


def check_in() -> None:
    """Raises `OutOfTime` if the enclosing work has to end."""
    if not all(may_go_on() for may_go_on in _CONDITIONS.get()):
        raise OutOfTime


def steadily(items: Iterable[Item]) -> Iterator[Item]:
    """Yields the items, with a time check before the first one and after every `ITEMS_PER_CHECK`."""
    for number, item in enumerate(items):
        if number % ITEMS_PER_CHECK == 0:
            check_in()
        yield item
