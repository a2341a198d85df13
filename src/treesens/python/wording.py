"""Adapts messages to Python calls: messages about a study's options are written for the command line.

`add --threshold 0.5` becomes `add threshold=0.5`, and `leave out --pairs` becomes ``leave out `pairs` ``.
"""

from __future__ import annotations

import functools
import re
import shlex
import sys
import warnings
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, cast

from treesens.builtin import has_extensions, service
from treesens.compiler.base import option_kinds as kinds
from treesens.compiler.base.diagnostics import Diagnostics
from treesens.errors import TreesensError, TreesensWarning, unexpected

_Call = TypeVar("_Call", bound=Callable[..., Any])

_OPTION = re.compile(r"(?<![\w`-])--([a-z][a-z-]*)(?: ([\w.%|-]+(?:,[\w.%-]+)*))?")
_NUMBER = re.compile(r"[\d.]+")
_METAVAR = re.compile(r"[A-Z]+")
REAL = re.compile(r"declare (?:`feature (.+): real`|`` feature `(.+)`: real ``) if fractions can occur")
"""The remedy in a note on features that have only whole numbers."""

_OTHERS: dict[str, kinds.Kind] = {
    "data": kinds.TableFile(),
    "format": kinds.Text(),
    "label": kinds.Text(),
    "trust_pickle": kinds.Flag(),
}
"""Arguments of calls that are not options of studies."""


def typed(call: _Call) -> _Call:
    """A call of the Python interface that raises typed errors in its own terms: an unforeseen error becomes an InternalError
    chained to its cause. Errors of the caller (memory, a wrong argument of the call itself, warnings raised as errors) are
    unchanged.
    """

    @functools.wraps(call)
    def checked(*args: Any, **named: Any) -> Any:
        try:
            return call(*args, **named)
        except TreesensError as error:
            error.say(as_arguments)
            raise
        except (MemoryError, Warning):
            raise
        except Exception as error:
            trace = error.__traceback__
            if isinstance(error, TypeError) and trace is not None and trace.tb_next is None:
                raise  # the arguments do not fit the signature: the call was never entered
            raise unexpected(error) from error

    return cast("_Call", checked)


def in_python(note: str) -> str:
    """A note whose remedy is an argument of the call instead of a declaration or an option."""
    option = re.compile("add `(--real .+?)` if fractions can occur")
    told = REAL.sub(lambda found: f"pass real=[{found[1] or found[2]!r}] if fractions can occur", note)
    return as_arguments(option.sub(lambda f: f"pass real=[{shlex.split(f[1])[1]!r}] if fractions can occur", told))


def as_arguments(text: str) -> str:
    """A text with options of studies replaced by arguments of calls. Commands between backquotes are unchanged."""
    if "--" not in text:
        return text
    parts = text.split("`")
    parts[::2] = [_OPTION.sub(_argument, part) for part in parts[::2]]
    return "`".join(parts)


def _argument(found: re.Match[str]) -> str:
    known, value = _arguments().get(found[1]), found[2]
    if known is None:
        return found[0]
    name, kind = known
    after = "" if value is None else f" {value}"
    if isinstance(kind, kinds.Flag):
        return f"{name}=True{after}"
    last = value is not None and found.end() == len(found.string)
    written = None if value is None else _written(kind, value, last=last)
    return f"`{name}`{after}" if written is None else f"{name}={written}"


def _written(kind: kinds.Kind, value: str, *, last: bool) -> str | None:
    """A value in Python's notation; None for a word that merely continues the sentence."""
    several = value.split(",")
    if all(map(_NUMBER.fullmatch, several)):
        return f"[{', '.join(several)}]" if len(several) > 1 else value
    if _METAVAR.fullmatch(value) and isinstance(kind, kinds.Sizes | kinds.Number | kinds.Whole | kinds.Seconds):
        return value
    a_name = last or value[:1].isupper() or len(several) > 1 or value.endswith("%")
    if not a_name and not (isinstance(kind, kinds.Choice) and value in kind.words):
        return None
    quoted = [f'"{one}"' for one in several]
    return f"[{', '.join(quoted)}]" if len(several) > 1 else quoted[0]


@functools.cache
def _arguments() -> dict[str, tuple[str, kinds.Kind]]:
    """The arguments of calls, each with its kind, by option name."""
    found = {name.replace("_", "-"): (name, kind) for name, kind in _OTHERS.items()}
    return {**(service("studies").arguments() if has_extensions() else {}), **found}


_REPORTED = "warning["


def notes_of(diagnostics: Diagnostics, *, declared: bool) -> tuple[str, ...]:
    """The notes and warnings of a question; remedies remain declarations if the caller has `declared` features."""
    texts = [item.render() for item in diagnostics if item.severity != "error"]
    return tuple(texts if declared else map(in_python, texts))


def warn(notes: Iterable[str]) -> None:
    """Issues the warnings among the notes as Python warnings at the caller's line: for example, rows that cannot be answers."""
    for note in notes:
        if _REPORTED in note.partition("\n")[0]:
            warnings.warn(note, TreesensWarning, stacklevel=_depth())


def _depth() -> int:
    """The stack level of the first frame outside treesens, for `warn`."""
    depth, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "treesens":
        depth, frame = depth + 1, frame.f_back
    return depth
