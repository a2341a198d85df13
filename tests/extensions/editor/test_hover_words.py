"""Every word of the language says what it means where the cursor stands on it."""

from __future__ import annotations

import pytest

from treesens.binder.declarations import Declarations
from treesens.compiler.base.diagnostics import Diagnostics, Source
from treesens.extensions.editor.hover import MEANINGS, card
from treesens.extensions.editor.reading import Reading
from treesens.grammar.parsing.parser import parse
from treesens.grammar.parsing.terminals import keywords
from treesens.grammar.tree import ast

TEXT = """model loan from "m.json"
data people from "people.csv" label "y"
feature age: integer in [0, 90] or missing
domain from people

query one:
  sensitive loan to age gap 0.1 near people using likelihood expect none
"""


def test_no_word_is_forgotten() -> None:
    assert set(MEANINGS) == set(keywords())


@pytest.mark.parametrize(
    ("word", "part"),
    [
        ("sensitive", "agree on all features but F"),
        ("gap", "0.5 + G or more, the other 0.5 - G or less"),
        ("near", "looks like the rows"),
        ("expect", "a test"),
        ("integer", "Whole numbers"),
        ("domain", "the table's values"),
    ],
)
def test_the_cursor_on_a_word(word: str, part: str) -> None:
    reading = Reading(Source("q.sens", TEXT), ast.File(()), Declarations(Diagnostics()))
    found = card(reading, TEXT.index(f"{word} ") + 1)
    assert found is not None
    assert part in found.markdown
    assert TEXT[found.start : found.end] == word


def test_the_name_of_a_decision_shows_its_cases() -> None:
    text = "decision credit of x: approve when prob(x) >= 0.7 else decline\n"
    text += "query q: find a such that decision(a, credit) = approve\n"
    file = parse(text)
    found = Declarations(
        Diagnostics(), decisions={d.name.text: d for d in file.declarations if isinstance(d, ast.Decision)}
    )
    shown = card(Reading(Source("q.sens", text), file, found), text.index("credit) =") + 1)
    assert shown is not None
    assert "approve when prob(x) >= 0.7" in shown.markdown
