"""`treesens fmt`: canonical spacing and indentation; the author's words, lines and comments are kept.

The text is laid out token by token, so no token is lost. Declarations start at the margin; the sentence of a query is indented
by two spaces, and its constraints by four spaces; a continuation line is indented by two more spaces, plus two spaces for every
open bracket. At most one empty line separates two lines; the file has no empty lines at its beginning and end. A comment on its
own line is indented like the following line.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from treesens.grammar.parsing import layout
from treesens.grammar.parsing.parser import parse_tree
from treesens.grammar.tree import ast
from treesens.grammar.tree.node import nodes_in

if TYPE_CHECKING:
    from lark import Token

_TIGHT_BEFORE: Final = ("COMMA", "COLON", "RPAR", "RSQB", "RBRACE", "DOT", "_SEP")
_TIGHT_AFTER: Final = ("LPAR", "LSQB", "LBRACE", "DOT", "FUNCTION", "PREDICATE")
_OPERANDS: Final = ("NAME", "QUOTED", "STRING", "NUMBER", "INF", "RPAR", "RSQB")
_UNIT: Final = 2


def format_text(text: str, name: str = "<query>") -> str:
    """The text in canonical layout. Raises `DiagnosticsError` for an invalid text: files are never formatted in part."""
    tree = parse_tree(text, name)
    sets = [node.span for node in nodes_in(tree) if isinstance(node, ast.Features) and len(node.names) > 1]
    for span in reversed([span for span in sets if not span.text.startswith("{")]):
        text = f"{text[: span.start]}{{{span.text}}}{text[span.end :]}"
    tree = parse_tree(text, name)
    from treesens.grammar.parsing import terminals

    tokens = terminals.tokens(text)
    code = layout.mark_names([token for token in tokens if token.type != "COMMENT"])
    indents = dict(_indents(code, _starts(tree), _tails(tree)))
    negations = set(_negations(code, _starts(tree)))
    done: list[str] = []
    pending: list[Token] = []
    last_line = 0
    for line in _lines(_merged(tokens, code)):
        if line[0].type == "COMMENT":
            pending.append(line[0])
            continue
        indent = indents[line[0].start_pos or 0]
        for comment in pending:
            before = _indent_of(done)
            last_line = _put(done, comment, last_line, before if _belongs_above(comment, indent, last_line) else indent)
        pending.clear()
        last_line = _put(done, line[0], last_line, indent, _spaced(line, negations))
    for comment in pending:
        before = _indent_of(done)
        last_line = _put(done, comment, last_line, before if _belongs_above(comment, 0, last_line) else 0)
    return "".join(f"{line}\n" for line in done)


def _put(done: list[str], first: Token, last_line: int, indent: int, text: str | None = None) -> int:
    """Adds a line, preceded by an empty line if the author left one, and returns the line's number in the source."""
    line = first.line or 0
    if done and line > last_line + 1:
        done.append("")
    done.append(" " * indent + (text if text is not None else str(first).rstrip()))
    return line


def _belongs_above(comment: Token, indent: int, last_line: int) -> bool:
    """True if an indented comment right below a line belongs to this line: a declaration or the end of the text follows."""
    return indent == 0 and (comment.column or 1) > 1 and (comment.line or 0) == last_line + 1


def _indent_of(done: list[str]) -> int:
    return len(done[-1]) - len(done[-1].lstrip()) if done else 0


def _merged(tokens: list[Token], code: list[Token]) -> Iterator[Token]:
    marked = iter(code)
    return (token if token.type == "COMMENT" else next(marked) for token in tokens)


def _lines(tokens: Iterator[Token]) -> list[list[Token]]:
    lines: list[list[Token]] = []
    for token in tokens:
        if not lines or (token.line or 0) > (lines[-1][-1].line or 0):
            lines.append([])
        lines[-1].append(token)
    return lines


def _starts(tree: ast.File) -> frozenset[int]:
    """Offsets at which conjuncts start, to distinguish `-a.x <= 3` on its own line from a continued difference."""
    parts = [node.body if isinstance(node, ast.Query) else node for node in tree.declarations]
    return frozenset(
        c.span.start for part in parts if isinstance(part, ast.Find | ast.Count | ast.Define) for c in part.constraints
    )


