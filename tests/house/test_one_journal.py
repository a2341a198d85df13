"""One journal: one module opens files of SQLite and knows their tables, and every answer that is kept is one of its entries."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.extensions
SOURCES = Path(__file__).parents[2] / "src" / "treesens"
JOURNAL = "records/journal.py"


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(SOURCES.rglob("*.py")):
        yield str(path.relative_to(SOURCES)), ast.parse(path.read_text("utf-8"))


def classes(tree: ast.Module) -> Iterator[ast.ClassDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))


def test_one_module_stores_answers() -> None:
    imports = {
        place
        for place, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom) and "sqlite3" in ast.dump(node)
    }
    statements = {
        place
        for place, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and re.match(r"\s*(INSERT|SELECT|CREATE TABLE) ", str(node.value))
    }
    assert imports == statements == {JOURNAL}


def test_one_class_is_a_journal() -> None:
    """Outside of it there are its users alone: the codec of `check`, and the protocol by which studies see it."""
    named = {(place, one.name) for place, tree in modules() for one in classes(tree) if "Journal" in one.name}
    assert named == {(JOURNAL, "Journal")}
    keeping = {
        (place, one.name)
        for place, tree in modules()
        for one in classes(tree)
        if {"known", "keep"} <= {part.name for part in one.body if isinstance(part, ast.FunctionDef)}
    }
    users = {("commands/check_journal.py", "AnswerMemory"), ("extensions/studies/running.py", "Memory")}
    assert keeping - users == {(JOURNAL, "Journal"), (JOURNAL, "KeptAnswers")}
