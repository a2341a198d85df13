"""The language server: messages while typing, quick fixes, completion, hover and formatting over the Language Server Protocol.

Reading a file may take seconds (models are loaded, cavities computed), so it happens on a thread of its own after a pause in
typing, and its result is dropped when the text has changed meanwhile. Requests are answered on a second thread.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, TypeVar

from lsprotocol import types
from pygls.exceptions import JsonRpcInternalError
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from treesens import __version__
from treesens.compiler.base.diagnostics import Diagnostic, DiagnosticsError
from treesens.editor.completion import Item, ItemKind, completions
from treesens.editor.fixes import fix_of
from treesens.editor.hover import card
from treesens.editor.library import Library
from treesens.editor.positions import Lines
from treesens.editor.reading import Reader, span_text
from treesens.grammar.printing.formatter import format_text

P = TypeVar("P")
R = TypeVar("R")
PAUSE: Final = 0.15
"""Seconds without a change before a text is read."""

_SEVERITY: Final = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "note": types.DiagnosticSeverity.Information,
}
_KINDS: Final[dict[ItemKind, types.CompletionItemKind]] = {
    "keyword": types.CompletionItemKind.Keyword,
    "function": types.CompletionItemKind.Function,
    "name": types.CompletionItemKind.Variable,
    "feature": types.CompletionItemKind.Field,
    "value": types.CompletionItemKind.EnumMember,
}
_log = logging.getLogger(__name__)


class SensServer(LanguageServer):
    """Errors that are nobody's fault but ours reach the client as one sentence; the traceback goes to the log."""

    def report_server_error(self, error: Exception, source: Any) -> None:
        _log.error("%s", source, exc_info=error)
        first = str(error).partition("\n")[0]
        message = f"treesens: internal error: {type(error).__name__}: {first}"
        self.window_log_message(types.LogMessageParams(type=types.MessageType.Error, message=message))


def answered(handler: Callable[[P], Awaitable[R]]) -> Callable[[P], Awaitable[R]]:
    """A request whose failure is one sentence for the client; pygls would send the traceback."""

    @functools.wraps(handler)
    async def run(params: P) -> R:
        try:
            return await handler(params)
        except Exception as error:  # noqa: BLE001 - told as what it is, never as an answer
            _log.exception("request failed")
            raise JsonRpcInternalError(f"treesens: internal error: {type(error).__name__}") from None

    return run


class Documents:
    """The open documents of a server and the readers that know them."""

    def __init__(self, server: SensServer, library: Library) -> None:
        self.server = server
        self.library = library
        self.readers: dict[str, Reader] = {}
        self.reading = ThreadPoolExecutor(1, "reading")
        self.asking = ThreadPoolExecutor(1, "asking")

    def path(self, uri: str) -> Path:
        """Where a document is, or would be: paths in it are relative to its folder."""
        found = to_fs_path(uri) if uri.startswith("file:") else None
        return Path(found) if found else Path(self.server.workspace.root_path or ".", "untitled.sens")

    def text(self, uri: str) -> str:
        return self.server.workspace.get_text_document(uri).source

    def lines(self, text: str) -> Lines:
        return Lines(text, str(getattr(encoding := self.server.workspace.position_encoding, "value", encoding)))

    async def ask(self, question: Callable[[], R]) -> R:
        """Runs what may load a model, off the thread that reads messages."""
        return await asyncio.get_running_loop().run_in_executor(self.asking, question)

    async def check(self, uri: str) -> None:
        """Reads a document after a pause and tells the client all messages, unless it has changed again."""
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
        """The version of an open document; None for one that is closed."""
        document = self.server.workspace.text_documents.get(uri)
        return None if document is None else document.version or 0

    def publish(self, uri: str, found: list[types.Diagnostic], version: int | None = None) -> None:
        params = types.PublishDiagnosticsParams(uri=uri, diagnostics=found, version=version)
        self.server.text_document_publish_diagnostics(params)

    def close(self, uri: str) -> None:
        self.readers.pop(uri, None)
        self.publish(uri, [])


