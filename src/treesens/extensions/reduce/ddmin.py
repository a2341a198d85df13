"""Delta debugging: applies as many simplifications as the predicate allows.

The loop is ddmin (Zeller and Hildebrandt, Simplifying and Isolating Failure-Inducing Input, TSE 2002) over the edits that are
not applied yet: all of them at once, then halves. A subject orders its edits in levels from coarse to fine (Misherghi and Su,
HDD: Hierarchical Delta Debugging, ICSE 2006), as mlir-reduce and `xdsl-opt --shrink` do. An edit makes its subject strictly
simpler, so that the rounds over the levels end; then no single edit can be applied.
"""

from __future__ import annotations

import hashlib
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Files = Mapping[str, bytes]
"""The contents of files by name."""


@dataclass(frozen=True)
class Level:
    """Edits of a subject, and the function that applies some of them to it; both agree on the type of an edit."""

    name: str
    edits: Callable[[Any], Sequence[Any]]
    applied: Callable[[Any, Sequence[Any]], Any]


@dataclass(frozen=True, eq=False)
class Subject(ABC):
    """An immutable candidate: the main file `name`, and `linked` files, by name, that no edit changes. `notes` are messages."""

    name: str
    linked: Mapping[str, Path]
    notes: Sequence[str]

    @abstractmethod
    def files(self) -> Files | None:
        """The files that edits change; None for a candidate without a valid text."""

    @abstractmethod
    def sizes(self) -> dict[str, int]:
        """Counts of parts, by the name of the part."""

    @abstractmethod
    def levels(self) -> Sequence[Level]:
        """The levels of one round, from coarse to fine."""


@dataclass
class Reducer:
    """Searches the smallest candidate for which `holds`, for so many `seconds` or until `stop` is set.

    `best` is the smallest candidate so far, or None; the search is `finished` if no edit of it is interesting. Candidates with
    equal files are tried once; `tests` counts them.
    """

    holds: Callable[[Files], bool]
    seconds: float
    stop: threading.Event
    progress: Callable[[str], None]
    best: Any = None
    tests: int = 0
    finished: bool = False
    known: dict[bytes, bool] = field(default_factory=dict)
    start: float = field(default_factory=time.monotonic)

    @property
    def over(self) -> bool:
        return self.stop.is_set() or time.monotonic() - self.start >= self.seconds

    def reduce(self, subject: Subject) -> None:
        """Reduces a subject to `best`, which is None if the subject itself does not satisfy the predicate."""
        before = None
        self._tried(subject)
        while self.best is not before and not self.over:
            before = self.best
            for level in self.best.levels():
                self._minimise(level)
        self.finished = self.best is before and not self.over

    def _tried(self, candidate: Subject) -> bool:
        files = candidate.files()
        if files is None:
            return False
        key = hashlib.sha256(repr(sorted(files.items())).encode()).digest()
        if key not in self.known:
            self.tests += 1
            self.known[key] = self.holds(files)
        if self.known[key]:
            self.best = candidate
        return self.known[key]

    def _minimise(self, level: Level) -> None:
        """Applies as many edits of a level as the predicate allows."""
        start, done = self.best, []  # type: ignore[var-annotated]
        left = list(level.edits(start))
        size = len(left)
        while size and left:
            rest: list[Any] = []
            for at in range(0, len(left), size):
                chunk = left[at : at + size]
                if self.over or not self._tried(level.applied(start, [*done, *chunk])):
                    rest += chunk
                    continue
                done += chunk
                sizes = ", ".join(f"{count:,} {name}" for name, count in self.best.sizes().items())
                self.progress(f"{sizes} ({self.tests:,} candidates, {level.name})")
            left, size = rest, size // 2
