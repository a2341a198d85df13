"""Source locations, and messages that show them with a caret.

Every message of the language tools is a `Diagnostic`; a `Diagnostics` collects all messages of a file, which are reported
together.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from treesens.errors import QueryError
from treesens.visible import visible


@dataclass(frozen=True, slots=True)
class Source:
    """A text with a name that messages show (a path, or `<query>` for text from Python).

    `included` is the place of the `include` through which the text was read.
    """

    name: str
    text: str
    included: Span | None = field(default=None, compare=False)

    def line(self, number: int) -> str:
        """The text of line `number` (from 1) without its newline; empty past the end."""
        lines = self.text.split("\n")
        return lines[number - 1].rstrip("\r") if 1 <= number <= len(lines) else ""

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column (both from 1) of a character offset."""
        before = self.text[:offset]
        return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1


@dataclass(frozen=True, slots=True)
class Span:
    """Half-open range of character offsets in a source.

    `used` is the place that uses a definition or a constant whose text is at this span.
    """

    source: Source
    start: int
    end: int
    used: Span | None = field(default=None, compare=False)

    @property
    def text(self) -> str:
        return self.source.text[self.start : self.end]

    @property
    def place(self) -> str:
        line, column = self.source.position(self.start)
        return f"{self.source.name}:{line}:{column}"

    def to(self, other: Span) -> Span:
        """The span from the start of this span to the end of `other`."""
        return Span(self.source, self.start, max(self.end, other.end), self.used)

    def uses(self) -> Iterator[Span]:
        """The places at which this text is used, from the nearest to the outermost."""
        used = self.used
        while used is not None:
            yield used
            used = used.used

    def within(self, source: Source) -> Span | None:
        """This span, or the nearest place in `source` that uses or includes its text."""
        for span in (self, *self.uses()):
            if span.source.name == source.name:
                return span
        above = self.source.included
        return None if above is None else above.within(source)

    def excerpt(self) -> str:
        """The first line of the span, with a caret line below."""
        line, column = self.source.position(self.start)
        shown = self.source.line(line)
        width = max(1, min(self.end - self.start, len(shown) - column + 1))
        if len(shown) > _LONGEST_LINE:
            shown, column, width = _part_of_line(shown, column, width)
        gutter = f"{line:>5} | "
        # Tabs are kept in the caret line so that it lines up in any terminal.
        indent = "".join("\t" if c == "\t" else " " for c in shown[: column - 1])
        return f"{gutter}{shown}\n{' ' * (len(gutter) - 2)}| {indent}{'^' * width}"


_LONGEST_LINE = 200
"""Maximum length of a shown line; a longer line is cut to the part around the location."""


