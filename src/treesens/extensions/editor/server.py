"""The language server: messages while typing, quick fixes, completion, hover, formatting and navigation over the Language
Server Protocol.

Reading a file may take seconds (models are loaded, cavities computed), so files are read in a separate thread after a pause in
typing, and outdated results are dropped. Requests are answered on a second thread. The quick fix for a message with "did you
mean `age`?" replaces the unknown name with `age`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from lsprotocol import types

from treesens import __version__
from treesens.compiler.base.diagnostics import DiagnosticsError
from treesens.extensions.editor.completion import Item, ItemKind, completions
from treesens.extensions.editor.documents import Documents, Lines, SensServer, answered, range_of
from treesens.extensions.editor.hover import card
from treesens.extensions.editor.navigation import add_navigation
from treesens.extensions.editor.reading import Library, Reader
from treesens.grammar.printing.formatter import format_text
from treesens.grammar.printing.print_terms import name_text
from treesens.grammar.tree import ast

_KINDS: Final[dict[ItemKind, types.CompletionItemKind]] = {
    "keyword": types.CompletionItemKind.Keyword,
    "function": types.CompletionItemKind.Function,
    "name": types.CompletionItemKind.Variable,
    "feature": types.CompletionItemKind.Field,
    "value": types.CompletionItemKind.EnumMember,
}

_MEANT: Final = re.compile(r"\bdid you mean `([^`\n]+)`\?")

_NAMED: Final = re.compile(r"`([^`\n]+)`")


def make_server(*, trust_pickle: bool = False) -> SensServer:
    """The server with all its features; `start_io` runs it."""
    # Texts are synchronised as a whole: they are short, and Python splits lines at more characters than the protocol.
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
        return types.Hover(content, range_of(lines, found.start, found.end))

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
            return []  # files with syntax errors are not formatted; their messages are already shown
        return [] if formatted == text else [types.TextEdit(range_of(documents.lines(text), 0, len(text)), formatted)]

    add_navigation(server, documents)
    return server


def _quick_fix(lines: Lines, uri: str, item: types.Diagnostic) -> types.CodeAction | None:
    """The code action that a message proposes, if any."""
    if item.source != "treesens":
        return None
    start, end = (lines.offset(at.line, at.character) for at in (item.range.start, item.range.end))
    fix = _fix_of(item.message, lines.text[start:end])
    if fix is None:
        return None
    edit = types.TextEdit(range_of(lines, start + fix.start, start + fix.end), fix.text)
    return types.CodeAction(
        fix.title, types.CodeActionKind.QuickFix, [item], is_preferred=True, edit=types.WorkspaceEdit({uri: [edit]})
    )


@dataclass(frozen=True)
class _Fix:
    """The replacement for the characters from `start` to `end` of the marked text."""

    title: str
    start: int
    end: int
    text: str


def _fix_of(message: str, marked: str) -> _Fix | None:
    """The fix that a message about a marked text proposes: the similar name replaces the misspelt name. None if the message
    proposes no fix, or if the name is not in the marked text.
    """
    meant = _MEANT.search(message)
    if meant is None:
        return None
    for wrong in _NAMED.findall(message[: meant.start()]):
        place = _place(wrong, marked)
        if place is not None:
            text = name_text(ast.Name(meant[1]))
            return _Fix(f"Write {text} for {wrong}", *place, text)
    return None


def _place(name: str, marked: str) -> tuple[int, int] | None:
    """The fix that a message about a marked text proposes: the similar name replaces the misspelt name."""
    for spelled in (f"`{name}`", name):
        found = re.search(rf"(?<!\w){re.escape(spelled)}(?!\w)", marked)
        if found is not None:
            return found.span()
    return None


def _item(lines: Lines, item: Item, rank: int) -> types.CompletionItem:
    return types.CompletionItem(
        label=item.label,
        kind=_KINDS[item.kind],
        detail=item.detail,
        sort_text=f"{rank:05}",
        filter_text=item.text if item.text.startswith("`") else item.label,
        text_edit=types.TextEdit(range_of(lines, item.start, item.end), item.text),
    )
