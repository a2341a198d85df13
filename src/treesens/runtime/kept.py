"""A cache for results computed from models and questions, with one memory limit for all kinds of results."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Generic, TypeVar, cast

Value = TypeVar("Value")

_ROOM = 1 << 27
"""Maximum total bytes of all entries; entries of known size are counted. The latest entry of every kind is always kept."""


class Kept(Generic[Value]):
    """At most `most` entries of one kind, each of about `size(thing)` bytes. The least recently used entry is evicted first."""

    def __init__(self, most: int, size: Callable[[Value], int]) -> None:
        self._most, self._size, self._held = most, size, 0
        with _LOCK:
            _KINDS.append(self)

    def of(self, owners: Sequence[object], key: Hashable, make: Callable[[], Value], *, anew: bool = False) -> Value:
        """The cached result of `make` for immutable `owners`, compared by identity; `key` is compared by value.

        Two threads may both compute a result; either result is valid. With `anew` the result is always recomputed.
        """
        place = _Place(self, owners, key)
        with _LOCK:
            known = None if anew else _THINGS.pop(place, None)
            if known is not None:
                _THINGS[place] = known  # now the most recent entry
                return cast(Value, known.value)
        value = make()
        with _LOCK:
            self._drop(place)
            # The entry keeps the owners alive, so that no other object can get the identities in the key.
            _THINGS[place] = _Thing(self, tuple(owners), value, self._size(value))
            self._held += 1
            while self._held > self._most:
                self._drop(next(p for p, thing in _THINGS.items() if thing.kind is self))
            _make_room()
        return value

    def _drop(self, place: _Place) -> None:
        if _THINGS.pop(place, None) is not None:
            self._held -= 1


class _Place:
    """A key whose hash is computed only once, because a question's hash covers all of its arrays and fractions."""

    __slots__ = ("_hash", "_parts")

    def __init__(self, kind: Kept[Any], owners: Sequence[object], key: Hashable) -> None:
        self._parts = (id(kind), tuple(map(id, owners)), key)
        self._hash = hash(self._parts)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Place) and self._hash == other._hash and self._parts == other._parts


class _Thing:
    def __init__(self, kind: Kept[Any], owners: tuple[object, ...], value: object, size: int) -> None:
        self.kind, self.owners, self.value, self.size = kind, owners, value, size


def _make_room() -> None:
    held = sum(thing.size for thing in _THINGS.values())
    for place, thing in list(_THINGS.items()):
        if held <= _ROOM:
            return
        if thing.kind._held > 1:
            thing.kind._drop(place)
            held -= thing.size


def forget() -> None:
    """Clears the cache; later requests recompute."""
    with _LOCK:
        for kind in _KINDS:
            kind._held = 0
        _THINGS.clear()


_LOCK = threading.Lock()
_KINDS: list[Kept[Any]] = []
_THINGS: dict[_Place, _Thing] = {}
"""The entries, most recently used last. A plain dictionary, because `OrderedDict` hashes every key during iteration."""

# Engine objects must be freed before the engine module, and module teardown has no defined order.
atexit.register(forget)


# Results shared by the steps of one answer: a certificate needs the search's compilation.
Result = TypeVar("Result")
_Known = dict[tuple[Any, ...], tuple[object, Any]]
_MOST = 4
"""Maximum number of results: the first is the question's compilation; the later steps of a bisection are not cached."""
_KNOWN: ContextVar[_Known | None] = ContextVar("known", default=None)


@contextmanager
def reused() -> Iterator[None]:
    """A block in which `reuse` caches results for this thread only; other threads recompute."""
    token = _KNOWN.set({})
    try:
        yield
    finally:
        _KNOWN.reset(token)


def is_reused() -> bool:
    """True if `reuse` caches its results, because a certificate will follow."""
    return _KNOWN.get() is not None


def reuse(owner: object, key: tuple[Any, ...], make: Callable[[], Result]) -> Result:
    """The result of `make` for an immutable object; within `reused` it is computed once per object and key."""
    known = _KNOWN.get()
    if known is None:
        return make()
    place = (id(owner), *key)
    if place in known:
        kept: Result = known[place][1]
        return kept
    result = make()
    if len(known) < _MOST:
        known[place] = (owner, result)  # keeps the owner alive, so that its id stays unique
    return result
