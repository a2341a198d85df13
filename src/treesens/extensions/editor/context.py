"""Finds the context of a cursor: the unfinished declaration, the terminals that fit, and the kind of name.

Everything here works on tokens, because unfinished text seldom parses.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from treesens.compiler.base.diagnostics import Diagnostics, Source
from treesens.extensions.editor.reading import code_tokens
from treesens.grammar.parsing.layout import CLOSER, CLOSERS, declarations
from treesens.grammar.parsing.recover import DeclarationParser
from treesens.grammar.parsing.terminals import FAULTS, tokens
from treesens.grammar.tree.words import DECLARATIONS

if TYPE_CHECKING:
    from lark import Token

Kind = Literal[
    "point",
    "feature",
    "model",
    "data",
    "class",
    "category",
    "column",
    "format",
    "target",
    "near",
    "norm",
    "option",
    "typical",
    "level",
    "measure",
    "kind",
]
"""The kinds of names; a `target` is the other end of a distance."""

_WORD: Final = re.compile(r"[^\W\d]\w*$")
_QUOTED: Final = re.compile(r"`[^`\n]*$")
_NAMES_ONLY: Final = frozenset(("STORED", "LABEL", "EACH"))
"""If all of these terminals fit, every word is read as a name."""


@dataclass(frozen=True)
class Context:
    """`start` is the offset of the word under the cursor, `before` holds the declaration's tokens before that word, and `fits`
    holds the terminals that may follow; `point` (or None) and `feature` are the owners of a name.
    """

    start: int
    before: tuple[Token, ...]
    fits: frozenset[str]
    kind: Kind | None
    point: str | None = None
    feature: str | None = None

    @property
    def names_only(self) -> bool:
        """True if words of the language would be read as names at the cursor."""
        listed = self.kind in ("norm", "near", "format", "column", "measure", "kind")
        return self.fits >= _NAMES_ONLY or listed or self._argument

    @property
    def _argument(self) -> bool:
        return self.kind in ("point", "class", "data", "option") and self.before[-1].type in ("LPAR", "COMMA")


def context_at(source: Source, offset: int) -> Context | None:
    """The context of a cursor; None inside strings and comments."""
    text = source.text[:offset]
    line = text[text.rfind("\n") + 1 :]
    if _in_string_or_comment(line):
        return None
    word = (_QUOTED if line.count("`") % 2 else _WORD).search(line)
    start = offset - len(word[0]) if word else offset
    found = [t for t in code_tokens(source.text[:start]) if t.type not in FAULTS]
    new_line = not found or "\n" in source.text[found[-1].end_pos or 0 : start]
    part = declarations(found)[-1] if found else []
    fits = DeclarationParser(source, part, Diagnostics()).fits(new_line=new_line) if part else frozenset[str]()
    if not part or (new_line and "$END" in fits):
        fits |= {word.upper() for word in DECLARATIONS}
    kind, point, feature = _kind(part) if part else (None, None, None)
    if kind is None and "NAME" in fits and points_of(part):
        kind = "point"
    return Context(start, tuple(part), fits, kind, point, feature)


def _in_string_or_comment(line: str) -> bool:
    found = tokens(line)
    return bool(found) and (found[-1].type == "COMMENT" or (found[-1].type == "OPEN_QUOTE" and found[-1][0] == '"'))


def points_of(part: list[Token] | tuple[Token, ...]) -> dict[str, str | None]:
    """The points of a query by name, each with the name of its model, or None."""
    found: dict[str, str | None] = {}
    inside = False
    for i, token in enumerate(part):
        if token.type == "SUCH":
            break
        if token.type == "FIND" or (token.type == "AS" and any(t.type == "COUNT" for t in part[:i])):
            inside = True
        elif inside and token.type in ("NAME", "QUOTED") and part[i - 1].type in ("FIND", "AS", "COMMA"):
            found[name_of(token)] = None
        elif inside and part[i - 1].type == "IN" and found:
            last = list(found)[-1]
            found = {p: name_of(token) if p == last or not any(found.values()) else m for p, m in found.items()}
    return found


def name_of(token: Token) -> str:
    """A name without its backquotes."""
    return str(token).strip('`"')


def _kind(part: list[Token]) -> tuple[Kind | None, str | None, str | None]:
    """The kind of a name after these tokens, and the name's owners (a point, a feature)."""
    last, kinds = part[-1].type, [t.type for t in part]
    before = kinds[-2] if len(kinds) > 1 else ""
    opener = innermost_bracket(part)
    if last == "DOT" and len(part) > 1:
        return "feature", name_of(part[-2]), None
    if opener is not None and last in ("LBRACE", "LPAR", "COMMA"):
        return _in_brackets(part, opener)
    if last in ("EQUAL", "ORDER"):
        return _compared(part)
    in_header = "THAT" not in kinds
    match last:
        case "EXCEPT":
            return "feature", None, None
        case "TO" if "FROM" not in kinds:
            return "feature", None, None
        case "TO":
            return "class", None, None
        case "FROM" if "SENSITIVE" in kinds:
            return "class", None, None
        case "FEATURE" if len(part) == 1:
            return "feature", None, None
        case "FROM" if kinds[0] == "DOMAIN":
            return "data", None, None
        case "OF" if before == "SHARE":
            return "measure", None, None
        case "COLON" if kinds[0] == "MEASURE":
            return "kind", None, None
        case "OF" | "NEAR":
            return "data", None, None
        case "USING":
            return "near", None, None
        case "BY" if "TYPICAL" in kinds[-8:]:
            return "typical", None, None
        case "AT":
            return "level", None, None
        case "SENSITIVE":
            return "model", None, None
        case "IN" if in_header and before in ("NAME", "QUOTED") and "EACH" not in kinds[-4:]:
            return "model", None, None
        case "LABEL":
            return "column", None, None
        case "AS" if kinds[0] == "MODEL":
            return "format", None, None
    return None, None, None


