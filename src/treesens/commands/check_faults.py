"""Errors of single questions of a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from treesens.binder.file import ResolvedQuestion
from treesens.compiler.base.interruption import Hurry
from treesens.compiler.result import Result
from treesens.errors import InternalError, TreesensError, told
from treesens.solve.options import Options
from treesens.solve.question import result_of_error, result_of_interruption


@dataclass
class Faults:
    """Errors of single questions; the others are answered all the same."""

    shown: list[str] = field(default_factory=list)
    own: bool = False
    """True if an internal error of treesens is among them."""

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

    def answer(self, query: ResolvedQuestion, options: Options, ask: Callable[[], Result]) -> Result:
        """The answer of `ask`, or an open answer with the error as its reason: one question never affects another's answer."""
        try:
            return ask()
        except Hurry:
            return result_of_interruption(query, options)
        except Exception as error:  # noqa: BLE001 - every kind of error becomes a typed one here
            failed = told(error, query.name)
            self.note(query, failed)
            return result_of_error(query, options, failed)
