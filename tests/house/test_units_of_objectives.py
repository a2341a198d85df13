"""The value of an objective's form has no unit and no offset: what shows a value to people takes `solve.bounds.value_of`."""

from __future__ import annotations

import ast
from pathlib import Path

import treesens

ROOT = Path(treesens.__file__).parent
SOURCES = ROOT if (ROOT / "solve").is_dir() else Path(__file__).parents[2] / "src" / "treesens"
FORM = "objective_form_value"
SEARCHES = ("compiler", "values", "solve", "extensions/methods", "extensions/answers")
"""Rooms that compare forms with each other and with bounds of forms."""


def test_forms_are_not_shown() -> None:
    users = {
        path.relative_to(SOURCES).as_posix()
        for path in SOURCES.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Name | ast.alias) and FORM in (getattr(node, "id", ""), getattr(node, "name", ""))
    }
    assert users, "the name has changed"
    assert {name for name in users if not name.startswith(SEARCHES)} == set()
