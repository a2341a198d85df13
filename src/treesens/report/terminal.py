"""Output on the terminal: text from files is made visible, only our styles become escape codes, and long lines are wrapped."""

from __future__ import annotations

import json
import os
import shutil
import sys
import unicodedata
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from treesens.visible import visible, visible_json

if TYPE_CHECKING:
    from rich.console import Console


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


class Styled(str):
    """Text that `styled` has made: it may hold escape codes, which are ours."""


def styled(text: str, **style: Any) -> Styled:
    """Text in a style of `click.style`."""
    return Styled(click.style(visible(text), **style))


_QUIET = "treesens.quiet"


def be_quiet(context: click.Context) -> None:
    """From now on the command of this context puts nothing but JSON on standard output."""
    context.meta[_QUIET] = True


def is_quiet() -> bool:
    """True if the command that runs is to put nothing but JSON on standard output."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(_QUIET))


def say(*parts: str, err: bool = False, nl: bool = True) -> None:
    """A line (or several) on standard output, or on standard error; no colours if that is no terminal or nobody wants them
    (no-color.org).
    """
    if is_quiet() and not err:
        return
    text = "".join(part if isinstance(part, Styled) else visible(part, lines=True) for part in parts)
    click.echo(text, err=err, nl=nl, color=False if os.environ.get("NO_COLOR") else None)


def say_wrapped(text: str, hanging: int = 2) -> None:
    """Lines on standard output that are broken at blanks where the terminal ends."""
    for line in wrapped(visible(text, lines=True), terminal_width(), hanging):
        say(line)


def say_json(data: Any, indent: int | None = 2) -> None:
    """JSON on standard output; NaN and infinities never get out."""
    text = json.dumps(data, indent=indent, ensure_ascii=False, allow_nan=False, default=str)
    click.echo(visible_json(text))


def console(*, err: bool = False, **options: Any) -> Console:
    """A console of rich. It reads no markup: a feature may be called `[bold]`."""
    from rich.console import Console
    from rich.segment import Segment

    class VisibleConsole(Console):
        """Text passes through `visible` on its way out; codes that rich makes do not."""

        def render_str(self, text: str, **given: Any) -> Any:
            return super().render_str(visible(text, lines=True), **given)

        def _render_buffer(self, buffer: Any) -> str:
            seen = (Segment(visible(s.text, lines=True), s.style, s.control) if not s.control else s for s in buffer)
            return super()._render_buffer(seen)

    return VisibleConsole(stderr=err, highlight=False, markup=False, emoji=False, **options)


def use_any_encoding() -> None:
    """A character that the terminal's encoding lacks is written as an escape; it is no reason to stop."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
