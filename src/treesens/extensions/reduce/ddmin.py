"""Delta debugging: applies as many simplifications as the predicate allows.

The loop is ddmin (Zeller and Hildebrandt, Simplifying and Isolating Failure-Inducing Input, TSE 2002) on the set of edits that
are *not* applied: large groups first, then halves. A subject orders its edits in levels from coarse to fine (Misherghi and Su,
HDD: Hierarchical Delta Debugging, ICSE 2006), as mlir-reduce and `xdsl-opt --shrink` do with regions and operations. Every edit
makes the subject strictly simpler, so the loop over the levels ends: at a subject from which no single edit can be removed.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

Files = Mapping[str, bytes]
"""The contents of a candidate's files by relative path."""


class Subject(Protocol):
    """A candidate. Subjects are immutable."""

    def files(self) -> Files | None:
        """The files of the candidate; None if the candidate has no valid text."""
        ...

    def sizes(self) -> dict[str, int]:
        """The sizes that the reduction lowers, by name."""
        ...

    def levels(self) -> Sequence[Level]:
        """The levels of a round, from coarse to fine."""
        ...


Any_ = TypeVar("Any_", bound=Subject)


@dataclass(frozen=True)
class Level:
    """Edits that can be applied in any combination.

    `edits` lists the edits of a subject, and `applied` applies some of them; an edit is any value that these two understand.
    """

    name: str
    edits: Callable[[Any], Sequence[Any]]
    applied: Callable[[Any, Sequence[Any]], Any]


@dataclass
class Reducer:
    """Reduces a subject until no edit is left, `seconds` are over, or `stop` is set.

    `holds` decides whether the files of a candidate are interesting. Equal files are tried once.
    """

    holds: Callable[[Files], bool]
    seconds: float
    stop: threading.Event
    progress: Callable[[str], None]
    best: Any = None
    tests: int = 0
    _known: dict[bytes, bool] = field(default_factory=dict)
    _start: float = field(default_factory=time.monotonic)

    @property
    def over(self) -> bool:
        return self.stop.is_set() or time.monotonic() - self._start >= self.seconds

    def interesting(self, subject: Subject) -> bool:
        """True if the candidate satisfies the predicate."""
        files = subject.files()
        if files is None:
            return False
        key = hashlib.sha256()
        for name, content in sorted(files.items()):
            for part in (name.encode(), content):
                key.update(len(part).to_bytes(8, "big") + part)
        if (found := self._known.get(key.digest())) is None:
            found = self._known[key.digest()] = self.holds(files)
            self.tests += 1
        return found

    def reduced(self, subject: Any_) -> Any_:
        """The smallest candidate found; `subject` itself must be interesting. `best` is the candidate so far."""
        before, self.best = None, subject
        while subject is not before and not self.over:
            before = subject
            for level in subject.levels():
                subject = self.minimised(subject, level)
        return subject

    def minimised(self, start: Any_, level: Level) -> Any_:
        """The subject with as many edits of one level as the predicate allows."""
        left, best = list(level.edits(start)), start
        done: list[Any] = []
        size = len(left)
        while size and left and not self.over:
            rest: list[Any] = []
            for chunk in _chunks(left, size):
                candidate = start if self.over else level.applied(start, [*done, *chunk])
                if candidate is start or not self.interesting(candidate):
                    rest += chunk
                    continue
                done, best = [*done, *chunk], candidate
                self.best = best
                sizes = ", ".join(f"{count:,} {name}" for name, count in best.sizes().items())
                self.progress(f"{sizes} ({self.tests:,} candidates, {level.name})")
            left, size = rest, min(size, len(rest)) // 2 if size > 1 else 0
        return best


def _chunks(items: list[Any], size: int) -> Iterable[list[Any]]:
    return (items[at : at + size] for at in range(0, len(items), size))
