"""What went wrong with single questions of a file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from treesens.binder.file import ResolvedQuestion
from treesens.errors import InternalError, TreesensError


@dataclass
class Faults:
    """What went wrong with single questions; the others are answered all the same."""

    shown: list[str] = field(default_factory=list)
    own: bool = False
    """Whether an error of treesens itself is among them."""

    def note(self, query: ResolvedQuestion, error: TreesensError) -> None:
        self.shown.append(f"{query.name}: error[{error.code}]: {error}")
        self.own |= isinstance(error, InternalError)

    def note_own(self, name: str, text: str) -> None:
        self.shown.append(f"{name}: error[{InternalError.code}]: {text}")
        self.own = True

    @contextmanager
    def kept(self, query: ResolvedQuestion) -> Iterator[None]:
        try:
            yield
        except TreesensError as error:
            self.note(query, error)
