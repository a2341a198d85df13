"""Quick fixes: a message that says "did you mean `age`?" offers to write it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from treesens.grammar.printing.print_terms import name_text
from treesens.grammar.tree import ast

_MEANT: Final = re.compile(r"\bdid you mean `([^`\n]+)`\?")
_NAMED: Final = re.compile(r"`([^`\n]+)`")


@dataclass(frozen=True)
class Fix:
    """What to write in place of the characters from `start` to `end` of the marked text."""

    title: str
    start: int
    end: int
    text: str


def fix_of(message: str, marked: str) -> Fix | None:
    """The fix that a message about a marked text proposes: the name that it complains of, as the name that is near; None if it
    proposes none, or if the name is not in the marked text.
    """
    meant = _MEANT.search(message)
    if meant is None:
        return None
    for wrong in _NAMED.findall(message[: meant.start()]):
        place = _place(wrong, marked)
        if place is not None:
            text = name_text(ast.Name(meant[1]))
            return Fix(f"Write {text} for {wrong}", *place, text)
    return None


def _place(name: str, marked: str) -> tuple[int, int] | None:
    """Where a name is as a whole, with its backquotes if it has some."""
    for spelled in (f"`{name}`", name):
        found = re.search(rf"(?<!\w){re.escape(spelled)}(?!\w)", marked)
        if found is not None:
            return found.span()
    return None