def make_server(*, trust_pickle: bool = False) -> SensServer:
    """The server with everything it can do; `start_io` runs it."""
    # Whole texts: they are short, and Python splits lines at characters where the protocol does not.
    server = SensServer("treesens", __version__, text_document_sync_kind=types.TextDocumentSyncKind.Full)
    documents = Documents(server, Library(trust_pickle=trust_pickle))

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    async def opened(params: types.DidOpenTextDocumentParams) -> None:
        await documents.check(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    async def changed(params: types.DidChangeTextDocumentParams) -> None:
        await documents.check(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    async def saved(params: types.DidSaveTextDocumentParams) -> None:
        await documents.check(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    async def closed(params: types.DidCloseTextDocumentParams) -> None:
        documents.close(params.text_document.uri)

    options = types.CompletionOptions(trigger_characters=[".", "{", "`", "("])

    @server.feature(types.TEXT_DOCUMENT_COMPLETION, options)
    @answered
    async def complete(params: types.CompletionParams) -> types.CompletionList:
        uri = params.text_document.uri
        text = documents.text(uri)
        lines = documents.lines(text)
        offset = lines.offset(params.position.line, params.position.character)
        reader = Reader(documents.library, documents.path(uri))
        found = await documents.ask(lambda: completions(reader.glance(text), documents.library, offset))
        return types.CompletionList(False, [_item(lines, item, i) for i, item in enumerate(found)])

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    @answered
    async def hover(params: types.HoverParams) -> types.Hover | None:
        uri = params.text_document.uri
        text = documents.text(uri)
        lines = documents.lines(text)
        offset = lines.offset(params.position.line, params.position.character)
        reader = Reader(documents.library, documents.path(uri))
        found = await documents.ask(lambda: card(reader.glance(text), offset))
        if found is None:
            return None
        content = types.MarkupContent(types.MarkupKind.Markdown, found.markdown)
        return types.Hover(content, _range(lines, found.start, found.end))

    kinds = types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix])

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, kinds)
    @answered
    async def quick_fixes(params: types.CodeActionParams) -> list[types.CodeAction]:
        lines = documents.lines(documents.text(params.text_document.uri))
        found = (_quick_fix(lines, params.text_document.uri, item) for item in params.context.diagnostics)
        return [action for action in found if action is not None]

    @server.feature(types.TEXT_DOCUMENT_FORMATTING)
    @answered
    async def format_document(params: types.DocumentFormattingParams) -> list[types.TextEdit]:
        text = documents.text(params.text_document.uri)
        try:
            formatted = await documents.ask(lambda: format_text(text))
        except DiagnosticsError:
            return []  # half a file is not laid out; its messages are shown already
        return [] if formatted == text else [types.TextEdit(_range(documents.lines(text), 0, len(text)), formatted)]

    return server


def _range(lines: Lines, start: int, end: int) -> types.Range:
    return types.Range(types.Position(*lines.position(start)), types.Position(*lines.position(end)))


def _diagnostic(lines: Lines, item: Diagnostic) -> types.Diagnostic:
    # A message about the whole file has a place in an empty text.
    start, end = span_text(item.span, len(lines.text)) if item.span else (0, 0)
    message = f"{item.message}\nhelp: {item.remedy}" if item.remedy else item.message
    severity = _SEVERITY.get(item.severity, types.DiagnosticSeverity.Error)
    return types.Diagnostic(_range(lines, start, end), message, severity, item.code, source="treesens")


def _quick_fix(lines: Lines, uri: str, item: types.Diagnostic) -> types.CodeAction | None:
    """The action that a message of ours proposes."""
    if item.source != "treesens":
        return None
    start, end = (lines.offset(at.line, at.character) for at in (item.range.start, item.range.end))
    fix = fix_of(item.message, lines.text[start:end])
    if fix is None:
        return None
    edit = types.TextEdit(_range(lines, start + fix.start, start + fix.end), fix.text)
    return types.CodeAction(
        fix.title, types.CodeActionKind.QuickFix, [item], is_preferred=True, edit=types.WorkspaceEdit({uri: [edit]})
    )


def _item(lines: Lines, item: Item, rank: int) -> types.CompletionItem:
    return types.CompletionItem(
        label=item.label,
        kind=_KINDS[item.kind],
        detail=item.detail,
        sort_text=f"{rank:05}",
        filter_text=item.text if item.text.startswith("`") else item.label,
        text_edit=types.TextEdit(_range(lines, item.start, item.end), item.text),
    )
