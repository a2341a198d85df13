"""Results that several steps of one answer share: a certificate needs what the search has compiled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

Result = TypeVar("Result")
_Known = dict[tuple[Any, ...], tuple[object, Any]]
_MOST = 4
"""A question is compiled first, and the steps of a bisection after it are not kept."""
_KNOWN: ContextVar[_Known | None] = ContextVar("known", default=None)


@contextmanager
def reused() -> Iterator[None]:
    """While it lasts, `reuse` keeps what it makes. Another thread keeps nothing, and makes it again."""
    token = _KNOWN.set({})
    try:
        yield
    finally:
        _KNOWN.reset(token)


def is_reused() -> bool:
    """Whether `reuse` keeps what it makes: a certificate is to follow."""
    return _KNOWN.get() is not None


def reuse(owner: object, key: tuple[Any, ...], make: Callable[[], Result]) -> Result:
    """What `make` makes of an object that does not change; made once per object and key within `reused`."""
    known = _KNOWN.get()
    if known is None:
        return make()
    place = (id(owner), *key)
    if place in known:
        kept: Result = known[place][1]
        return kept
    result = make()
    if len(known) < _MOST:
        known[place] = (owner, result)  # the owner stays alive, so that its id stays its own
    return result
