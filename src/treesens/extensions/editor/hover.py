"""What a name under the cursor stands for, as Markdown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from treesens.extensions.editor import names
from treesens.extensions.editor.context import innermost_bracket, name_of, points_of
from treesens.extensions.editor.reading import Reading, code_tokens
from treesens.extensions.editor.words import MEANINGS
from treesens.grammar.constructs.registry import functions
from treesens.grammar.parsing.layout import declarations, is_word
from treesens.grammar.printing.printer import to_text

if TYPE_CHECKING:
    from lark import Token


@dataclass(frozen=True)
class Card:
    """Markdown about the text between two character offsets."""

    markdown: str
    start: int
    end: int


def card(reading: Reading, offset: int) -> Card | None:
    """What is under the cursor, if anything is known of it."""
    code = code_tokens(reading.source.text)
    for part in declarations(code) if code else ():
        for index, token in enumerate(part):
            start, end = token.start_pos or 0, token.end_pos or 0
            if start <= offset < end or (offset == end and token.type in ("NAME", "QUOTED")):
                text = _about(reading, part, index) or _meaning(part, index)
                return Card(text, start, end) if text else None
    return None


def _meaning(part: list[Token], index: int) -> str | None:
    """What a word means, if it is none of those that stand for something named."""
    after_dot = index > 0 and part[index - 1].type == "DOT"
    is_name = part[index].type in ("NAME", "QUOTED", "STRING") or after_dot
    return None if is_name else MEANINGS.get(part[index].value.strip())


def _about(reading: Reading, part: list[Token], index: int) -> str | None:
    token, name = part[index], name_of(part[index])
    before = part[index - 1].type if index else ""
    decision = reading.found.decisions.get(name)
    if decision is not None and before not in ("DOT", "EXCEPT"):
        return f"```sens\n{to_text(decision)}\n```"
    if token.type in ("FUNCTION", "PREDICATE"):
        return f"`{functions()[name]}`" if name in functions() else None
    if token.type == "STRING" and before == "FROM":
        declared = name_of(part[1])
        return names.model_card(reading, declared) or names.data_card(reading, declared)
    if token.type not in ("NAME", "QUOTED") and not is_word(token):
        return None
    if before == "DOT":
        model = points_of(part).get(name_of(part[index - 2])) if index > 1 else None
        return names.feature_card(reading, name, model)
    if before in ("FEATURE", "EXCEPT") or (before == "TO" and "FROM" not in [t.type for t in part]):
        return names.feature_card(reading, name)
    opener = innermost_bracket(part[:index])
    if opener is not None and part[opener].type == "LBRACE" and part[opener - 1].type != "CATEGORY":
        return names.feature_card(reading, name)
    if is_word(token) and before not in ("MODEL", "DATA", "SENSITIVE", "NEAR", "OF", "IN", "FROM"):
        return None
    model = names.model_card(reading, name)
    data = names.data_card(reading, name)
    return data or model if before in ("DATA", "OF", "NEAR", "FROM", "LPAR", "COMMA") else model or data
