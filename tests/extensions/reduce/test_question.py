"""Edits of the syntax trees of the examples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from treesens.extensions.reduce.question import Edit, deletions, edited, operands, places, shorter_values
from treesens.extensions.reduce.sens import Questions
from treesens.grammar.parsing.parser import parse, read
from treesens.grammar.printing.printer import to_text
from treesens.grammar.tree import ast

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*.sens"))


def all_edits(file: ast.File) -> Iterator[Edit]:
    for depth in range(1, 20):
        yield from deletions(file, depth)
        yield from operands(file, depth)
    yield from shorter_values(file)


def weight(file: ast.File) -> tuple[int, int, int]:
    """Nodes, ends of intervals that differ, and digits."""
    nodes = [node for _, node, _ in places(file)]
    wide = sum(isinstance(node, ast.Interval) and node.low != node.high for node in nodes)
    return len(nodes), wide, sum(len(f"{float(node.value):.12g}") for node in nodes if isinstance(node, ast.Number))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_edit_is_simpler_and_has_a_text_that_parses_or_none(path: Path) -> None:
    file = read(path)
    valid = 0
    for edit in all_edits(file):
        small = edited(file, dict([edit]))
        text = Questions("q.sens", {}, (), small, {}).text
        if text is not None:
            valid += 1
            assert text != to_text(file)
            assert weight(parse(text)) < weight(file), edit
    assert valid > len(file.declarations)


@pytest.mark.parametrize(
    ("text", "edits", "expected"),
    [
        ("a.x >= 1 or not a.y <= 2", operands, {"a.x >= 1", "not a.y <= 2", "a.x >= 1 or a.y <= 2"}),
        ("a.x >= 1 implies a.y <= 2", operands, {"a.x >= 1", "a.y <= 2"}),
        ("a.x + 2 * a.y <= 7", operands, {"a.x <= 7", "2 * a.y <= 7", "a.x + 2 <= 7", "a.x + a.y <= 7"}),
        ("a.x in {1, 2}", deletions, {"a.x in {1}", "a.x in {2}"}),
    ],
)
def test_edits_of_a_constraint(text: str, edits: Callable[[ast.File, int], list[Edit]], expected: set[str]) -> None:
    start = 'model m from "m.json"\n\nquery q:\n  find a such that\n    '
    file = parse(f"{start}{text}\n")
    found = set()
    for depth in range(3, 12):
        for edit in edits(file, depth):
            new = Questions("q.sens", {}, (), edited(file, dict([edit])), {}).text
            found |= {new.removeprefix(start).strip()} if new is not None else set()
    assert found == expected


def test_numbers_and_intervals_become_shorter() -> None:
    file = parse("feature x: real in [0.125, 30]\n")
    texts = {to_text(edited(file, dict([edit]))).partition(": real in ")[2].strip() for edit in shorter_values(file)}
    assert texts == {"[0.125, 0.125]", "[30, 30]", "[0, 30]", "[0.1, 30]", "[0.12, 30]", "[0.125, 0]"}