def innermost_bracket(part: list[Token] | tuple[Token, ...]) -> int | None:
    """The index of the innermost bracket that is open after these tokens, or None."""
    opened: list[int] = []
    for i, token in enumerate(part):
        if token.type in CLOSER:
            opened.append(i)
        elif token.type in CLOSERS and opened:
            opened.pop()
    return opened[-1] if opened else None


def _in_brackets(part: list[Token], opener: int) -> tuple[Kind | None, str | None, str | None]:
    before = part[opener - 1] if opener else None
    if before is None:
        return None, None, None
    if part[opener].type == "LBRACE":
        outer = [t.type for t in part[:opener]]
        if before.type == "CATEGORY":
            return "category", None, name_of(part[1])
        if before.type == "IN" and "EACH" not in outer[-5:] and opener >= 4 and part[opener - 3].type == "DOT":
            return "category", name_of(part[opener - 4]), name_of(part[opener - 2])
        return "feature", None, None
    if before.type == "PREDICATE":
        return "point", None, None
    if before.type != "FUNCTION":
        return None, None, None
    inside = [t for t in part[opener + 1 :] if t.type == "COMMA"]
    return _argument(str(before), len(inside), part, opener)


def _argument(
    function: str, position: int, part: list[Token], opener: int
) -> tuple[Kind | None, str | None, str | None]:
    point = name_of(part[opener + 1]) if len(part) > opener + 1 else None
    match function, position:
        case "cavities", 0:
            return "data", None, None
        case "cavities", _:
            return "option", None, None
        case "likelihood" | "typicality", 1:
            return "data", None, None
        case "typicality", 2:
            return "typical", None, None
        case "prob" | "margin", 1:
            return "class", point, None
        case "distance", 1:
            return "target", None, None
        case "distance", 2:
            return "norm", None, None
    return "point", None, None


def _compared(part: list[Token]) -> tuple[Kind | None, str | None, str | None]:
    """The kind of a name after `=`: a category after `P.f =`, a class after `class(P) =`; None after `P =`."""
    kinds = [t.type for t in part]
    if kinds[-4:-2] == ["NAME", "DOT"] or kinds[-4:-2] == ["QUOTED", "DOT"]:
        return "category", name_of(part[-4]), name_of(part[-2])
    if kinds[-5:-3] == ["FUNCTION", "LPAR"] and kinds[-2] == "RPAR" and part[-5] == "class":
        return "class", name_of(part[-3]), None
    return None, None, None
