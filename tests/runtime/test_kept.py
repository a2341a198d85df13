"""What is kept: made once per owner and key, within counts and one limit of memory, until it is forgotten."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from treesens.runtime import kept
from treesens.runtime.kept import Kept, forget

ROOT = Path(__file__).parents[2]
LAST_WORDS = """
from treesens.runtime import kept  # before the engine: modules are cleared in reverse order
import numpy as np
from tests.questions import random_query
from treesens.backends.native.tree_question import bound_question

rng = np.random.default_rng(5)
queries = (random_query(rng) for _ in range(40))
if any(bound_question(query) is not None for query in queries if query.objective is None) and kept._THINGS:
    print("kept")
"""


class Owner:
    """Equal to all others, but not the same."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Owner)

    def __hash__(self) -> int:
        return 0


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    forget()
    yield
    forget()


def counting() -> tuple[list[str], Callable[[str], Callable[[], str]]]:
    """What was made, and makers of it."""
    made: list[str] = []

    def maker(name: str) -> Callable[[], str]:
        def make() -> str:
            made.append(name)
            return name

        return make

    return made, maker


def test_a_thing_is_made_once_per_owner_and_key() -> None:
    made, maker = counting()
    kind: Kept[str] = Kept(9, len)
    one, other = Owner(), Owner()
    for _ in range(2):
        assert kind.of((one,), 1, maker("a")) == "a"
        assert kind.of((one,), 2, maker("b")) == "b"
        assert kind.of((other,), 1, maker("c")) == "c"
        assert kind.of((), 1, maker("d")) == "d"
    assert made == ["a", "b", "c", "d"]
    assert kind.of((one,), 1, maker("e"), anew=True) == "e"
    assert kind.of((one,), 1, maker("f")) == "e"


def test_kinds_do_not_see_each_other() -> None:
    made, maker = counting()
    first: Kept[str] = Kept(1, len)
    second: Kept[str] = Kept(1, len)
    assert [first.of((), 1, maker("a")), second.of((), 1, maker("b")), first.of((), 1, maker("c"))] == ["a", "b", "a"]
    assert made == ["a", "b"]


def test_what_was_asked_for_longest_ago_goes_first() -> None:
    made, maker = counting()
    kind: Kept[str] = Kept(2, len)
    for key in (1, 2, 1, 3, 1, 2):
        kind.of((), key, maker(str(key)))
    assert made == ["1", "2", "3", "2"]


def test_all_kinds_share_the_room_and_the_last_of_each_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "_ROOM", 10)
    made, maker = counting()
    small: Kept[str] = Kept(9, len)
    large: Kept[str] = Kept(9, len)
    for key in ("aa", "bb", "cc"):
        small.of((), key, maker(key))
    large.of((), "L" * 8, maker("L" * 8))  # two too many: the oldest two go
    small.of((), "cc", maker("cc"))
    large.of((), "M" * 99, maker("M" * 99))  # more than there is room for: all goes but the last of each kind
    assert small.of((), "cc", maker("cc")) == "cc"
    assert large.of((), "M" * 99, maker("M" * 99)) == "M" * 99
    assert made == ["aa", "bb", "cc", "L" * 8, "M" * 99]
    small.of((), "aa", maker("aa"))
    large.of((), "L" * 8, maker("L" * 8))
    assert made[5:] == ["aa", "L" * 8]


def test_owners_live_as_long_as_what_was_made_of_them() -> None:
    _, maker = counting()
    kind: Kept[str] = Kept(1, len)
    owner = Owner()
    alive = weakref.ref(owner)
    kind.of((owner,), 1, maker("a"))
    del owner
    gc.collect()
    assert alive() is not None  # else another object could get its identity, and what was made of it
    kind.of((), 2, maker("b"))
    gc.collect()
    assert alive() is None


def test_what_fails_is_not_kept() -> None:
    made, maker = counting()
    kind: Kept[str] = Kept(1, len)

    def fail() -> str:
        raise MemoryError

    with pytest.raises(MemoryError):
        kind.of((), 1, fail)
    assert kind.of((), 1, maker("a")) == "a"
    assert made == ["a"]


def test_what_is_forgotten_is_made_again() -> None:
    made, maker = counting()
    kind: Kept[str] = Kept(2, len)
    for _ in range(2):
        kind.of((), 1, maker("a"))
        forget()
    for key in (2, 3, 2):
        kind.of((), key, maker("b"))  # the count began anew
    assert made == ["a", "a", "b", "b"]


def test_what_is_kept_at_the_end_goes_before_the_engine_does() -> None:
    """Else nanobind tells of leaked objects, after every answer that somebody waits for."""
    done = subprocess.run([sys.executable, "-c", LAST_WORDS], capture_output=True, text=True, check=False, cwd=ROOT)
    assert (done.returncode, done.stdout, done.stderr) == (0, "kept\n", "")


def test_what_is_made_slowly_is_kept_under_its_own_key() -> None:
    """While one value is made, another thread requests more other values than fit."""
    kind: Kept[int] = Kept(3, lambda _: 1)
    begun, go_on, found = threading.Event(), threading.Event(), list[int]()

    def slow() -> int:
        begun.set()
        assert go_on.wait(60)
        return 0

    thread = threading.Thread(target=lambda: found.append(kind.of((), 0, slow)))
    thread.start()
    assert begun.wait(60)
    assert [kind.of((), key, lambda key=key: key) for key in range(1, 7)] == list(range(1, 7))  # type: ignore[misc]
    go_on.set()
    thread.join()
    assert found == [0]
    assert kind.of((), 0, lambda: 9) == 0
    assert [kind.of((), key, lambda: 9) for key in (6, 1)] == [6, 9], "the oldest has made room"


def test_threads_get_what_their_key_says() -> None:
    kind: Kept[int] = Kept(3, lambda _: 1)
    wrong: list[int] = []

    def ask(start: int) -> None:
        for i in range(2000):
            key = (start + i) % 7
            if kind.of((), key, lambda key=key: key) != key:  # type: ignore[misc]
                wrong.append(key)

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
