"""The formatter changes spaces and nothing else, and is done after one go."""

from __future__ import annotations

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.grammar import trees
from treesens.compiler.base.diagnostics import DiagnosticsError
from treesens.grammar.parsing.parser import parse
from treesens.grammar.parsing.terminals import keywords, tokens
from treesens.grammar.printing.formatter import format_text
from treesens.grammar.printing.printer import to_text
from treesens.grammar.tree import ast

# Hypothesis warns that these strategies are long to print; nobody prints them.
pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")

BEFORE = """

# about the file


model   income from "m.json"   as xgboost # the model
  # still about the model
feature sex : category{Female=0,Male = 1}
onehot { f1 ,
f2 }
query q1: find a , b in income such that a = b except {sex}; prob(a)>=0.6 ;prob(b) <= .4
query q2:
   find a,
   b such that
    # why
    class(a) != class(b) #trailing
    a.credit <= 4*a.income+3 and (
    a.x<=3 or
    # or this
    a.y in {1, b} )
    margin(a)
    - margin(b)
       >= - 1
    -a.x <= -3 - 2
      # last
  maximize margin(a)
    -margin(b)
  expect   none
  # end of q2
for each f in features :
 query q3 :
  sensitive to f
  gap 0.1
# end of file

"""
AFTER = """# about the file

model income from "m.json" as xgboost  # the model
# still about the model
feature sex: category {Female = 0, Male = 1}
onehot {f1,
  f2}
query q1: find a, b in income such that a = b except {sex}; prob(a) >= 0.6; prob(b) <= .4
query q2:
  find a,
    b such that
    # why
    class(a) != class(b)  #trailing
    a.credit <= 4 * a.income + 3 and (
      a.x <= 3 or
      # or this
      a.y in {1, b})
    margin(a)
      - margin(b)
      >= -1
    -a.x <= -3 - 2
  # last
  maximize margin(a)
    - margin(b)
  expect none
  # end of q2
for each f in features:
  query q3:
    sensitive to f
      gap 0.1
# end of file
"""


def test_layout() -> None:
    assert format_text(BEFORE) == AFTER
    assert format_text(AFTER) == AFTER


def comments(text: str) -> list[str]:
    return [str(token).rstrip() for token in tokens(text) if token.type == "COMMENT"]


@settings(max_examples=150, deadline=None, print_blob=True, suppress_health_check=list(HealthCheck))
@given(trees.files, st.data())
def test_only_spaces_change(tree: ast.File, data: st.DataObject) -> None:
    """Spaces and comments are strewn over a text; the formatter keeps the comments and what the text says."""
    lines: list[str] = []
    for number, line in enumerate(to_text(tree).split("\n")):
        choice = data.draw(st.integers(0, 5))
        lines += ["", ""] if choice == 1 else [f"   # own {number}  "] if choice == 2 else []
        spaced = " " * data.draw(st.integers(0, 7)) + (re.sub(r"(?<=[^ ]) (?=[<>=*+(])", "   ", line))
        lines.append(spaced + (f"# after {number}" if choice == 3 else ""))
    text = "\n".join(lines)
    if parse(text) != tree:  # three spaces have landed in a name in backquotes
        tree = parse(text)
    formatted = format_text(text)
    assert parse(formatted) == tree
    assert comments(formatted) == comments(text)
    assert format_text(formatted) == formatted
    assert "\n\n\n" not in formatted
    assert not re.search(r"[ \t]+$", formatted, re.MULTILINE)


def test_a_text_that_does_not_parse_is_left_alone() -> None:
    with pytest.raises(DiagnosticsError, match="S012"):
        format_text("feature x real")


@pytest.mark.parametrize("word", sorted(keywords()))
def test_a_model_called_by_a_word_of_the_language_leaves_the_objective_in_its_place(word: str) -> None:
    query = ast.Query(
        ast.Name("q"),
        ast.Find(
            (ast.Point(ast.Name("a"), ast.Name(word)),),
            (),
            ast.Objective("maximize", ast.Margin(ast.Name("a"))),
            ast.Top(ast.Whole(3)),
        ),
    )
    text = to_text(ast.File((query,)))
    assert text.splitlines()[2:] == ["  maximize margin(a)", "  top 3"]
    assert format_text(text) == text
