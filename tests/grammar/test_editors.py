"""Terminals, words, TextMate grammar and Pygments lexer say the same; the grammar has no conflicts."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from treesens.extensions.editor.textmate import textmate_json
from treesens.grammar.constructs.construct import Construct
from treesens.grammar.constructs.registry import constructs
from treesens.grammar.parsing import terminals
from treesens.grammar.parsing.layout import may_end
from treesens.grammar.printing.print_terms import point_name_text
from treesens.grammar.tree import ast, words

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
    assert {text for text in plain if text.isalpha()} == terminals.keywords()
    assert terminals.keywords() > words.WITH_ROLE


@pytest.fixture
def with_between(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A construct more, whose grammar has a word of its own that nothing else names."""
    more = Construct((), lambda *_: pytest.fail("nothing is built"), 'between: _sum "between" _sum "and" _sum')
    every = {**constructs(), "between": more}
    monkeypatch.setattr(terminals, "constructs", lambda: every)
    caches = (terminals.keywords, terminals.operators)
    for cached in caches:
        cached.cache_clear()
    yield
    for cached in caches:
        cached.cache_clear()


@pytest.mark.usefixtures("with_between")
def test_a_word_of_a_construct_is_named_by_its_grammar_alone() -> None:
    assert "between" in terminals.keywords()
    assert colours("a.x between 1 and 2")["between"].startswith("keyword.operator.word")
    assert point_name_text(ast.Name("between")) == "`between`"
    lark = terminals.build()
    comparison = "query q: find a such that a.x between 1 and 2"
    assert [str(t.data) for t in lark.parse(comparison).find_data("between")] == ["between"]
    assert lark.parse('data between from "x.csv"').data == "data"
    token = next(t for t in terminals.tokens("between", 1))
    assert not may_end(token.update(type="BETWEEN"))


def test_without_the_construct_its_word_is_a_name() -> None:
    assert "between" not in terminals.keywords()
    assert point_name_text(ast.Name("between")) == "between"


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
    assert committed == textmate_json(), (
        "run: python -m treesens.extensions.editor.textmate > docs/sens.tmLanguage.json"
    )


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
