"""Completes, at a cursor, words of the language (from the terminals of the grammar) and names (by kind)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from treesens.errors import TreesensError
from treesens.extensions.editor import names
from treesens.extensions.editor.context import Context, context_at, name_of, points_of
from treesens.extensions.editor.reading import Library, Reading
from treesens.frontends.registry import frontend_names
from treesens.grammar.constructs.registry import functions, predicates
from treesens.grammar.parsing.terminals import keywords
from treesens.grammar.printing.print_terms import name_text, point_name_text
from treesens.grammar.printing.printer import to_text
from treesens.grammar.tree import ast
from treesens.grammar.tree.words import MEASURES, NEARNESS, NORMS, QUANTITIES, TYPICAL_WAYS

ItemKind = Literal["keyword", "function", "name", "feature", "value"]


@dataclass(frozen=True)
class Item:
    """One proposal: `text` replaces the characters between `start` and `end` (offsets)."""

    label: str
    text: str
    kind: ItemKind
    detail: str
    start: int
    end: int


def completions(reading: Reading, library: Library, offset: int) -> list[Item]:
    """The completions at a cursor, names before words; no completions inside comments and strings."""
    context = context_at(reading.source, offset)
    if context is None:
        return []
    found = [*_names(reading, library, context), *_declared(reading, context), *_words(context)]
    unique = {label: (text, kind, detail) for label, text, kind, detail in reversed(found)}
    end = _end(reading.source.text, context.start, offset)
    return [Item(label, *unique[label], context.start, end) for label in reversed(unique)]


def _end(text: str, start: int, offset: int) -> int:
    """The end of the replaced text, including a backquote that the editor closed automatically."""
    closed = text[start : start + 1] == "`" and text[offset : offset + 1] == "`"
    return offset + 1 if closed else offset


_Found = tuple[str, str, ItemKind, str]


def _words(context: Context) -> Iterator[_Found]:
    """The words of the language that fit. Where any word would be a name, only words continuing the sentence are listed."""
    fits = {fit.lower() for fit in context.fits}
    if context.names_only:
        if context.before and context.before[-1].type == "SENSITIVE":
            yield "to", "to", "keyword", "word of the language"
        return
    for word in sorted(keywords() & fits):
        text = {"such": "such that", "domain": "domain from", "for": "for each"}.get(word, word)
        if word == "or" and context.before and context.before[0].type == "FEATURE":
            text = "or missing"
        yield text, text, "keyword", "word of the language"
    if context.before and context.before[-1].type == "AVOID":
        yield "cavities", "cavities(", "function", functions()["cavities"]
    elif "FUNCTION" in context.fits:
        for function, form in QUANTITIES.items():
            yield function, f"{function}(", "function", form
    if "PREDICATE" in context.fits:
        for word, found in predicates().items():
            yield word, f"{word}(", "function", found.functions[word]


def _declared(reading: Reading, context: Context) -> Iterator[_Found]:
    """The names of numbers and definitions that fit."""
    for name, node in reading.names.items():
        if isinstance(node, ast.Define) and "PREDICATE" in context.fits:
            yield name, f"{name}(", "function", to_text(node).partition(" =")[0]
        elif isinstance(node, ast.Let) and "NUMBER" in context.fits:
            yield name, point_name_text(ast.Name(name)), "value", to_text(node)


def _names(reading: Reading, library: Library, context: Context) -> Iterator[_Found]:
    points = points_of(context.before)
    model = points.get(context.point) if context.point else None
    if model is None and context.before and context.before[0].type == "QUERY":
        model = next((m for m in points.values() if m), None) or _model_of_shorthand(context)
    match context.kind:
        case "feature":
            known = names.features(reading, model)
            parameters = dict.fromkeys(_parameters(context), "parameter of the loop")
            declaring = context.before[0].type == "FEATURE"
            for name, detail in (known | parameters).items():
                if not (declaring and name in reading.found.features):
                    yield name, name_text(ast.Name(name)), "feature", detail
        case "model":
            for name in reading.found.models:
                yield name, name_text(ast.Name(name), but="to"), "name", "model"
        case "data":
            for name in reading.found.tables:
                yield name, name_text(ast.Name(name)), "name", "data"
        case "measure":
            for name in reading.found.measures:
                yield name, name_text(ast.Name(name)), "name", "measure"
        case "kind":
            yield from ((k, f"{k} of" if k in MEASURES[2:] else k, "value", "kind of measure") for k in MEASURES)
        case "class":
            for label in names.classes(reading, model):
                text = label if label.replace(".", "", 1).isdigit() else name_text(ast.Name(label))
                yield label, text, "value", "class"
        case "category":
            if context.feature is not None:
                for label, detail in names.categories(reading, context.feature, model).items():
                    yield label, name_text(ast.Name(label)), "value", detail
        case "column":
            for column in _columns(reading, library, context):
                yield column, name_text(ast.Name(column)), "feature", "column"
        case "format":
            for name in frontend_names():
                yield name, name_text(ast.Name(name)), "value", "model format"
        case "norm":
            yield from ((norm, norm, "value", "norm") for norm in NORMS)
        case "near":
            yield from ((word, word, "value", "measure of nearness to data") for word in NEARNESS)
        case "typical":
            yield from ((word, word, "value", "method for typical inputs") for word in TYPICAL_WAYS)
        case "level":
            yield from ((f"{n} %", f"{n} %", "value", "of fresh inputs") for n in (90, 95, 99))
        case "option":
            yield from ((word, f"{word} = ", "keyword", functions()["cavities"]) for word in ("width", "limit"))
    if context.kind in ("point", "target", "category", "class") and not _only_labels(context):
        for name in points:
            yield name, point_name_text(ast.Name(name)), "name", "point"
    if context.kind == "target":
        yield from ((t, t, "keyword", "of DATA") for t in ("nearest row of", "row"))


def _only_labels(context: Context) -> bool:
    return context.kind in ("category", "class") and context.before[-1].type in ("LBRACE", "COMMA", "TO", "FROM")


def _parameters(context: Context) -> list[str]:
    """The parameters of the `for each` around the cursor."""
    found: list[str] = []
    inside = False
    for token in context.before:
        inside = token.type == "EACH" or (inside and token.type in ("NAME", "COMMA"))
        if inside and token.type == "NAME":
            found.append(name_of(token))
    return found


def _model_of_shorthand(context: Context) -> str | None:
    for before, token in zip(context.before, context.before[1:], strict=False):
        if before.type == "SENSITIVE" and token.type != "TO":
            return name_of(token)
    return None


def _columns(reading: Reading, library: Library, context: Context) -> list[str]:
    """The columns of the table whose declaration is being edited."""
    path = next((token for token in context.before if token.type == "STRING"), None)
    if path is None:
        return []
    try:
        table = library.table(Path(reading.source.name).parent / name_of(path))
    except TreesensError:
        return []
    return list(table.columns)