def _part_of_line(line: str, column: int, width: int) -> tuple[str, int, int]:
    """The part of a long line around a column, with the location's column and width relative to this part."""
    start = max(0, min(column - 1 - _LONGEST_LINE // 4, len(line) - _LONGEST_LINE))
    end = min(len(line), start + _LONGEST_LINE)
    shown = ("…" if start else "") + line[start:end] + ("…" if end < len(line) else "")
    column += (1 if start else 0) - start
    return shown, column, min(width, len(shown) - column + 1)


NOWHERE = Span(Source("<built>", ""), 0, 0)
"""The span of nodes that were not built from source text."""


@dataclass(frozen=True, slots=True)
class Code:
    """One kind of mistake: its number, title, cause and remedy. Numbers never change."""

    code: str
    title: str
    cause: str
    remedy: str

    def __str__(self) -> str:
        return self.code


class Remedy(str):
    """A remedy that an editor can apply: `text` replaces `wrong`, a part of the message's location (None: all of it), or the
    text at `where`.
    """

    text: str
    wrong: str | None
    where: Span | None

    def __new__(cls, words: str, text: str, wrong: str | None = None, where: Span | None = None) -> Remedy:
        made = super().__new__(cls, words)
        made.text, made.wrong, made.where = text, wrong, where
        return made


def write(text: str, where: Span | None = None) -> Remedy:
    """The remedy to write a text in the place of the message's location, or of `where`."""
    return Remedy(f"write `{text}`", text, where=where)


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One message: a stable code, a sentence, its location, a remedy, and related locations (`related`)."""

    code: str
    message: str
    span: Span | None = None
    remedy: str = ""
    severity: str = "error"
    related: tuple[Span, ...] = ()

    @property
    def fix(self) -> tuple[Span, str] | None:
        """The edit that the remedy proposes: a location and the text that replaces it; None if there is no such edit."""
        remedy, span = self.remedy, self.span
        if not isinstance(remedy, Remedy) or span is None:
            return None
        if remedy.wrong is None:
            return remedy.where or span, remedy.text
        for spelled in (f"`{remedy.wrong}`", remedy.wrong):
            found = re.search(rf"(?<!\w){re.escape(spelled)}(?!\w)", span.text)
            if found is not None:
                return Span(span.source, span.start + found.start(), span.start + found.end()), remedy.text
        return None

    def render(self) -> str:
        span = None if self.span == NOWHERE else self.span
        place = f"{span.place}: " if span else ""
        lines = [f"{visible(place)}{self.severity}[{self.code}]: {visible(self.message)}"]
        if span and span.source.text:  # a file that cannot be read has no lines
            lines.append(span.excerpt())
            for used in span.uses():
                lines += [f"used here: {visible(used.place)}", used.excerpt()]
        lines += [other.excerpt() for other in self.related if other != NOWHERE]
        if self.remedy:
            lines.append(f"  help: {visible(self.remedy)}")
        return "\n".join(lines)


_MOST_SHOWN = 10
"""Maximum number of errors printed for one file; `diagnostics` contains all of them."""


class DiagnosticsError(QueryError):
    """Raised once, with all errors in a file."""

    several_lines = True

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        shown = [d.render() for d in self.diagnostics[:_MOST_SHOWN]]
        left = len(self.diagnostics) - len(shown)
        super().__init__("\n\n".join([*shown, *([f"and {left} more mistakes"] if left else [])]))


@dataclass(slots=True)
class Diagnostics:
    """Collects messages while a file is read."""

    items: list[Diagnostic] = field(default_factory=list)

    def __iter__(self) -> Iterator[Diagnostic]:
        return iter(self.items)

    def error(
        self, code: str | Code, message: str, span: Span | None = None, remedy: str = "", related: tuple[Span, ...] = ()
    ) -> None:
        self.items.append(Diagnostic(str(code), message, span, remedy, related=related))

    def warning(self, code: str, message: str, span: Span | None = None, remedy: str = "") -> None:
        self.items.append(Diagnostic(code, message, span, remedy, "warning"))

    def note(self, code: str, message: str, span: Span | None = None, remedy: str = "") -> None:
        """Adds a note for readers of the answers; a note requires no correction."""
        self.items.append(Diagnostic(code, message, span, remedy, "note"))

    @property
    def errors(self) -> list[Diagnostic]:
        return [d for d in self.items if d.severity == "error"]

    def raise_if_errors(self) -> None:
        if self.errors:
            raise DiagnosticsError(self.errors)


_NEAR = 0.6
"""Minimum similarity of two names; `target` and `Status`, which share half of their letters, are not similar."""


def _means(name: str, other: str) -> bool:
    """True if one name may be a misspelling of the other: it is a part of the other name, or the two are similar and of similar
    length, unlike `target` and `Age`.
    """
    short, long = sorted((name.lower(), other.lower()), key=len)
    alike = difflib.SequenceMatcher(None, short, long).ratio() >= _NEAR
    return short in long or (alike and 2 * len(short) > len(long))


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A remedy that suggests the nearest known name or, if none is similar, lists the first few names."""
    names = list(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    if not near:
        lowered = {n.lower(): n for n in names}
        near = [lowered[m] for m in difflib.get_close_matches(name.lower(), lowered, n=1, cutoff=0.5)]
    if near and _means(name, near[0]):
        return Remedy(f"did you mean `{near[0]}`?", near[0], wrong=name)
    shown = ", ".join(f"`{n}`" for n in names[:8])
    return f"known names: {shown}{', …' if len(names) > 8 else ''}" if names else ""


def no_attribute(owner: str, name: str, known: Iterable[str]) -> AttributeError:
    """The error for an unknown attribute, which proposes the nearest public one."""
    meant = (
        ""
        if name.startswith("_")
        else did_you_mean(MEANT_ATTRIBUTES.get(name, name), [k for k in known if k[:1] != "_"])
    )
    return AttributeError(f"{owner} has no attribute {name!r}" + (f"; {meant}" if isinstance(meant, Remedy) else ""))


MEANT_ATTRIBUTES = {"witness": "pair", "points": "pair", "status": "verdict", "to_frame": "frame", "df": "frame"}
"""Attributes of results that users of other tools try, with ours."""


class Suggesting:
    """A result whose unknown attributes raise an error that proposes the nearest known one."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            raise no_attribute(f"{type(self).__name__!r} object", name, [*dir(type(self)), *vars(self)])
