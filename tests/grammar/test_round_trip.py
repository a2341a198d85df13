"""Text to tree to text: nothing is lost, whatever the tree."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings

from tests.grammar import trees
from treesens.compiler.base.diagnostics import Span
from treesens.grammar.parsing.parser import parse
from treesens.grammar.printing.formatter import format_text
from treesens.grammar.printing.printer import to_text
from treesens.grammar.tree import ast

# Hypothesis warns that these strategies are long to print; nobody prints them.
pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")

# On failure hypothesis prints the tree and the seed that made it.
budget = settings(
    max_examples=150,
    deadline=None,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)


@budget
@given(trees.files)
def test_a_printed_tree_parses_to_itself(tree: ast.File) -> None:
    text = to_text(tree)
    assert parse(text) == tree
    assert to_text(parse(text)) == text


@budget
@given(trees.files)
def test_a_printed_tree_is_formatted_already(tree: ast.File) -> None:
    text = to_text(tree)
    assert format_text(text) == text


def _nodes(value: object) -> list[ast.Node]:
    if isinstance(value, tuple):
        return [node for item in value for node in _nodes(item)]
    if not isinstance(value, ast.Node):
        return []
    children = [getattr(value, field) for field in value.__match_args__]
    return [value, *(node for child in children for node in _nodes(child))]


@budget
@given(trees.files)
def test_every_node_has_a_place_inside_its_parent(tree: ast.File) -> None:
    text = to_text(tree)
    parsed = parse(text)
    for node in _nodes(parsed):
        assert node.span.source.text == text
        assert 0 <= node.span.start < node.span.end <= len(text)
        if isinstance(node, ast.Name):
            assert node.span.text.strip('`"') == node.text.strip('`"')
        for field in node.__match_args__:
            for child in _nodes(getattr(node, field)):
                assert node.span.start <= child.span.start <= child.span.end <= node.span.end or isinstance(
                    node,
                    ast.Point,  # `a, b in m`: the model of `a` stands behind `b`
                )


def test_numbers_are_exact() -> None:
    tree = parse("query q: find a such that a.x <= 0.1; a.y >= -1.5e-3; a.z = 1e22; a.w < .5")
    values = [c.right.value for c in tree.queries[0].body.constraints]  # type: ignore[union-attr]
    assert values == [Fraction(1, 10), Fraction(-3, 2000), Fraction(10**22), Fraction(1, 2)]


def test_spans_point_at_the_text() -> None:
    text = "query q:\n  find a, b such that\n    a = b except {sex, age}\n    prob(a) >= 0.6\n"
    equal, comparison = parse(text, "f.sens").queries[0].body.constraints  # type: ignore[union-attr]
    assert equal.span.text == "a = b except {sex, age}"
    assert isinstance(comparison, ast.Comparison)
    assert comparison.left.span.text == "prob(a)"
    assert comparison.left.span.place == "f.sens:4:5"


def test_trees_are_equal_wherever_they_stand() -> None:
    assert ast.Name("x", span=Span(parse("onehot {x}").span.source, 8, 9)) == ast.Name("x")
    assert ast.Name("x") != ast.Name("y")
    assert ast.ValueOf(ast.Name("a")) != ast.ClassOf(ast.Name("a"))
    assert len({ast.Name("x"), ast.Name("x")}) == 1


@pytest.mark.parametrize(
    "tree",
    [
        ast.Name("back`quote"),
        ast.Name(""),
        ast.Number(Fraction(1, 3)),
        ast.Model(ast.Name("m"), ast.Text('a"b')),
    ],
)
def test_what_no_text_can_hold_is_refused(tree: ast.Name | ast.Number | ast.Model) -> None:
    with pytest.raises(ValueError, match="no"):
        to_text(tree)
