"""Reads a file during editing: the parts that can be read, and every message about the file.

Typing changes one query at a time. Facts about models and data, and the messages of unchanged queries, are kept until the
declarations change. Models and tables are read once for all documents, and again only if the file on disk changes.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar, cast

from treesens.binder.declarations import Declarations, Unbound, read_declarations
from treesens.binder.file import Binder
from treesens.compiler.base.diagnostics import Diagnostic, Diagnostics, Source, Span
from treesens.compiler.base.folders import folder_stamp
from treesens.data.tables import Table, read_table
from treesens.errors import ModelError, TreesensError
from treesens.frontends.base import LoadedModel
from treesens.frontends.registry import load
from treesens.grammar.expansion import expand, included
from treesens.grammar.parsing import layout
from treesens.grammar.parsing.parser import parse_included, parse_source
from treesens.grammar.parsing.terminals import tokens
from treesens.grammar.tree import ast

if TYPE_CHECKING:
    from lark import Token

MOST_QUESTIONS: Final = 64
"""Maximum number of questions of one sweep that are bound during editing; `treesens check` binds them all."""

_MEANING: Final = ("E1", "E2", "E3", "E409")
"""Codes of messages that a declaration with a syntax error may cause."""

_MOST: Final = 32
"""Maximum number of models and tables that are kept; the least recently used entry is dropped first."""

T = TypeVar("T")

Stamp = tuple[int, int] | None
"""The time of the last change in nanoseconds, and the size in bytes; None for a missing file and for a plain folder."""


def stamp(path: Path) -> Stamp:
    """The stamp of a file or a folder; it changes when the file, or a file in the folder, changes."""
    try:
        if path.is_dir():
            return folder_stamp(path)
        found = path.stat()
    except (OSError, ValueError, ModelError):
        return None
    return found.st_mtime_ns, found.st_size


class Library:
    """Loads models and tables for the binder. A failure is kept as the error that explains it."""

    def __init__(self, *, trust_pickle: bool = False) -> None:
        self._trust_pickle = trust_pickle
        self._known: OrderedDict[tuple[object, ...], tuple[Stamp, object]] = OrderedDict()
        self._lock = threading.RLock()

    def model(self, path: Path, format: str | None) -> LoadedModel:
        key = ("model", path, format)
        return self._kept(key, path, lambda: load(path, format, trust_pickle=self._trust_pickle))

    def table(self, path: Path, label: str | None = None, rows: int | None = None) -> Table:
        return self._kept(("table", path, label, rows), path, lambda: read_table(path, label=label, rows=rows))

    def _kept(self, key: tuple[object, ...], path: Path, read: Callable[[], T]) -> T:
        with self._lock:
            now = stamp(path)
            if key not in self._known or self._known[key][0] != now:
                try:
                    self._known[key] = now, read()
                except TreesensError as error:
                    self._known[key] = now, error
            self._known.move_to_end(key)
            while len(self._known) > _MOST:
                self._known.popitem(last=False)
            found = self._known[key][1]
        if isinstance(found, TreesensError):
            raise found.with_traceback(None)
        return cast(T, found)


@dataclass(frozen=True)
class Reading:
    """The readable part of a text. `diagnostics` are in text order; `found` holds the models and tables, and `names` the
    declarations of numbers and definitions, also those of included files.
    """

    source: Source
    file: ast.File
    found: Declarations
    diagnostics: tuple[Diagnostic, ...] = ()
    names: Mapping[str, ast.Let | ast.Define] = field(default_factory=dict)


@dataclass
class _Kept:
    """Facts about unchanged declarations: The `nodes` with their texts, and the results of binding these nodes.

    `queries` maps a query to its messages and its place.
    """

    nodes: tuple[tuple[ast.Declaration, int, str], ...]
    stamps: tuple[Stamp, ...]
    binder: Binder
    messages: list[Diagnostic] = field(default_factory=list)
    queries: dict[tuple[ast.Query, str], tuple[int, list[Diagnostic]]] = field(default_factory=dict)


class Reader:
    """Reads one document repeatedly; not thread-safe."""

    def __init__(self, library: Library, path: Path) -> None:
        self.library = library
        self.path = path
        self._kept: _Kept | None = None

    def glance(self, text: str) -> Reading:
        """The declarations with their models and tables, without binding queries: for completion and hover."""
        source, silent = Source(str(self.path), text), Diagnostics()
        file = parse_source(source, silent) or ast.File(())
        every = included(file, self.path, parse_included, silent)
        names = {node.name.text: node for node in every if isinstance(node, ast.Let | ast.Define)}
        file = expand(file, self.path, parse_included, silent)
        found = read_declarations(file, self.path.parent, self.library.model, self.library.table, Diagnostics())
        return Reading(source, file, found, names=names)

    def read(self, text: str) -> Reading:
        """The entire text, with all messages."""
        source = Source(str(self.path), text)
        syntax = Diagnostics()
        written = parse_source(source, syntax) or ast.File(())
        file = expand(written, self.path, parse_included, syntax)
        declared = Diagnostics()
        found = read_declarations(file, self.path.parent, self.library.model, self.library.table, declared)
        messages = list(declared)
        declared.items.clear()
        kept = self._keep(written, file, found)
        known, kept.queries = kept.queries, {}
        for node in file.queries:
            start, key = node.span.start, (node, node.span.text)
            was, own = known.get(key) or (start, self._query(kept, node))
            kept.queries[key] = was, own
            messages += [_moved(message, node.span, source, was) for message in own]
        messages += [message for message in kept.messages if message not in messages]
        if _declaration_is_broken(source, syntax):
            messages = [m for m in messages if not m.code.startswith(_MEANING)]
        placed = dict.fromkeys(_in_document(message, source) for message in (*syntax, *messages))
        ordered = sorted(placed, key=lambda m: m.span.start if m.span else 0)
        return Reading(source, file, found, tuple(ordered))

    def _keep(self, written: ast.File, file: ast.File, found: Declarations) -> _Kept:
        """The kept facts about the declarations; no facts if the declarations or their files have changed."""
        every = (*written.declarations, *file.declarations)
        nodes = [node for node in every if not isinstance(node, ast.Query)]
        key = tuple((node, node.span.start, node.span.text) for node in nodes)
        paths = [node.path.value for node in file.declarations if isinstance(node, ast.Model | ast.Data)]
        stamps = tuple(stamp(self.path.parent / path) for path in paths)
        if self._kept is None or (self._kept.nodes, self._kept.stamps) != (key, stamps):
            self._kept = _Kept(key, stamps, Binder(found))
        return self._kept

    def _query(self, kept: _Kept, node: ast.Query) -> list[Diagnostic]:
        """The messages of one query; new messages about declarations are added to the declarations' messages."""
        binder, items = kept.binder, kept.binder.found.diagnostics.items
        try:
            for asked in islice(binder.asked(node), MOST_QUESTIONS):
                binder.question(asked)
        except Unbound:
            pass  # the message is in the diagnostics
        except TreesensError as error:
            items.append(Diagnostic(error.code, error.message, node.name.span, error.remedy))
        own: list[Diagnostic] = []
        for message in items:
            placed = _at_declaration(message, kept)
            if placed is None:
                own.append(message)
            elif placed not in kept.messages:
                kept.messages.append(placed)
        items.clear()
        for inputs in binder.inputs.values():
            if inputs is not None:
                for space in [key for key in inputs.cache if isinstance(key, tuple) and key[0] == "space"]:
                    del inputs.cache[space]  # every constant that the user types would add another entry
        return own


