"""The starts of declarations and conjuncts, the only two uses of line breaks in a `.sens` file.

1. A declaration starts on a new line, with its word (`include`, `let`, `param`, `define`, `model`, `data`, `feature`, `onehot`,
   `domain`, `measure`, `decision`, `query`, `for each`).
2. Between `such that` and the objective, and in a definition, a line break (or `;`) separates two conjuncts, unless the text
is inside brackets, the line ends with an incomplete construct (an operator, a comma, `except`, `and`), or the next line starts
with a continuation (an operator, `and`, `or`, `except`, `by`, `in`). A line that starts with `-` continues the previous line
only if the previous line is not yet a complete conjunct.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Final

from treesens.grammar.constructs.registry import functions, predicate
from treesens.grammar.parsing.terminals import keywords, operators
from treesens.grammar.tree.words import DECLARATIONS, ENDS_OPEN

if TYPE_CHECKING:
    from lark import Token

CLOSER: Final = {"LPAR": ("RPAR", "RSQB"), "LSQB": ("RSQB", "RPAR"), "LBRACE": ("RBRACE",)}
"""The closing brackets that fit an opening bracket; intervals mix round and square brackets."""

CLOSERS: Final = ("RPAR", "RSQB", "RBRACE")
VALUES: Final = ("NAME", "QUOTED", "STRING", "NUMBER", "INF", "PERCENT")
BROKEN: Final = "BROKEN"
"""The type of a token whose mistake has been reported already."""

_STARTS: Final = (*VALUES, "LPAR", "MINUS", "NOT", "FUNCTION", "PREDICATE", BROKEN)
_ENDS: Final = (*VALUES, *CLOSERS, "CHOW_LIU", BROKEN)
TAIL: Final = ("MAXIMIZE", "MINIMIZE", "TOP", "SHARE", "EXPECT")


def is_word(token: Token) -> bool:
    """True if the token is a word of the language, not a name of the same spelling."""
    return token.type not in ("NAME", "FUNCTION", "PREDICATE", "QUOTED", "STRING") and str(token) in keywords()


def is_name(token: Token) -> bool:
    """True if the token can be a name somewhere."""
    return token.type in ("NAME", "QUOTED", "FUNCTION", "PREDICATE") or is_word(token)


def starts_line(tokens: list[Token], index: int) -> bool:
    return index == 0 or (tokens[index].line or 0) > (tokens[index - 1].end_line or 0)


def starts_constraints(tokens: list[Token], index: int) -> bool:
    """True if constraints follow this token of a declaration: after `such that`, and after the `=` of a definition."""
    if tokens[0].type == "DEFINE":
        return tokens[index].type == "EQUAL" and [t.type for t in tokens[:index]].count("EQUAL") == 0
    return tokens[index].type == "THAT" and index > 0 and tokens[index - 1].type == "SUCH"


def may_start(tokens: list[Token], index: int) -> bool:
    """True if a conjunct may start with this token; `not` may start a conjunct, but `not in` continues a conjunct."""
    if tokens[index].type == "NOT":
        return index + 1 == len(tokens) or tokens[index + 1].type != "IN"
    return tokens[index].type in _STARTS


def may_end(token: Token) -> bool:
    """True if a conjunct may end with this token."""
    return token.type in _ENDS or (is_word(token) and str(token) not in ENDS_OPEN and str(token) not in operators())


def mark_names(tokens: list[Token]) -> list[Token]:
    """Marks words of the language that can only be names as names: in `a.class`, `except row`, `a.job = none`, `1 + gap`."""
    marked = list(tokens)
    for index in _constraints_by_name(tokens):
        marked[index] = marked[index].update(type="PREDICATE")
    for index in range(1, len(marked)):
        before, token = marked[index - 1], marked[index]
        after_dot = before.type == "DOT" and (token.type in ("FUNCTION", "PREDICATE") or is_word(token))
        on_line = token.line == before.line
        negates = token.type == "NOT" and index + 1 < len(marked) and may_start(marked, index + 1)
        negates = negates and marked[index + 1].line == token.line
        as_value = before.type in OPERATORS and on_line and token.type not in ("ROW", "INF") and is_word(token)
        as_value = as_value and not negates
        if after_dot or as_value or (before.type in ("EXCEPT", "OF") and is_word(token)):
            marked[index] = token.update(type="NAME")
    return marked


def _constraints_by_name(tokens: list[Token]) -> list[int]:
    """The calls of plug-ins' predicates, and of other unknown names by themselves: no operator is next to these calls."""
    calls = [
        index
        for index, token in enumerate(tokens)
        if token.type == "FUNCTION" and str(token) not in functions() and str(token) not in keywords()
    ]
    closing: dict[int, int] = {}
    opened: list[int] = []
    heads: set[int] = set()  # the `=` of definitions
    defines = False
    for index, token in enumerate(tokens) if calls else ():
        if token.type == "LPAR":
            opened.append(index)
        elif token.type == "RPAR" and opened:
            closing[opened.pop()] = index
        elif defines and token.type == "EQUAL":
            heads.add(index)
        defines = token.type == "DEFINE" or (defines and token.type != "EQUAL")

    def is_alone(index: int) -> bool:
        end = closing.get(index + 1, len(tokens)) + 1
        while end < len(tokens) and tokens[end].type == "RPAR" and end - closing.get(index + 1, end) <= _DEEPEST:
            end += 1
        after = [token.type for token in tokens[end : end + 2]]
        continued = after[:1] == ["MINUS"] and not starts_line(tokens, end)
        continued |= bool(after) and (after[0] in _CONTINUES or after == ["NOT", "IN"])
        before = tokens[index - 1].type if index else ""
        if before == "LPAR" and index > 1 and tokens[index - 2].type in ("FUNCTION", "PREDICATE"):
            return False  # an argument
        return before == "DEFINE" or (not continued and (index - 1 in heads or before not in _BEFORE_QUANTITY))

    return [index for index in calls if predicate(str(tokens[index])) is not None or is_alone(index)]


