"""Terminals, words, TextMate grammar and Pygments lexer say the same; the grammar has no conflicts."""

from __future__ import annotations

import json
import logging
import re
from pathlib import Path

import pytest

from treesens.grammar.parsing import terminals
from treesens.grammar.printing.textmate import textmate_json
from treesens.grammar.tree import words

DOCS = Path(__file__).parents[2] / "docs"
EXAMPLE = """# comment
model m from "m.json"
feature `capital-gain`: real in (0, inf]
query q:
  find a, b such that
    a = b except {sex, class}
    margin(a) - margin(b) >= 0.5
    a.class != none or not a.in <= -1e-3
  expect none
"""


def test_the_words_are_the_terminals() -> None:
    plain = {str(t.pattern.value) for t in terminals.build().terminals if t.pattern.type == "str"}
    assert {text for text in plain if text.isalpha()} == words.KEYWORDS


def test_the_grammar_is_lalr_1_without_conflicts(caplog: pytest.LogCaptureFixture) -> None:
    # Lark settles shift/reduce conflicts by itself and only tells its log.
    from lark import logger

    level = logger.level
    logger.setLevel(logging.DEBUG)
    try:
        with caplog.at_level(logging.DEBUG, logger.name):
            terminals.build(debug=True)
    finally:
        logger.setLevel(level)
    assert not [record for record in caplog.messages if "conflict" in record.lower()]


def test_the_textmate_grammar_is_up_to_date() -> None:
    committed = (DOCS / "sens.tmLanguage.json").read_text("utf-8")
    assert committed == textmate_json(), "run: python -m treesens.grammar.printing.textmate > docs/sens.tmLanguage.json"


def colours(text: str) -> dict[str, str]:
    """The scope of every token of the text, by the first TextMate pattern that matches."""
    patterns = [(re.compile(p["match"]), p["name"]) for p in json.loads(textmate_json())["patterns"]]
    found: dict[str, str] = {}
    for line in text.splitlines():
        at = 0
        while at < len(line):
            matches = ((pattern.match(line, at), scope) for pattern, scope in patterns)
            match, scope = next(((m, s) for m, s in matches if m and m.end() > at), (None, ""))
            if match:
                found.setdefault(match.group().strip(), scope)
            at = match.end() if match else at + 1
    return found


def test_what_editors_show() -> None:
    scopes = colours(EXAMPLE)
    assert scopes["# comment"].startswith("comment")
    assert scopes['"m.json"'].startswith("string")
    assert scopes["`capital-gain`"].startswith("variable.other.quoted")
    assert scopes["margin"].startswith("entity.name.function")
    assert scopes["query"].startswith("keyword.declaration")
    assert scopes["real"].startswith("storage.type")
    assert scopes["in"].startswith("keyword.operator.word")
    assert scopes["1e-3"].startswith("constant.numeric")
    assert scopes["none"].startswith("constant.language")
    assert colours("a.class <= 1")["class"].startswith("variable.other.member")


def test_pygments_finds_the_lexer_and_reads_everything() -> None:
    pytest.importorskip("pygments", reason="the lexer is for those who have Pygments")
    from pygments.lexers import get_lexer_by_name
    from pygments.token import Error

    lexer = get_lexer_by_name("sens")
    tokens = list(lexer.get_tokens(EXAMPLE))
    assert "".join(text for _, text in tokens) == EXAMPLE
    assert not [text for kind, text in tokens if kind is Error]