def _at_declaration(message: Diagnostic, kept: _Kept) -> Diagnostic | None:
    """The message, moved to the declaration to which it belongs and reported once; None for a message about the query."""
    if message.span is None:
        return message
    for node, _, _ in kept.nodes:
        if node.span.source.name != message.span.source.name:
            continue
        if node.span.start <= message.span.start < node.span.end:
            return message
        if (
            message.severity == "warning"
            and isinstance(node, ast.Data)
            and node.name.text == message.span.text.strip("`")
        ):
            return Diagnostic(message.code, message.message, node.name.span, message.remedy, message.severity)
    return None


def _moved(message: Diagnostic, query: Span, source: Source, was: int) -> Diagnostic:
    """The message of a query that began at `was`, shifted along with the query; places outside the query stay."""

    def moved(span: Span | None) -> Span | None:
        if span is None:
            return None
        inside = span.source.name == query.source.name and was <= span.start <= was + query.end - query.start
        by = query.start - was if inside else 0
        new = source if span.source.name == source.name else span.source
        return Span(new, span.start + by, span.end + by, moved(span.used))

    return replace(message, span=moved(message.span))


def _in_document(message: Diagnostic, source: Source) -> Diagnostic:
    """The message at its place in the document; a message about another file is at the place that uses or includes the file."""
    if message.span is None or message.span.source.name == source.name:
        return message
    span = message.span.within(source) or Span(source, 0, 0)
    return replace(message, message=f"{message.span.place}: {message.message}", span=span)


def code_tokens(text: str) -> list[Token]:
    """The tokens of a text without comments; words that are used as names are marked as names."""
    return layout.mark_names([token for token in tokens(text) if token.type != "COMMENT"])


def _declaration_is_broken(source: Source, syntax: Diagnostics) -> bool:
    """True if a declaration other than a query does not parse; references to it are then not reported as errors."""
    spans = [message.span for message in syntax.errors if message.span is not None]
    if any(span.source.name != source.name for span in spans):
        return True
    places = [span.start for span in spans]
    code = code_tokens(source.text) if places else []
    if not code:
        return False
    cuts = [(part[0].start_pos or 0, part[0].type) for part in layout.declarations(code)]
    for place in places:
        kind = next((kind for start, kind in reversed(cuts) if start <= place), "")
        if kind not in ("QUERY", "FOR"):
            return True
    return False


def span_text(span: Span, length: int) -> tuple[int, int]:
    """The start and end of a span inside a text of some length; at least one character, if the text is not empty."""
    start = min(span.start, length)
    return start, min(max(span.end, start + 1), length)
