"""What was made of models and questions and may be asked for again: kept under a key, all kinds within one limit of memory."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Generic, TypeVar, cast

Value = TypeVar("Value")

_ROOM = 1 << 27
"""Bytes that all kinds hold together, as far as their sizes are known. The last thing of every kind stays, however large."""


class Kept(Generic[Value]):
    """Things of one kind, at most `most`, each of about `size(thing)` bytes. What was asked for longest ago goes first."""

    def __init__(self, most: int, size: Callable[[Value], int]) -> None:
        self._most, self._size, self._held = most, size, 0
        with _LOCK:
            _KINDS.append(self)

    def of(self, owners: Sequence[object], key: Hashable, make: Callable[[], Value], *, anew: bool = False) -> Value:
        """What `make` makes of its `owners`, which do not change: they count by identity, the rest of the key by value.

        Two threads may both make it, and either gets a good one. With `anew` it is made in any case.
        """
        place = _Place(self, owners, key)
        with _LOCK:
            known = None if anew else _THINGS.pop(place, None)
            if known is not None:
                _THINGS[place] = known  # now it is the last one
                return cast(Value, known.value)
        value = make()
        with _LOCK:
            self._drop(place)
            # The owners stay alive, so that nothing else can get the identities of the key meanwhile.
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
    """A key, whose hash is taken once: that of a question goes through all of its arrays and fractions."""

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
    """Everything that is kept; what is asked for again is made again."""
    with _LOCK:
        for kind in _KINDS:
            kind._held = 0
        _THINGS.clear()


_LOCK = threading.Lock()
_KINDS: list[Kept[Any]] = []
_THINGS: dict[_Place, _Thing] = {}
"""What was asked for last is the last. A plain dictionary, as an ordered one takes the hash of every key that it shows."""

# Objects of the engine have to go before the engine does, and modules are cleared in no order that says so.
atexit.register(forget)


# Results that several steps of one answer share: a certificate needs what the search has compiled.
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
    """True if `reuse` keeps what it makes: a certificate is to follow."""
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
