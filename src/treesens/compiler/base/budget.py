"""What may be spent on a piece of work: seconds until a deadline, unless somebody asks to stop.

Searches keep such a limit by themselves. Other long work (lowering, a pass, a writer) is called within `working_within`; it
calls `check_in`, or goes through its items with `steadily`, and is left by `OutOfTime` once its result could not be used any
more. Outside of such a block nothing happens, so that a pass or a writer needs no argument for it.
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
"""Fewest seconds that are worth a search."""


@dataclass(frozen=True)
class Budget:
    """`deadline` on the monotonic clock, in seconds; `stop` is an event that ends the work early. Parts share the event."""

    deadline: float
    stop: threading.Event | None = None

    @staticmethod
    def of(seconds: float, stop: threading.Event | None = None) -> Budget:
        """A budget that begins now."""
        return Budget(time.monotonic() + seconds, stop)

    @property
    def stopped(self) -> bool:
        """True if somebody asked to stop."""
        return self.stop is not None and self.stop.is_set()

    def left(self) -> float:
        """Seconds until the deadline; 0 past it, or once somebody asked to stop."""
        return 0.0 if self.stopped else max(0.0, self.deadline - time.monotonic())

    @property
    def over(self) -> bool:
        """True if nothing is left."""
        return self.left() <= 0

    @property
    def worthwhile(self) -> bool:
        """True if what is left is worth a search."""
        return self.left() >= LEAST

    @property
    def reason(self) -> str:
        """Why work ended early, in a word."""
        return "interrupted" if self.stopped else "time"

    def within(self, seconds: float) -> Budget:
        """A part of at most so many seconds from now."""
        return replace(self, deadline=min(self.deadline, time.monotonic() + seconds))

    def share(self, part: float) -> Budget:
        """A part of what is left, 0 <= part <= 1."""
        return self.within(part * self.left())

    def at_least(self, seconds: float) -> Budget:
        """The same budget, or so many seconds from now if that is later: a search needs a moment to say anything."""
        return replace(self, deadline=max(self.deadline, time.monotonic() + seconds))


Item = TypeVar("Item")
ITEMS_PER_CHECK = 1024
"""A line of text takes microseconds, so this is a matter of milliseconds."""
_CONDITIONS: ContextVar[tuple[Callable[[], bool], ...]] = ContextVar("conditions", default=())


class OutOfTime(Exception):
    """Work was left before its end: there is no time for it, or nobody needs its result any more."""


@contextmanager
def working_while(may_go_on: Callable[[], bool]) -> Iterator[None]:
    """A block of work that is left by `OutOfTime` when the condition, or one of a block around it, does not hold any more.
    A new thread begins without conditions.
    """
    token = _CONDITIONS.set((*_CONDITIONS.get(), may_go_on))
    try:
        check_in()
        yield
    finally:
        _CONDITIONS.reset(token)


class Flag(Protocol):
    """Anything that can be set from elsewhere, e.g. a `threading.Event`."""

    def is_set(self) -> bool: ...


def working_within(budget: Budget, *, least: float = 0.0, unless: Flag | None = None) -> AbstractContextManager[None]:
    """A block of work that is left once `least` seconds of the budget or fewer are left, or the flag is set."""
    return working_while(lambda: budget.left() > least and not (unless is not None and unless.is_set()))


def check_in() -> None:
    """Raises `OutOfTime` if the work around this call has to end."""
    if not all(may_go_on() for may_go_on in _CONDITIONS.get()):
        raise OutOfTime


def steadily(items: Iterable[Item]) -> Iterator[Item]:
    """The items, with a look at the time before the first one and after every `ITEMS_PER_CHECK`."""
    for number, item in enumerate(items):
        if number % ITEMS_PER_CHECK == 0:
            check_in()
        yield item
