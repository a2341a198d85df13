"""Names in an editor: declared, used, renamed, listed; through the protocol, and against the grammar's own nodes."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.extensions.editor.test_lsp import HEAD, Editor, folder, session
from treesens.binder import constructs as _constructs  # noqa: F401 - all constructs are registered
from treesens.grammar.constructs import avoid, construct, decided, membership, typical
from treesens.grammar.parsing.parser import parse
from treesens.grammar.tree import ast, ast_terms

pytest.importorskip("pygls", reason="the language server is an extra")
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from treesens.extensions.editor.occurrences import DECLARES, ROLES, occurrences

__all__ = ["folder"]

TEXT = (
    HEAD
    + """measure all: marginals of people
query `two people`:
  find a, b in m such that
    a = b except sex
    a.age >= 30 and not b.age in {1, 2}
    distance(a, b, l1) <= 3
    a, b avoid cavities(people, width = 2)
    a typical of people
    likelihood(a, people) >= 0.1
  share of all
query each_one: for each age in features: sensitive m to age near people
query rows: count rows of people as a in m such that prob(a) >= 0.6
"""
)


def _nodes() -> Iterator[type[ast.Node]]:
    for module in (ast, ast_terms, avoid, construct, decided, membership, typical):
        for thing in vars(module).values():
            if isinstance(thing, type) and issubclass(thing, ast.Node) and thing.__match_args__:
                yield thing


def test_every_field_that_holds_a_name_has_a_role() -> None:
    """A construct that is added says what its names are names of."""
    fields = set()
    for node in _nodes():
        for field, hint in typing.get_type_hints(node, None, vars(ast)).items():
            if field in node.__match_args__ and ast.Name in _parts(hint):
                fields.add((node, field))
    # A whole side of a comparison is a category or a class.
    expressions = {key for key in fields if key[0] in (ast.Absolute, ast.Negate, ast.Sum, ast.Product, ast.Quotient)}
    expressions |= {key for key in fields if key[0] in (ast.Comparison, ast.Objective)} | {(ast.Let, "value")}
    expressions |= {key for key in fields if key[1] == "operand"}
    assert fields - expressions == set(ROLES)
    assert set(ROLES) > DECLARES


def _parts(hint: object) -> set[object]:
    inner = typing.get_args(hint)
    return {hint} | {part for one in inner for part in _parts(one)}


async def _at(editor: Editor, place: str, inside: int = 0) -> types.TextDocumentPositionParams:
    offset = editor.text.index(place) + inside
    return types.TextDocumentPositionParams(types.TextDocumentIdentifier(editor.uri), editor.position(offset))


def _spans(editor: Editor, found: list[types.Range]) -> list[str]:
    """The line of each place, counted from 0, with its text."""
    return [f"{place.start.line}:{editor.shown(place)}" for place in found]


def test_where_a_name_is_declared_and_used(folder: Path) -> None:
    async def script(editor: Editor) -> None:
        await editor.write(TEXT)

        async def declared(place: str, inside: int = 0) -> list[str]:
            where = await _at(editor, place, inside)
            params = types.DefinitionParams(where.text_document, where.position)
            found = await editor.client.text_document_definition_async(params)
            assert isinstance(found, list)
            return _spans(editor, [one.range for one in found])

        async def used(place: str, *, all_of_them: bool) -> list[str]:
            where = await _at(editor, place)
            context = types.ReferenceContext(include_declaration=all_of_them)
            params = types.ReferenceParams(context, where.text_document, where.position)
            found = await editor.client.text_document_references_async(params)
            return _spans(editor, [one.range for one in found or []])

        assert await declared("age >= 30") == ["3:age"]
        assert await declared("people, width") == ["1:people"]
        assert await declared("a typical") == ["6:a"]
        assert await declared("a) >= 0.6") == ["15:a"]
        assert await declared("age near") == ["14:age"]  # the parameter, and not the feature
        assert await declared("all\nquery") == ["4:all"]
        assert await declared("prob") == []
        assert await declared('y"') == []
        lines = [1, 4, 10, 11, 12, 14, 15]
        assert await used("people from", all_of_them=True) == [f"{n}:people" for n in lines]
        assert await used("people from", all_of_them=False) == [f"{n}:people" for n in lines[1:]]
        assert await used("b in m", all_of_them=True) == ["6:b", "7:b", "8:b", "9:b", "10:b"]
        assert await used("age: real", all_of_them=True) == ["3:age", "8:age", "8:age"]

    session(folder, script)


def test_a_new_name_is_written_wherever_the_old_one_stands(folder: Path) -> None:
    async def script(editor: Editor) -> None:
        await editor.write(TEXT)

        async def changed(place: str, new: str, inside: int = 0) -> str:
            where = await _at(editor, place, inside)
            params = types.RenameParams(where.text_document, where.position, new)
            found = await editor.client.text_document_rename_async(params)
            assert found is not None
            assert found.changes is not None
            text = TEXT.splitlines(keepends=True)
            for edit in sorted(found.changes[editor.uri], key=lambda e: -e.range.start.character):
                line, start, end = edit.range.start.line, edit.range.start.character, edit.range.end.character
                text[line] = text[line][:start] + edit.new_text + text[line][end:]
            return "".join(text)

        text = await changed("people from", "table of 2026")
        for place in ("data people", "of people", "(people", "(a, people", "near people"):
            assert place in TEXT
            assert place not in text
        assert parse(text.replace("`table of 2026`", "people")) == parse(TEXT)
        text = await changed("a, b in", "such")  # a word of the language is quoted
        assert "find `such`, b in m" in text
        assert "prob(a)" in text  # the point of another query
        assert {o.name.text for o in occurrences(parse(text)) if o.role == "point"} == {"such", "b", "a"}
        text = await changed("age in features", "f")
        assert "for each f in features: sensitive m to f near people" in text
        assert "a.age >= 30" in text
        for place, new, why in (
            ("age: real", "years", "a name of the model or its data"),
            ("b in m", "a", "`a` is a point already, in line 7"),
            ("age in features", "sex", "`sex` is a feature already, in line 3"),
            ("m from", "", "no text can express the name"),
            ("m from", "a`b", "no text can express the name"),
        ):
            with pytest.raises(JsonRpcException, match=why):
                await changed(place, new)
        where = await _at(editor, "sex\n")
        prepare = types.PrepareRenameParams(where.text_document, where.position)
        assert await editor.client.text_document_prepare_rename_async(prepare) is None
        where = await _at(editor, "two people")
        prepare = types.PrepareRenameParams(where.text_document, where.position)
        found = await editor.client.text_document_prepare_rename_async(prepare)
        assert isinstance(found, types.PrepareRenamePlaceholder)
        assert found.placeholder == "two people"
        await editor.write(TEXT + "query broken: find a in m such that a.age >=\n")
        with pytest.raises(JsonRpcException, match="syntax errors"):
            await changed("m from", "n")

    session(folder, script)


def test_outline_and_a_lens_over_each_question(folder: Path) -> None:
    async def script(editor: Editor) -> None:
        await editor.write(TEXT + "query broken: find a in m such that a.age >=\n")
        document = types.TextDocumentIdentifier(editor.uri)
        symbols = await editor.client.text_document_document_symbol_async(types.DocumentSymbolParams(document))
        listed = [(s.detail, s.name) for s in symbols or [] if isinstance(s, types.DocumentSymbol)]
        assert listed == [
            ("model", "m"),
            ("data", "people"),
            ("feature", "sex"),
            ("feature", "age"),
            ("measure", "all"),
            ("query", "two people"),
            ("query", "each_one"),
            ("query", "rows"),
        ]
        lenses = await editor.client.text_document_code_lens_async(types.CodeLensParams(document))
        commands = [lens.command for lens in lenses or [] if lens.command]
        names = ("two people", "each_one", "rows")
        assert [list(c.arguments or ()) for c in commands] == [[editor.uri, name] for name in names]
        assert {c.command for c in commands} == {"treesens.check"}

    session(folder, script)


NAMED = """include "domain.sens"
let low = 0.2
define above(x, least) = prob(x) >= least
query names:
  for each n in {low, cutoff}:
    find a, b in m such that
      above(a, n)
      not shared(b)
      a.age >= cutoff - low
      a.sex in {low}
