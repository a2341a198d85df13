"""Typed errors. Every error states the problem, its location and a remedy; the command line maps each to an exit code.

Exit codes follow CBMC: 1 usage, 2 invalid input (syntax or types), 6 an internal error.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from treesens.visible import visible

_LOG = logging.getLogger("treesens")


class TreesensError(Exception):
    """Base of all errors that users can cause or must know about.

    `message` is one sentence without a final period; `remedy` (may be empty) is an instruction; `place` (may be empty) is the
    location: a file with line and column, a JSON path, a column name.
    """

    exit_code: ClassVar[int] = 2
    code: ClassVar[str] = "E000"
    several_lines: ClassVar[bool] = False
    """True if a message contains intended line breaks; line breaks in names are shown as escapes."""

    def __init__(self, message: str, *, remedy: str = "", place: str = "") -> None:
        self.message = visible(message, lines=self.several_lines)
        super().__init__(self.message)
        self.remedy = visible(remedy, lines=True)
        self.place = visible(place)

    def say(self, reworded: Callable[[str], str]) -> None:
        """Rewords the message for the user interface."""
        self.message, self.remedy = reworded(self.message), reworded(self.remedy)
        self.args = (self.message,)

    def __str__(self) -> str:
        text = f"{self.place}: {self.message}" if self.place else self.message
        return f"{text}\n  help: {self.remedy}" if self.remedy else text


class TreesensWarning(UserWarning):
    """Information for readers of answers: a note or a warning about a model, a table or a question."""


class ModelError(TreesensError):
    """A model file or object cannot be read exactly, or contains something that treesens cannot represent."""

    code = "M001"


class DataError(TreesensError):
    """A table cannot be read or does not fit the model."""

    code = "D001"


class QueryError(TreesensError):
    """A question does not parse, does not type-check, or is contradictory."""

    code = "Q001"


class IRError(TreesensError):
    """A module breaks a rule of the IR, or its text does not parse."""

    code = "I001"


class PipelineError(TreesensError):
    """A pipeline text is invalid, or the requirements of a pass are not met."""

    code = "P001"


class BackendError(TreesensError):
    """A backend is unknown, not available here, or does not support this module."""

    code = "B001"


class UsageError(TreesensError):
    """A command or function was called with invalid arguments."""

    exit_code = 1
    code = "U001"


class MissingPackageError(UsageError):
    """A package that this operation needs is not installed."""

    code = "U002"


class OverwriteError(UsageError):
    """An output file is also an input of this run, or its derived name belongs to an existing file of another origin."""

    code = "U003"


class ArgumentsError(UsageError, TypeError):
    """A Python function was called with unknown arguments, or lacks a required argument."""

    code = "U004"


class UndecidedError(TreesensError):
    """No feasible precision separates a sum of probabilities from its bound, so the question stays open."""

    code = "N001"


class InternalError(TreesensError):
    """An internal invariant is violated; never the user's fault."""

    exit_code = 6
    several_lines = True
    code = "X001"


def unexpected(error: Exception) -> InternalError:
    """The error for an exception that treesens did not foresee, with the innermost location; the cause is chained."""
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
    """The typed error of a failed step that affects nothing else; an unforeseen error is also logged, with its traceback."""
    if isinstance(error, TreesensError):
        return error
    _LOG.debug("%s failed", what, exc_info=error)
    return unexpected(error)