def _tails(tree: ast.File) -> frozenset[int]:
    """Offsets of the parts after the constraints, taken from the tree, because a preceding word may be a name."""
    parts: list[ast.Node | None] = []
    for query in tree.queries:
        match query.body:
            case ast.Find(objective=objective, top=top, share=share, expect=expect):
                parts += [objective, top, share, expect]
            case ast.Sensitive(top=top, share=share, expect=expect):
                parts += [top, share, expect]
            case ast.Count(expect=expect) | ast.Explain(expect=expect):
                parts.append(expect)
    return frozenset(part.span.start for part in parts if part is not None)


# --- indentation ------------------------------------------------------------------------------------------------------


def _indents(code: list[Token], starts: frozenset[int], tails: frozenset[int]) -> Iterator[tuple[int, int]]:
    """The offset and the indentation of every token that starts a line."""
    for declaration in layout.declarations(code):
        headers = depth = 0  # numbers of colons and open brackets so far
        in_constraints = False
        for index, token in enumerate(declaration):
            previous = declaration[index - 1] if index else None
            in_tail = _starts_tail(declaration, index, tails)
            if in_tail:
                in_constraints = False
            if layout.starts_line(declaration, index):
                if previous is None:
                    level = 0
                elif not depth and _starts_case(declaration, index):
                    level = 1
                elif in_constraints:
                    level = headers + 1 + (not depth and not _starts_conjunct(declaration, index, starts))
                else:
                    level = headers + (not depth and not in_tail and previous.type != "COLON")
                yield token.start_pos or 0, _UNIT * (level + depth - (token.type in layout.CLOSERS))
            depth += (token.type in layout.CLOSER) - (token.type in layout.CLOSERS)
            headers += token.type == "COLON"
            in_constraints |= layout.starts_constraints(declaration, index)


def _starts_case(tokens: list[Token], index: int) -> bool:
    """True if a case of a decision, or its `else`, starts at this token."""
    if tokens[0].type != "DECISION":
        return False
    return tokens[index].type == "ELSE" or (index + 1 < len(tokens) and tokens[index + 1].type == "WHEN")


def _starts_tail(tokens: list[Token], index: int, tails: frozenset[int]) -> bool:
    # The tree contains only the name of `share of M`, and `expect share < 1 %` without its first word.
    skipped = {"SHARE": (2,), "EXPECT": (0, 1)}.get(tokens[index].type, (0,))
    starts = {tokens[index + n].start_pos for n in skipped if index + n < len(tokens)}
    return tokens[index].type in layout.TAIL and not starts.isdisjoint(tails)


def _starts_conjunct(tokens: list[Token], index: int, starts: frozenset[int]) -> bool:
    previous = tokens[index - 1]
    if previous.type == "_SEP" or layout.starts_constraints(tokens, index - 1):
        return True
    if tokens[index].type == "MINUS":
        return tokens[index].start_pos in starts
    return layout.may_end(previous) and layout.may_start(tokens, index)


# --- spacing ----------------------------------------------------------------------------------------------------------


def _negations(code: list[Token], starts: frozenset[int]) -> Iterator[int]:
    """Offsets of the unary minus signs; all other minus signs subtract."""
    for index, token in enumerate(code):
        if token.type == "MINUS" and (
            index == 0 or code[index - 1].type not in _OPERANDS or (token.start_pos or 0) in starts
        ):
            yield token.start_pos or 0


def _spaced(line: list[Token], negations: set[int]) -> str:
    text = str(line[0])
    for before, token in pairwise(line):
        if token.type == "COMMENT":
            text += "  " + str(token).rstrip()
            continue
        negates = before.type == "MINUS" and (before.start_pos or 0) in negations
        tight = token.type in _TIGHT_BEFORE or before.type in _TIGHT_AFTER or negates
        text += str(token) if tight else f" {token}"
    return text
