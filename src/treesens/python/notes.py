"""What a reader of a result should know, in the words of Python; a warning is told at the caller's own line, too."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable

from treesens.compiler.base.diagnostics import Diagnostics
from treesens.errors import TreesensWarning
from treesens.python.wording import in_python

_REPORTED = "warning["


def notes_of(diagnostics: Diagnostics, *, declared: bool) -> tuple[str, ...]:
    """The notes and warnings of a question; remedies stay declarations where the caller has `declared` features."""
    texts = [item.render() for item in diagnostics if item.severity != "error"]
    return tuple(texts if declared else map(in_python, texts))


def warn(notes: Iterable[str]) -> None:
    """Warnings among notes as Python's own, at the line that called treesens: rows that no answer can be, for example."""
    for note in notes:
        if _REPORTED in note.partition("\n")[0]:
            warnings.warn(note, TreesensWarning, stacklevel=_depth())


def _depth() -> int:
    """How far up the first frame is that is not of treesens, as `warn` counts."""
    depth, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "treesens":
        depth, frame = depth + 1, frame.f_back
    return depth
