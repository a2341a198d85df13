"""The language server: messages while typing, quick fixes, completion, hover, formatting and navigation over the Language
Server Protocol.

Reading a file may take seconds (models are loaded, cavities computed), so files are read in a separate thread after a pause in
typing, and outdated results are dropped. Requests are answered on a second thread. A message whose remedy is an edit ("did you
mean `age`?", "write `>=`") has a quick fix.
"""

from __future__ import annotations

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

_KINDS: Final[dict[ItemKind, types.CompletionItemKind]] = {
    "keyword": types.CompletionItemKind.Keyword,
    "function": types.CompletionItemKind.Function,
    "name": types.CompletionItemKind.Variable,
    "feature": types.CompletionItemKind.Field,
    "value": types.CompletionItemKind.EnumMember,
}


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
    """The code action for a message with an edit in its data (see `documents`), if any."""
    if item.source != "treesens" or not isinstance(item.data, list | tuple):
        return None
    title, start, end, text = item.data
    edit = types.TextEdit(range_of(lines, start, end), text)
    return types.CodeAction(
        title, types.CodeActionKind.QuickFix, [item], is_preferred=True, edit=types.WorkspaceEdit({uri: [edit]})
    )


def _item(lines: Lines, item: Item, rank: int) -> types.CompletionItem:
    return types.CompletionItem(
        label=item.label,
        kind=_KINDS[item.kind],
        detail=item.detail,
        sort_text=f"{rank:05}",
        filter_text=item.text if item.text.startswith("`") else item.label,
        text_edit=types.TextEdit(range_of(lines, item.start, item.end), item.text),
    )