_DEEPEST: Final = 64
"""Maximum number of brackets that are skipped after a call; the parser refuses deeper ones."""

_CONTINUES: Final = ("ORDER", "EQUAL", "PLUS", "TIMES", "OVER", "IN", "COMMA")
OPERATORS: Final = ("ORDER", "EQUAL", "PLUS", "MINUS", "TIMES", "OVER")
_BEFORE_QUANTITY: Final = (*OPERATORS, "COMMA", "AVOID", "EXPECT", "MAXIMIZE", "MINIMIZE", "DOT")


def declarations(tokens: list[Token]) -> list[list[Token]]:
    """The tokens of a file, cut where a declaration starts."""
    cuts: list[int] = []
    depth = 0
    for index, token in enumerate(tokens):
        if starts_line(tokens, index) and (not cuts or _starts_declaration(tokens, index, cuts[-1], depth)):
            cuts.append(index)
            depth = 0
        if token.type in CLOSER:
            depth += 1
        elif token.type in CLOSERS:
            depth = max(0, depth - 1)
    return [tokens[start:end] for start, end in zip(cuts, [*cuts[1:], len(tokens)], strict=True)]


def _starts_declaration(tokens: list[Token], index: int, start: int, depth: int) -> bool:
    token, previous = tokens[index], tokens[index - 1]
    if previous.type == "COLON" and _continues_sweep(tokens, index, start):
        return False
    if _has_shape(tokens, index):
        # Unclosed brackets do not hide the start of the next declaration.
        return depth == 0 or is_word(token)
    return depth == 0 and is_word(token) and str(token) in DECLARATIONS and may_end(previous)


def _continues_sweep(tokens: list[Token], index: int, start: int) -> bool:
    """A `for` or `query` right after the colon of `query q:` or `for each ..:` belongs to that declaration."""
    if tokens[index].type == "FOR":
        return tokens[start].type in ("QUERY", "FOR")
    return tokens[start].type == "FOR" and all(t.type != "QUERY" for t in tokens[start:index])


def _has_shape(tokens: list[Token], index: int) -> bool:
    """True if the line looks like a declaration, even with a misspelt word."""
    word, *after = tokens[index : index + 3]
    kinds = [t.type for t in after]
    named = len(after) == 2 and is_name(after[0]) and kinds[1] in ("FROM", "COLON", "EQUAL")
    if named and kinds[1] != "EQUAL" and word.type in ("NAME", "MODEL", "DATA", "FEATURE", "MEASURE", "QUERY"):
        return True
    if len(after) == 2 and is_name(after[0]) and (word.type, kinds[1]) == ("DECISION", "OF"):
        return True
    if named and word.type in ("LET", "PARAM"):
        return True
    if kinds[:1] in (["LBRACE"], ["FROM"]):
        return (is_word(word) and str(word) in DECLARATIONS) or near_declaration(word) is not None
    return kinds[:1] == ["EACH"] and word.type in ("FOR", "NAME")


def near_declaration(token: Token) -> str | None:
    """The declaration word most similar to a misspelt word."""
    if token.type != "NAME":
        return None
    near = difflib.get_close_matches(token.lower(), DECLARATIONS, 1, 0.6)
    return near[0] if near and 2 * len(near[0]) > len(token) else None
