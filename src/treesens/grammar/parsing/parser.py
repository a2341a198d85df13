"""`parse` and `read`: the syntax tree of a text or a file, or all of its mistakes at once."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

from treesens.compiler.base.diagnostics import Diagnostics, DiagnosticsError, Remedy, Source, Span, write
from treesens.compiler.base.files import near_file, open_regular
from treesens.grammar.parsing import layout
from treesens.grammar.tree import ast

if TYPE_CHECKING:
    from lark import Token

LARGEST_FILE: Final = 10_000_000
"""Maximum number of bytes. Questions are short texts; a larger file is a data file passed by mistake."""

_TABLES: Final = (".csv", ".tsv", ".csv.gz")
_MOST_TOKENS: Final = 500_000
_MOST_MESSAGES: Final = 100
"""Maximum number of syntax errors reported for each file."""

_TRANSLATED: Final = {
    **{"==": ("EQUAL", "="), ":=": ("EQUAL", "="), "=<": ("ORDER", "<="), "=>": ("ORDER", ">="), "<>": ("ORDER", "!=")},
    **{"≤": ("ORDER", "<="), "≥": ("ORDER", ">="), "≠": ("ORDER", "!="), "&&": ("AND", "and"), "&": ("AND", "and")},
    **{"∧": ("AND", "and"), "||": ("OR", "or"), "|": ("OR", "or"), "∨": ("OR", "or"), "!": ("NOT", "not")},
    **{"¬": ("NOT", "not"), "×": ("TIMES", "*"), "·": ("TIMES", "*"), "→": ("IMPLIES", "implies")},
    "->": ("IMPLIES", "implies"),
}


def read(path: str | Path, parameters: Mapping[str, object] | None = None) -> ast.File:
    """The expanded syntax tree of a `.sens` file with the files that it includes; `parameters` replace numbers of `param`.

    Raises:
        DiagnosticsError: all mistakes in the file.
        UsageError: the file has no such parameter, or a value is not a number.
    """
    source = load(path)
    if source.text.startswith(('module "', "sir ")):
        diagnostics, here = Diagnostics(), Span(source, 0, len("module"))
        message = "this is a module of the intermediate representation, not a file of questions"
        diagnostics.error("S064", message, here, f"treesens check {source.name}")
        diagnostics.raise_if_errors()
    return parse(source.text, source.name, Path(path), parameters)


def load(path: str | Path) -> Source:
    """The text of a file, or of standard input (`-`). Raises `DiagnosticsError` if the file is not text."""
    name = "<standard input>" if str(path) == "-" else str(path)
    diagnostics = Diagnostics()
    nowhere = Span(Source(name, ""), 0, 0)
    content = b""
    try:
        if str(path) == "-":
            content = _standard_input()
        else:
            with open_regular(path) as file:
                content = file.read(LARGEST_FILE + 1)
    except OSError as error:
        reason = error.strerror or str(error)
        remedy = near_file(path) or "check the path and its permissions"
        diagnostics.error("S063", f"the file cannot be read: {reason}", nowhere, remedy)
    except ValueError as error:  # a path that contains NUL
        diagnostics.error("S063", f"the file cannot be read: {error}", nowhere, "check the path")
    if len(content) > LARGEST_FILE:
        message = f"the file has more than {LARGEST_FILE // 1_000_000} MB, too large for a question"
        diagnostics.error("S061", message, nowhere, 'check the path; data files go into `data NAME from "FILE"`')
    diagnostics.raise_if_errors()
    return Source(name, _decoded(content, name, diagnostics))


@cache
def _standard_input() -> bytes:
    """The bytes of standard input, which are read once and kept."""
    return sys.stdin.buffer.read(LARGEST_FILE + 1)


def _decoded(content: bytes, name: str, diagnostics: Diagnostics) -> str:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # The text before the invalid byte is UTF-8; the rest is shown as Latin-1, its most likely encoding.
        before = content[: error.start].decode("utf-8-sig", "replace")
        source = Source(name, before + content[error.start :].decode("latin-1"))
        span = Span(source, len(before), len(before) + 1)
        byte = content[error.start]
        remedy = "save the file as UTF-8 (it looks like Latin-1: `iconv -f windows-1252 -t utf-8`)"
        diagnostics.error("S060", f"byte 0x{byte:02X} is not UTF-8", span, remedy)
        text = ""
    diagnostics.raise_if_errors()
    return text


def parse(
    text: str, name: str = "<query>", path: Path | None = None, parameters: Mapping[str, object] | None = None
) -> ast.File:
    """The expanded syntax tree of a text. A text without a path cannot include files.

    Raises `DiagnosticsError` with all mistakes in the text, whose locations begin with `name`, and the `UsageError` of `read`.
    """
    from treesens.grammar.expansion import expand

    return _without_mistakes(text, name, lambda file, found: expand(file, path, parse_included, found, parameters))


def parse_tree(text: str, name: str = "<query>") -> ast.File:
    """The syntax tree of a text, in which no name is replaced. Errors are as for `parse`."""
    return _without_mistakes(text, name, lambda file, _: file)


def _without_mistakes(text: str, name: str, done: Callable[[ast.File, Diagnostics], ast.File]) -> ast.File:
    diagnostics = Diagnostics()
    file = parse_source(Source(name, text), diagnostics)
    file = None if file is None else done(file, diagnostics)
    diagnostics.items.sort(key=lambda item: item.span.start if item.span else 0)
    diagnostics.raise_if_errors()
    assert file is not None
    return file


def parse_source(source: Source, diagnostics: Diagnostics) -> ast.File | None:
    """The tree of the readable parts; None if no part is readable. Mistakes go to `diagnostics`.

    Editors use this tree for a file that is being edited; all other callers use `parse`. Names are not replaced.
    """
    if not _is_text(source, diagnostics):
        return None
    from treesens.grammar.parsing import terminals
    from treesens.grammar.parsing.build import Builder
    from treesens.grammar.parsing.recover import DeclarationParser

    found = terminals.tokens(source.text, _MOST_TOKENS)
    if len(found) == _MOST_TOKENS:
        message = f"the text has more than {_MOST_TOKENS} words, too large for a question"
        diagnostics.error("S061", message, Span(Source(source.name, ""), 0, 0), "check the path")
        return None
    found = [token for token in found if token.type != "COMMENT"]
    tokens = layout.mark_names(_repaired(source, found, diagnostics))
    if not tokens:
        if not diagnostics.errors:
            remedy = 'write at least `model NAME from "FILE"` and a query'
            diagnostics.error("S010", "the file is empty", Span(source, 0, 0), remedy)
        return None
    named = {str(name).strip("`") for word, name in pairwise(tokens) if word.type in ("LET", "PARAM")}
    includes = any(token.type == "INCLUDE" for token in tokens)
    builder = Builder(source, diagnostics, None if includes else frozenset(named))
    nodes: list[ast.Declaration] = []
    for declaration in layout.declarations(tokens):
        if len(diagnostics.items) >= _MOST_MESSAGES:
            break
        reader = DeclarationParser(source, declaration, diagnostics)
        tree = reader.parse()
        node = builder.declaration(tree) if tree is not None else None
        if node is not None and not reader.failed:
            nodes.append(node)
    return ast.File(tuple(nodes), span=Span(source, 0, len(source.text)))


def parse_included(path: Path, included: Span, diagnostics: Diagnostics) -> ast.File | None:
    """The tree of a file that the text at `included` includes; None if it cannot be read. Mistakes go to `diagnostics`."""
    try:
        source = load(path if str(path) != "-" else "./-")
    except DiagnosticsError as error:
        for one in error.diagnostics:
            inside = one.span is not None and one.span.source.text
            diagnostics.items.append(one if inside else replace(one, span=included))
        return None
    return parse_source(replace(source, included=included), diagnostics)


def _is_text(source: Source, diagnostics: Diagnostics) -> bool:
    if source.text.lstrip().startswith("{"):
        start = source.text.index("{")
        remedy = f'name a model in a file of questions: `model m from "{source.name}"`'
        diagnostics.error("S011", "this file contains JSON, not questions", Span(source, start, start + 1), remedy)
        return False
    if source.name.endswith(_TABLES):
        remedy = f'name a table in a file of questions: `data d from "{source.name}"`'
        diagnostics.error("S011", "this file is a table, not questions", Span(source, 0, 0), remedy)
        return False
    nul = source.text.find("\0")
    if len(source.text) > LARGEST_FILE:
        message = f"the text has more than {LARGEST_FILE // 1_000_000} MB, too large for a question"
        diagnostics.error("S061", message, Span(Source(source.name, ""), 0, 0), "check the path")
    elif nul >= 0:
        # The excerpt of a binary file is useless, and may be long.
        shown = Span(Source(source.name, ""), 0, 0) if "\n" not in source.text else Span(source, nul, nul + 1)
        diagnostics.error("S062", "the file contains NUL bytes, so it is not text", shown, "check the path")
    return not diagnostics.errors


def _repaired(source: Source, tokens: list[Token], diagnostics: Diagnostics) -> list[Token]:
    """The tokens. Every unreadable token is reported, then translated, dropped or marked as broken."""
    from treesens.grammar.messages.faults import span_of

    kept: list[Token] = []
    skipped_line = 0
    for token in tokens:
        if len(diagnostics.items) >= _MOST_MESSAGES:
            return []
        if token.line == skipped_line:
            continue  # the rest of a line after an unclosed name or string
        span = span_of(source, token)
        match token.type:
            case "FOREIGN":
                if str(token) not in _TRANSLATED:
                    diagnostics.error("S030", f"`{token}` is not an operator here", span, "write a product or a number")
                    kept.append(token.update(type=layout.BROKEN))
                    continue
                kind, meant = _TRANSLATED[str(token)]
                if token == "|" and (bars := [one for one in tokens if one == "|" and one.line == token.line])[1:]:
                    if token is bars[0]:
                        where = span.to(span_of(source, bars[1]))
                        inner, objective = where.text[1:-1], kept and kept[-1].type in ("MAXIMIZE", "MINIMIZE")
                        remedy = Remedy("write `abs(..)`", f"abs({inner})")
                        if objective:
                            remedy = Remedy(f"write `{kept[-1]} {inner}`; the other direction is another query", inner)
                        diagnostics.error(
                            "S030", "an absolute value between `|` and `|` is written differently here", where, remedy
                        )
                    kind = "LPAR" if token is bars[0] else "RPAR" if token is bars[1] else kind
                else:
                    diagnostics.error("S030", f"`{token}` is written differently here", span, write(meant))
                kept.append(token.update(type=kind, value=meant))
            case "OPEN_QUOTE":
                skipped_line = token.line or 0
                code, what = ("S003", "name") if token[0] == "`" else ("S004", "string")
                where = Span(source, span.start, span.start + 1)
                closed = f"write {token[0] if code == 'S004' else 'a backquote'} where it ends, on the same line"
                diagnostics.error(code, f"this {what} is not closed", where, closed)
                kept.append(token.update(type=layout.BROKEN))
            case "BAD_NUMBER":
                meant = _number_meant(str(token)) if kept and kept[-1].type in _BEFORE_NUMBER else ""
                what = "is not a number" if meant else "is neither a number nor a plain name"
                diagnostics.error("S005", f"`{token}` {what}", span, meant or _quoted(token))
                kept.append(token.update(type=layout.BROKEN))
            case "SINGLE_QUOTED":
                diagnostics.error("S002", "single quotes have no meaning here", span, _instead("'"))
                kept.append(token.update(type="STRING"))
            case "UNREADABLE":
                last = diagnostics.items[-1] if diagnostics.items else None
                if last is None or last.code != "S002" or last.span is None or last.span.end != span.start:
                    diagnostics.error(
                        "S002", f"{_described(str(token))} has no meaning here", span, _instead(str(token))
                    )
                else:
                    diagnostics.items.pop()
                    diagnostics.error("S002", "these characters are unknown here", last.span.to(span), "remove them")
            case _:
                kept.append(token)
    return kept


_BEFORE_NUMBER: Final = (*layout.OPERATORS, "LSQB", "LPAR", "COMMA", "GAP", "MARGIN", "FACTOR")


def _quoted(token: str) -> Remedy:
    return Remedy(f"to use it as a name, put it in backquotes: `` `{token}` ``", f"`{token}`")


def _number_meant(text: str) -> str:
    """The remedy for `50k`, `50_000` and `1e` in the place of a number; empty for other texts."""
    if re.fullmatch(r"[\d.]+[eE]", text):
        return f"an exponent needs digits: `{text}3`"
    found = re.fullmatch(r"([\d_]+(?:\.\d+)?)([kKmM]?)", text)
    if found is None:
        return ""
    value = Fraction(found[1].replace("_", "")) * {"": 1, "k": 1_000, "m": 1_000_000}[found[2].lower()]
    return write(f"{float(value):.15g}" if value.denominator > 1 else str(value))


def _described(character: str) -> str:
    return f"`{character}`" if character.isprintable() and character != "`" else f"U+{ord(character):04X}"


def _instead(character: str) -> str:
    if character in "'‘’“”„":
        return 'strings are written in double quotes: "..", names in backquotes'
    if re.match(r"[@$?~]", character):
        return "remove it, or put the name in backquotes"
    return "remove it"
