"""The open documents of a server. Requests run outside of the thread that reads messages, and fail without a traceback.

A position in the protocol is a line, and a column in units of an encoding: UTF-16 code units, unless client and server agree on
another encoding. Python counts characters; a character above U+FFFF is two UTF-16 code units. Lines end with `\\n`, `\\r\\n`
or `\\r` only.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import re
from bisect import bisect_right
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, TypeVar

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInternalError, JsonRpcInvalidParams, JsonRpcMethodNotFound
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from treesens.compiler.base.diagnostics import Diagnostic, Span
from treesens.extensions.editor.reading import Library, Reader, span_text
from treesens.grammar.printing.print_terms import name_text
from treesens.grammar.tree import ast

P = TypeVar("P")
R = TypeVar("R")
PAUSE: Final = 0.15
"""Seconds without a change before a text is checked."""

_SEVERITY: Final = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "note": types.DiagnosticSeverity.Information,
}
_log = logging.getLogger(__name__)

_BREAK: Final = re.compile(r"\r\n|\n|\r")


class SensServer(LanguageServer):
    """A server that reports internal errors to the client in one sentence and logs the traceback."""

    def report_server_error(self, error: Exception, source: Any) -> None:
        if isinstance(error, JsonRpcInvalidParams | JsonRpcMethodNotFound):
            return  # the client gets this error in the response
        _log.error("%s", source, exc_info=error)
        first = str(error).partition("\n")[0]
        message = f"treesens: internal error: {type(error).__name__}: {first}"
        self.window_log_message(types.LogMessageParams(type=types.MessageType.Error, message=message))


def answered(handler: Callable[[P], Awaitable[R]]) -> Callable[[P], Awaitable[R]]:
    """Makes a request fail with one sentence for the client, instead of the traceback that pygls would send."""

    @functools.wraps(handler)
    async def run(params: P) -> R:
        try:
            return await handler(params)
        except JsonRpcException:
            raise
        except Exception as error:  # noqa: BLE001 - reported as an error, never as an answer
            _log.exception("request failed")
            raise JsonRpcInternalError(f"treesens: internal error: {type(error).__name__}") from None

    return run


class Lines:
    """The lines of a text; `encoding` is `utf-8`, `utf-16` or `utf-32`."""

    def __init__(self, text: str, encoding: str = "utf-16") -> None:
        self.text = text
        self.encoding = encoding
        breaks = list(_BREAK.finditer(text))
        self.starts = [0, *(found.end() for found in breaks)]
        self.ends = [*(found.start() for found in breaks), len(text)]

    def position(self, offset: int) -> tuple[int, int]:
        """The line and the column, both from 0, of a character."""
        offset = min(max(offset, 0), len(self.text))
        line = bisect_right(self.starts, offset) - 1
        return line, self._units(self.text[self.starts[line] : min(offset, self.ends[line])])

    def offset(self, line: int, column: int) -> int:
        """The offset of the character at a position; past the end of a line, the end of that line."""
        if line >= len(self.starts):
            return len(self.text)
        start, end = self.starts[line], self.ends[line]
        units = 0
        for offset in range(start, end):
            units += self._units(self.text[offset])
            if units > column:
                return offset
        return end

    def _units(self, text: str) -> int:
        if self.encoding == "utf-32":
            return len(text)
        if self.encoding == "utf-8":
            return len(text.encode("utf-8", "surrogatepass"))
        return len(text.encode("utf-16-le", "surrogatepass")) // 2


def range_of(lines: Lines, start: int, end: int) -> types.Range:
    return types.Range(types.Position(*lines.position(start)), types.Position(*lines.position(end)))


class Documents:
    """The open documents of a server and their readers."""

    def __init__(self, server: SensServer, library: Library) -> None:
        self.server = server
        self.library = library
        self.readers: dict[str, Reader] = {}
        self.reading = ThreadPoolExecutor(1, "reading")
        self.asking = ThreadPoolExecutor(1, "asking")

    def path(self, uri: str) -> Path:
        """The path of a document, which need not exist as a file; paths in the document are relative to its folder."""
        found = to_fs_path(uri) if uri.startswith("file:") else None
        return Path(found) if found else Path(self.server.workspace.root_path or ".", "untitled.sens")

    def text(self, uri: str) -> str:
        """The text of an open document, or of a file. Raises a request error for a closed document without a file."""
        try:
            return self.server.workspace.get_text_document(uri).source
        except (OSError, ValueError):
            raise JsonRpcInvalidParams("the document is not open, and its file cannot be read") from None

    def lines(self, text: str) -> Lines:
        return Lines(text, str(getattr(encoding := self.server.workspace.position_encoding, "value", encoding)))

    async def ask(self, question: Callable[[], R]) -> R:
        """Calls a function that may load a model, outside of the thread that reads messages."""
        return await asyncio.get_running_loop().run_in_executor(self.asking, question)

    async def check(self, uri: str) -> None:
        """Checks a document after a pause, and sends all messages to the client unless the document has changed meanwhile."""
        version = self.version(uri)
        await asyncio.sleep(PAUSE)
        if version is None or version != self.version(uri):
            return
        text = self.text(uri)
        reader = self.readers.setdefault(uri, Reader(self.library, self.path(uri)))
        loop = asyncio.get_running_loop()
        reading = await loop.run_in_executor(self.reading, reader.read, text)
        if version == self.version(uri):
            lines = self.lines(text)
            found = [_diagnostic(lines, item) for item in reading.diagnostics]
            self.publish(uri, found, version)

    def version(self, uri: str) -> int | None:
        """The version of an open document; None for a closed document.

        pygls stores documents under their URI without escapes (`%20`), and finds them under both forms of the URI.
        """
        return self.server.workspace.get_text_document(uri).version

    def publish(self, uri: str, found: list[types.Diagnostic], version: int | None = None) -> None:
        params = types.PublishDiagnosticsParams(uri=uri, diagnostics=found, version=version)
        self.server.text_document_publish_diagnostics(params)

    def close(self, uri: str) -> None:
        self.readers.pop(uri, None)
        self.publish(uri, [])


def _diagnostic(lines: Lines, item: Diagnostic) -> types.Diagnostic:
    # A message about the whole file needs a place, even in an empty text.
    start, end = span_text(item.span, len(lines.text)) if item.span else (0, 0)
    message = f"{item.message}\nhelp: {item.remedy}" if item.remedy else item.message
    severity = _SEVERITY.get(item.severity, types.DiagnosticSeverity.Error)
    fix = None if item.fix is None else _edit(lines, *item.fix, named=getattr(item.remedy, "wrong", None) is not None)
    return types.Diagnostic(range_of(lines, start, end), message, severity, item.code, source="treesens", data=fix)


def _edit(lines: Lines, span: Span, text: str, *, named: bool) -> list[Any] | None:
    """The quick fix of a message: its title, and the start, end and new text of the edit. A name is quoted if necessary.

    None if the edit concerns another file.
    """
    if span.source.text != lines.text:
        return None
    text = name_text(ast.Name(text)) if named else text
    return [f"Write {text} for {span.text}" if span.text else f"Write {text}", span.start, span.end, text]
