"""The one way to the terminal: what comes from files is made visible, and only our own styles become escape codes."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

import click

from treesens.report.wrapping import terminal_width, wrapped
from treesens.visible import visible, visible_json

if TYPE_CHECKING:
    from rich.console import Console


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
    """Whether the command that runs is to put nothing but JSON on standard output."""
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
