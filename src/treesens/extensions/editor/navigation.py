"""Handles requests about names: declaration and uses, renaming, the outline of a file, and a code lens per question."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams

from treesens.compiler.base.diagnostics import Diagnostics, Source
from treesens.errors import QueryError
from treesens.extensions.editor.documents import Documents, Lines, SensServer, answered, range_of
from treesens.extensions.editor.occurrences import RENAMED, Occurrence, occurrence_at, occurrences, renamed, same
from treesens.grammar.expansion import included
from treesens.grammar.parsing.parser import parse_included, parse_source
from treesens.grammar.tree import ast

ANSWER: Final = "treesens.check"
"""The client command that answers one question; its arguments are the URI of the file and the name of the question."""

_SYMBOLS: Final[dict[type[ast.Node], tuple[types.SymbolKind, str]]] = {
    ast.Model: (types.SymbolKind.Module, "model"),
    ast.Data: (types.SymbolKind.Array, "data"),
    ast.Feature: (types.SymbolKind.Field, "feature"),
    ast.Measure: (types.SymbolKind.Constant, "measure"),
    ast.Decision: (types.SymbolKind.Enum, "decision"),
    ast.Query: (types.SymbolKind.Function, "query"),
    ast.Let: (types.SymbolKind.Constant, "number"),
    ast.Define: (types.SymbolKind.Function, "definition"),
}


@dataclass(frozen=True)
class _Page:
    """The parsable part of a text; `whole` is True if the entire text parses."""

    uri: str
    lines: Lines
    file: ast.File
    whole: bool
    elsewhere: list[ast.Declaration]
    """The declarations of included files."""

    def occurrences(self) -> list[Occurrence]:
        return occurrences(self.file, [node.name.text for node in self.elsewhere if isinstance(node, ast.Let)])

    def at(self, position: types.Position) -> Occurrence | None:
        return occurrence_at(self.occurrences(), self.lines.offset(position.line, position.character))

    def range(self, node: ast.Node) -> types.Range:
        return range_of(self.lines, node.span.start, node.span.end)

    def used(self, position: types.Position) -> list[Occurrence]:
        """All occurrences of the name at a position."""
        one = self.at(position)
        return [] if one is None else same(self.occurrences(), one)

    def included(self, position: types.Position) -> Iterator[ast.Name]:
        """The names in included files that declare the name at a position."""
        one = self.at(position)
        for node in self.elsewhere if one is not None and one.query is None else ():
            for other in occurrences(ast.File((node,))):
                if other.declares and (other.role, other.name.text) == (one.role, one.name.text):  # type: ignore[union-attr]
                    yield other.name


def _page(documents: Documents, uri: str) -> _Page:
    text = documents.text(uri)
    found = Diagnostics()
    path = documents.path(uri)
    file = parse_source(Source(str(path), text), found) or ast.File(())
    every = included(file, path, parse_included, Diagnostics())
    elsewhere = [node for node in every if node.span.source.included is not None]
    return _Page(uri, documents.lines(text), file, not found.errors, elsewhere)


def add_navigation(server: SensServer, documents: Documents) -> None:
    """Registers the requests, none of which loads a model."""

    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    @answered
    async def definition(params: types.DefinitionParams) -> list[types.Location]:
        page = _page(documents, params.text_document.uri)
        found = [types.Location(page.uri, page.range(o.name)) for o in page.used(params.position) if o.declares]
        for name in page.included(params.position):
            lines = documents.lines(name.span.source.text)
            place = Path(name.span.source.name).resolve().as_uri()
            found.append(types.Location(place, range_of(lines, name.span.start, name.span.end)))
        return found

    @server.feature(types.TEXT_DOCUMENT_REFERENCES)
    @answered
    async def references(params: types.ReferenceParams) -> list[types.Location]:
        page = _page(documents, params.text_document.uri)
        declared = params.context.include_declaration
        used = page.used(params.position)
        return [types.Location(page.uri, page.range(o.name)) for o in used if declared or not o.declares]

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT)
    @answered
    async def highlights(params: types.DocumentHighlightParams) -> list[types.DocumentHighlight]:
        page = _page(documents, params.text_document.uri)
        return [types.DocumentHighlight(page.range(o.name)) for o in page.used(params.position)]

    @server.feature(types.TEXT_DOCUMENT_PREPARE_RENAME)
    @answered
    async def prepare(params: types.PrepareRenameParams) -> types.PrepareRenamePlaceholder | None:
        page = _page(documents, params.text_document.uri)
        one = page.at(params.position)
        if one is None or one.role not in RENAMED:
            return None
        return types.PrepareRenamePlaceholder(range=page.range(one.name), placeholder=one.name.text)

    @server.feature(types.TEXT_DOCUMENT_RENAME, types.RenameOptions(prepare_provider=True))
    @answered
    async def rename(params: types.RenameParams) -> types.WorkspaceEdit | None:
        page = _page(documents, params.text_document.uri)
        one = page.at(params.position)
        if one is None:
            return None
        if not page.whole:
            # The unparsable part may contain the name too.
            raise JsonRpcInvalidParams("the file has syntax errors: fix them before renaming")
        try:
            places = renamed(page.file, one, params.new_name)
        except QueryError as error:
            raise JsonRpcInvalidParams(f"{error.message}: {error.remedy}") from None
        edits = [types.TextEdit(range_of(page.lines, *place), text) for place, text in places.items()]
        return types.WorkspaceEdit({page.uri: edits})

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    @answered
    async def outline(params: types.DocumentSymbolParams) -> list[types.DocumentSymbol]:
        page = _page(documents, params.text_document.uri)
        found = []
        for node in page.file.declarations:
            if isinstance(node, ast.OneHot | ast.DomainFrom | ast.Include):
                continue  # these nodes declare no name
            kind, word = _SYMBOLS[type(node)]
            found.append(types.DocumentSymbol(node.name.text, kind, page.range(node), page.range(node.name), word))
        return found

    @server.feature(types.TEXT_DOCUMENT_CODE_LENS)
    @answered
    async def lenses(params: types.CodeLensParams) -> list[types.CodeLens]:
        page = _page(documents, params.text_document.uri)
        found = []
        for query in page.file.queries:
            command = types.Command("Answer this question", ANSWER, arguments=[page.uri, query.name.text])
            found.append(types.CodeLens(page.range(query.name), command))
        return found
