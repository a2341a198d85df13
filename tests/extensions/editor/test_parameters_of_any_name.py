"""A parameter of `for each` may have any name, in backquotes if it is not plain, as the language reference says of all names.

Printed questions and renamed parameters had been texts that do not parse.
"""

from __future__ import annotations

import pytest

import treesens as ts
from treesens.compiler.base.diagnostics import Diagnostics, Source
from treesens.extensions.editor.occurrences import occurrences, renamed
from treesens.grammar.parsing.parser import parse_source
from treesens.grammar.tree import ast

pytestmark = pytest.mark.fault

NAMES = ["f", "find", "a b", "of", "2nd", "in", "x;y", "é 😀", "features"]
TEXT = """query q:
  for each f, g in pairs:
    find a, b in m such that
      a = b except {f, g}
      a.f >= 1
"""


def parsed(text: str) -> ast.File:
    found = Diagnostics()
    file = parse_source(Source("q.sens", text), found)
    assert not found.errors, [error.message for error in found.errors]
    assert file is not None
    return file


@pytest.mark.parametrize("name", NAMES)
def test_questions_with_such_a_parameter_print_as_they_are_read(name: str) -> None:
    a, b = ts.query.points("a", "b")
    question = (
        ts.query.find(a, b).such_that(a == b.except_(name), a.prob() >= 0.6).named("q").for_each(name, ["x", "y"])
    )
    assert parsed(str(question)).queries == (question.node,)


@pytest.mark.parametrize("name", NAMES)
def test_a_renamed_parameter_is_the_same_question(name: str) -> None:
    file = parsed(TEXT)
    found = occurrences(file)
    number = next(n for n, one in enumerate(found) if one.role == "parameter" and one.name.text == "f")
    if name == "features":
        name = "feature"
    text = TEXT
    for (start, end), new in sorted(renamed(file, found[number], name).items(), reverse=True):
        text = text[:start] + new + text[end:]
    again = parsed(text)
    sweep = again.queries[0].sweeps[0]
    assert [parameter.text for parameter in sweep.parameters] == [name, "g"]
    back = text
    for (start, end), new in sorted(renamed(again, occurrences(again)[number], "f").items(), reverse=True):
        back = back[:start] + new + back[end:]
    assert back == TEXT
