"""The oracle shares nothing with what it judges: of treesens it imports the public interface alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PUBLIC = {"treesens", "treesens.python.api"}
CHANGE_METHODS = {"schedules.py", "in_parts.py"}
"""These change when a method begins to answer; other files judge the answers."""


def imported(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")
        elif isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in (
            "import_module",
            "__import__",
        ):
            yield "import_module"


def forbidden(source: str) -> list[str]:
    names = [n for n in imported(source) if n.split(".")[0] in ("treesens", "tests", "import_module", "")]
    return [n for n in names if n not in PUBLIC and n != "tests.oracle" and not n.startswith("tests.oracle.")]


@pytest.mark.parametrize("path", sorted(p.name for p in HERE.glob("*.py") if p.name not in CHANGE_METHODS))
def test_imports_the_public_interface_alone(path: str) -> None:
    assert forbidden((HERE / path).read_text()) == []


@pytest.mark.parametrize(
    "line",
    [
        "import treesens.compiler.query",
        "from treesens.data.tables import read_table",
        "from tests.binder.meaning import holds",
        "import importlib\nimportlib.import_module('treesens.summaries')",
    ],
)
def test_the_rule_sees_other_imports(line: str) -> None:
    assert forbidden(line)


def test_names_taken_from_the_package_are_public() -> None:
    taken = [
        alias.name
        for path in HERE.glob("*.py")
        if path.name not in CHANGE_METHODS
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module == "treesens"
        for alias in node.names
    ]
    import treesens

    assert set(taken) <= set(treesens.__all__)