"""


def test_names_of_numbers_and_definitions(folder: Path) -> None:
    included = 'model m from "m.json"\nlet cutoff = 0.9\ndefine shared(x) = prob(x) >= cutoff\n'
    (folder / "domain.sens").write_text(included)

    async def script(editor: Editor) -> None:
        await editor.write(NAMED)

        async def declared(place: str) -> list[tuple[str, int, int]]:
            where = await _at(editor, place)
            params = types.DefinitionParams(where.text_document, where.position)
            found = await editor.client.text_document_definition_async(params)
            assert isinstance(found, list)
            return [(one.uri.rsplit("/", 1)[1], one.range.start.line, one.range.start.character) for one in found]

        own = editor.uri.rsplit("/", 1)[1]
        assert await declared("low}\n") == await declared("low, cutoff") == [(own, 1, 4)]
        assert await declared("above(a") == [(own, 2, 7)]
        assert await declared("least\nquery") == [(own, 2, 16)]
        assert await declared("n)\n      not") == [(own, 4, 11)]
        assert await declared("a, n)") == [(own, 5, 9)]
        assert await declared("cutoff}") == await declared("cutoff - low") == [("domain.sens", 1, 4)]
        assert await declared("shared(b)") == [("domain.sens", 2, 7)]
        where = await _at(editor, "low = 0.2")
        edits = await editor.client.text_document_rename_async(
            types.RenameParams(where.text_document, where.position, "floor")
        )
        assert edits is not None
        assert edits.changes is not None
        assert [edit.range.start.line for edit in edits.changes[editor.uri]] == [1, 4, 8, 9]
        where = await _at(editor, "cutoff - low")
        with pytest.raises(JsonRpcException, match="another file"):
            await editor.client.text_document_rename_async(
                types.RenameParams(where.text_document, where.position, "floor")
            )

    session(folder, script)
