"""Terminal output: text from files is made visible, escape codes come only from our own styles, and long lines are wrapped."""

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
"""Minimum width, in columns, to which lines are fitted."""


def terminal_width() -> int | None:
    """The width of standard output, from the terminal or COLUMNS; None for a file or a pipe, whose width is unlimited."""
    named = os.environ.get("COLUMNS", "")
    if named.isdecimal() and int(named) > 0:
        return max(_LEAST, int(named))
    return max(_LEAST, shutil.get_terminal_size().columns) if sys.stdout.isatty() else None


def display_width(text: str) -> int:
    """The display width of a text: East Asian characters have width 2, and combining characters have width 0."""
    if text.isascii():
        return len(text)
    return sum(_columns(character) for character in text)


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def wrapped(text: str, width: int | None, hanging: int = 0) -> list[str]:
    """The lines of a text, wrapped at spaces if they are too long; continuation lines are indented like the line, plus
    `hanging`. A word longer than a line is not broken.
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
    """Text from `styled`, which may contain our own escape codes."""


def styled(text: str, **style: Any) -> Styled:
    """Text in a style of `click.style`."""
    return Styled(click.style(visible(text), **style))


_QUIET = "treesens.quiet"


def be_quiet(context: click.Context) -> None:
    """Makes this context's command print only JSON on standard output from now on."""
    context.meta[_QUIET] = True


def is_quiet() -> bool:
    """True if the current command must print only JSON on standard output."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(_QUIET))


def say(*parts: str, err: bool = False, nl: bool = True) -> None:
    """Prints a line (or several) on standard output or error; without colours if the stream is not a terminal or colours are
    disabled (no-color.org).
    """
    if is_quiet() and not err:
        return
    text = "".join(part if isinstance(part, Styled) else visible(part, lines=True) for part in parts)
    click.echo(text, err=err, nl=nl, color=False if os.environ.get("NO_COLOR") else None)


def say_wrapped(text: str, hanging: int = 2) -> None:
    """Prints lines on standard output, wrapped at spaces at the terminal's width."""
    for line in wrapped(visible(text, lines=True), terminal_width(), hanging):
        say(line)


def say_json(data: Any, indent: int | None = 2) -> None:
    """Prints JSON on standard output, without NaN and infinities."""
    text = json.dumps(data, indent=indent, ensure_ascii=False, allow_nan=False, default=str)
    click.echo(visible_json(text))


def console(*, err: bool = False, **options: Any) -> Console:
    """A rich console without markup: a feature may be called `[bold]`."""
    from rich.console import Console
    from rich.segment import Segment

    class VisibleConsole(Console):
        """A console that passes text through `visible`, except rich's own codes."""

        def render_str(self, text: str, **given: Any) -> Any:
            return super().render_str(visible(text, lines=True), **given)

        def _render_buffer(self, buffer: Any) -> str:
            seen = (Segment(visible(s.text, lines=True), s.style, s.control) if not s.control else s for s in buffer)
            return super()._render_buffer(seen)

    return VisibleConsole(stderr=err, highlight=False, markup=False, emoji=False, **options)


def use_any_encoding() -> None:
    """Writes characters outside the terminal's encoding as escapes, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
