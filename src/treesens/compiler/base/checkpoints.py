"""Where long work of ours (lowering, a pass, a writer) looks whether it may go on.

A limit that only searches keep is overrun by what is done around them. Whoever knows the limit opens a block with
`working_within`; the work in it calls `check_in`, or goes through its items with `steadily`, and is left by `OutOfTime` once
its result could not be used any more. Outside of such a block nothing happens, so that a pass or a writer needs no argument
for it, and plug-ins keep their interface.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Protocol, TypeVar

from treesens.compiler.base.budget import Budget

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
