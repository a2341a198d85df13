"""The TextMate grammar of the language for editors, generated from the terminals of `sens.lark` and the roles in `words.py`.

`docs/sens.tmLanguage.json` is the text of `textmate_json()`; a test compares them, and `python -m
treesens.extensions.editor.textmate > docs/sens.tmLanguage.json` regenerates it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from treesens.grammar.constructs.registry import functions
from treesens.grammar.tree import words

SCOPE: Final = "source.sens"


def patterns(plugins: Sequence[str] = ()) -> tuple[tuple[str, str], ...]:
    """The scopes and regular expressions of all highlighted tokens, in matching order; `plugins` are predicates of plug-ins."""
    from treesens.grammar.parsing.terminals import build, operators

    terminals = {terminal.name: str(terminal.pattern.value) for terminal in build().terminals}
    return (
        ("comment.line.number-sign", terminals["COMMENT"]),
        ("string.quoted.double", terminals["STRING"]),
        ("variable.other.quoted", terminals["QUOTED"]),
        # A name after a dot is a feature, even if it looks like a word of the language.
        ("variable.other.member", r"(?<=\.)\s*" + terminals["NAME"]),
        ("constant.numeric", rf"(?<![\w.]){terminals['NUMBER']}"),
        ("entity.name.function", rf"\b({_either((*functions(), *plugins))})(?=[ \t]*\()"),
        ("storage.type", rf"\b({_either(words.TYPES)})\b"),
        ("keyword.declaration", rf"^\s*({_either(words.DECLARATIONS)})\b"),
        ("keyword.control", rf"\b({_either((*words.VERBS, *words.DECLARATIONS))})\b"),
        ("keyword.operator.word", rf"\b({_either(operators())})\b"),
        ("constant.language", rf"\b({_either((*words.CONSTANTS, *words.NORMS, *words.TYPICAL_WAYS))})\b"),
        ("keyword.other", rf"\b({_either(words.CONNECTIVES)})\b"),
        ("keyword.operator", rf"{terminals['ORDER']}|[-+*/=%]"),
        ("variable.other", terminals["NAME"]),
    )


def _either(texts: object) -> str:
    """An alternation, whose order does not matter, because `\\b` ends each word and no word is then a prefix of another."""
    assert isinstance(texts, tuple | dict | frozenset)
    return "|".join(sorted(texts))


def textmate_json() -> str:
    """The grammar as the JSON text that editors read."""
    grammar = {
        "$schema": "https://raw.githubusercontent.com/martinring/tmlanguage/master/tmlanguage.json",
        "name": "treesens",
        "scopeName": SCOPE,
        "fileTypes": ["sens"],
        "patterns": [{"name": f"{scope}.sens", "match": match} for scope, match in patterns()],
    }
    return json.dumps(grammar, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    print(textmate_json(), end="")
