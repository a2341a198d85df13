"""Typed errors. Every error says what is wrong, where, and what to do; the command line maps each to an exit code.

Exit codes follow CBMC: 1 usage, 2 something given does not parse or type-check, 6 an error of our own.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from treesens.visible import visible

_LOG = logging.getLogger("treesens")


class TreesensError(Exception):
    """Base of all errors that a user can cause or must know about.

    `message` is one sentence without a final period; `remedy` (may be empty) says what to do; `place` (may be empty) is
    where it happened: a file with line and column, a JSON path, a column name.
    """

    exit_code: ClassVar[int] = 2
    code: ClassVar[str] = "E000"
    several_lines: ClassVar[bool] = False
    """Whether a message holds line breaks of ours; those of names are shown as escapes."""

    def __init__(self, message: str, *, remedy: str = "", place: str = "") -> None:
        self.message = visible(message, lines=self.several_lines)
        super().__init__(self.message)
        self.remedy = visible(remedy, lines=True)
        self.place = visible(place)

    def say(self, reworded: Callable[[str], str]) -> None:
        """Says the same in other words: those of the interface that was used."""
        self.message, self.remedy = reworded(self.message), reworded(self.remedy)
        self.args = (self.message,)

    def __str__(self) -> str:
        text = f"{self.place}: {self.message}" if self.place else self.message
        return f"{text}\n  help: {self.remedy}" if self.remedy else text


class TreesensWarning(UserWarning):
    """What a reader of the answers should know: a note or a warning about a model, a table or a question."""


class ModelError(TreesensError):
    """A model file or object cannot be read exactly, or holds something treesens cannot represent."""

    code = "M001"


class DataError(TreesensError):
    """A table cannot be read or does not fit the model."""

    code = "D001"


class QueryError(TreesensError):
    """A question does not parse, does not type-check, or contradicts itself."""

    code = "Q001"


class IRError(TreesensError):
    """A module breaks a rule of the IR, or its text does not parse."""

    code = "I001"


class PipelineError(TreesensError):
    """A pipeline text is wrong, or a pass is used where its requirements do not hold."""

    code = "P001"


class BackendError(TreesensError):
    """A backend is unknown, not available here, or cannot take this module."""

    code = "B001"


class UsageError(TreesensError):
    """A command or function was called in a way that makes no sense."""

    exit_code = 1
    code = "U001"


class MissingPackageError(UsageError):
    """Something asked for needs a package that is not installed here."""

    code = "U002"


class OverwriteError(UsageError):
    """A file that would be written is one that this run reads, or one of somebody else under a name that was not given."""

    code = "U003"


class ArgumentsError(UsageError, TypeError):
    """A function of Python was called with arguments that it does not have, or without one that it needs."""

    code = "U004"


class UndecidedError(TreesensError):
    """No number of digits that anybody computes tells a sum of probabilities from its bound: the question stays open."""

    code = "N001"


class InternalError(TreesensError):
    """An internal invariant is violated; never the user's fault."""

    exit_code = 6
    several_lines = True
    code = "X001"


def unexpected(error: Exception) -> InternalError:
    """An error that nothing in treesens has foreseen as a typed one, with its innermost place; the cause is chained."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = "" if trace is None else f" ({Path(trace.tb_frame.f_code.co_filename).name}, line {trace.tb_lineno})"
    try:
        raise InternalError(
            f"internal error: {type(error).__name__}: {error}{where}",
            remedy="please report this with the command and, if you can, the model and the question",
        ) from error
    except InternalError as chained:
        return chained


def told(error: Exception, what: str) -> TreesensError:
    """The typed error of a step that costs nothing but itself. What nobody has foreseen goes to the log with its traceback."""
    if isinstance(error, TreesensError):
        return error
    _LOG.debug("%s failed", what, exc_info=error)
    return unexpected(error)
