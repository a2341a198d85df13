"""One file turns facts into verdicts: results that say `found` or `none` are built in `solve/conclude.py` alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import treesens

pytestmark = pytest.mark.extensions
ROOT = Path(treesens.__file__).parent
SOURCES = ROOT if (ROOT / "solve").is_dir() else Path(__file__).parents[2] / "src" / "treesens"
JUDGE = "solve/conclude.py"


def verdicts_built(text: str) -> Iterator[int]:
    """Lines on which a verdict `found` or `none` becomes part of something that is built: an argument of a call, or a value
    that is assigned or returned. Comparisons, sets to compare with and tables that are keyed by verdicts are none.
    """
    for node in ast.walk(ast.parse(text)):
        values: list[ast.expr | None] = []
        if isinstance(node, ast.Call):
            values = [*node.args, *(keyword.value for keyword in node.keywords)]
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.Return | ast.NamedExpr):
            values = [node.value]
        for value in values:
            for part in _parts(value):
                if isinstance(part, ast.Attribute) and part.attr in {"FOUND", "NONE"}:
                    owner = part.value
                    if isinstance(owner, ast.Name | ast.Attribute) and ast.unparse(owner).endswith("Verdict"):
                        yield part.lineno


def _parts(value: ast.expr | None) -> Iterator[ast.expr]:
    """What a value may be: itself, the arms of a choice, the items of a tuple."""
    if isinstance(value, ast.IfExp):
        yield from _parts(value.body)
        yield from _parts(value.orelse)
    elif isinstance(value, ast.Tuple):
        for item in value.elts:
            yield from _parts(item)
    elif value is not None:
        yield value


def test_verdicts_are_built_in_one_file() -> None:
    found = {
        path.relative_to(SOURCES).as_posix()
        for path in SOURCES.rglob("*.py")
        if "Verdict" in path.read_text() and any(True for _ in verdicts_built(path.read_text()))
    }
    assert found == {JUDGE}


def test_the_note_of_the_numerical_band_is_spelled_once() -> None:
    words = "by less than the numerical band"
    spelled = [p.relative_to(SOURCES).as_posix() for p in (SOURCES / "solve").rglob("*.py") if words in p.read_text()]
    assert spelled == [JUDGE]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("Result(name, Verdict.FOUND)", [1]),
        ("x = 1\nreplace(r, verdict=Verdict.NONE)", [2]),
        ("v, w = (Verdict.NONE, a) if b else (Verdict.UNKNOWN, c)", [1]),
        ("if r.verdict is Verdict.FOUND:\n    pass", []),
        ("if {a, b} == {Verdict.FOUND, Verdict.NONE}:\n    pass", []),
    ],
)
def test_what_counts_as_built(text: str, lines: list[int]) -> None:
    assert list(verdicts_built(text)) == lines
