"""Lines that fit a terminal: broken at blanks, never inside a word."""

from __future__ import annotations

import os
import shutil
import sys
import unicodedata
from collections.abc import Iterator

_LEAST = 20
"""Columns of the narrowest terminal that lines are fitted to."""


def terminal_width() -> int | None:
    """The columns of standard output: of the terminal, or as COLUMNS says; None for a file or a pipe, which take any width."""
    named = os.environ.get("COLUMNS", "")
    if named.isdecimal() and int(named) > 0:
        return max(_LEAST, int(named))
    return max(_LEAST, shutil.get_terminal_size().columns) if sys.stdout.isatty() else None


def display_width(text: str) -> int:
    """Columns that a text takes: characters of East Asia take two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(_columns(character) for character in text)


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def wrapped(text: str, width: int | None, hanging: int = 0) -> list[str]:
    """The lines of a text, broken at blanks where they are too long; what follows a break is indented as the line is, and by
    `hanging` more. A word that is longer than a line stays whole.
    """
    if width is None:
        return text.split("\n")
    return [part for line in text.split("\n") for part in _broken(line, width, hanging)]


def _broken(line: str, width: int, hanging: int) -> Iterator[str]:
    if display_width(line) <= width:
        yield line
        return
    indent = line[: len(line) - len(line.lstrip(" "))]
    words = line[len(indent) :].split(" ")
    built, further = indent + words[0], indent + " " * hanging
    for word in words[1:]:
        if display_width(built) + 1 + display_width(word) <= width:
            built = f"{built} {word}"
        elif word:
            yield built.rstrip(" ")
            built = further + word
    yield built.rstrip(" ")
