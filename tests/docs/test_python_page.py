"""The code of docs/python.md and docs/pipelines.md prints what stands below it; a table says the same in two languages."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

import treesens as ts
from treesens.grammar.parsing.parser import parse
from treesens.grammar.printing.print_terms import formula_text

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "python.md").read_text("utf-8")


@pytest.mark.parametrize(("page", "count"), [("python", 6), ("pipelines", 2)])
def test_the_code_prints_what_the_page_shows(page: str, count: int) -> None:
    text = (DOCS / f"{page}.md").read_text("utf-8")
    blocks = re.findall(r"^```(python|text)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    space: dict[str, Any] = {}
    shown = 0
    for (kind, code), (following, text) in zip(blocks, [*blocks[1:], ("", "")], strict=True):
        if kind == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(code, space)
            assert following == "text"
            assert out.getvalue().rstrip() == text.rstrip()
            shown += 1
    assert shown == count


def rows() -> list[tuple[str, str]]:
    table = re.findall(r"^\| (`.*?) \| (`.*?) \|$", PAGE, re.MULTILINE)
    assert len(table) >= 16
    return table


def codes(cell: str) -> list[str]:
    return [code.strip() for code in re.findall(r"``(.+?) ``|`([^`]+)`", cell) for code in code if code]


@pytest.mark.parametrize(("text", "python"), rows(), ids=lambda cell: cell[:30])
def test_the_table_says_the_same_twice(text: str, python: str) -> None:
    a, b = ts.query.points("a", "b")
    start = ts.query.find(a, b).such_that(a["x"] >= 1)
    space = {"ts": ts, "a": a, "b": b, "A": a["p"] >= 1, "B": b["q"] >= 1, "any_of": ts.query.any_of}
    for written, code in zip(codes(text), codes(python), strict=False):
        if ".." in code:
            continue
        built = eval(f"start{code}" if code.startswith(".") else code.replace("\\|", "|"), space | {"start": start})
        said = written.replace("A", "a.p >= 1").replace("B", "b.q >= 1") if re.search(r"\bA\b", written) else written
        if isinstance(built, ts.query.Constraint):
            (expected,) = parse(f"query q: find a, b such that {said}").queries[0].body.constraints  # type: ignore[union-attr]
            assert built.node == expected
            assert str(built) == formula_text(expected)
        elif isinstance(built, ts.query.Declaration):
            assert ts.query.file(built).node == parse(said)
        elif isinstance(built, ts.query.Question):
            assert said.rstrip(":") in str(built)
        elif isinstance(built, ts.query.Quantity):
            assert str(built) == said
        else:  # a question without constraints
            assert said in str(built.such_that(a["x"] >= 1))
