"""A question has one budget: every step passes it on, and none starts a new limit."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import treesens

pytestmark = pytest.mark.extensions
ROOT = Path(treesens.__file__).parent
SOURCES = ROOT if (ROOT / "solve").is_dir() else Path(__file__).parents[2] / "src" / "treesens"
ROOMS = (
    "solve",
    "python",
    "commands",
    "extensions/certify",
    "extensions/measure",
    "extensions/sweeps",
    "extensions/vnnlib",
    "extensions/editor",
    "extensions/repair/command.py",
    "extensions/repair/swing_budget.py",
    "extensions/studies/rows.py",
    "extensions/studies/running.py",
    "extensions/studies/python",
    "extensions/studies/commands",
)
BEGUN = {
    # Where a question begins.
    "commands/check.py": 1,
    "extensions/sweeps/service.py": 1,
    "commands/compare.py": 1,
    "commands/modules.py": 1,
    "python/questions.py": 2,
    "extensions/vnnlib/property.py": 1,
    "extensions/sweeps/worker.py": 1,
    # `Options.budget` itself; without a budget from a caller; and the time that an answer leaves for its core.
    "solve/options.py": 1,
    "solve/question.py": 3,
    # A certificate made on its own, and that of a claim of a study: neither has the budget of a question.
    "extensions/certify/produce.py": 2,
    # The limit of a command that compiles.
    "commands/common.py": 1,
    "commands/opt.py": 1,
}


def budgets_begun(text: str) -> Iterator[int]:
    """Lines that begin a budget: calls of `Budget.of` and of `Options.budget`, under whatever name the options go."""
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Attribute):
            continue
        of_budget = node.attr == "of" and isinstance(node.value, ast.Name) and node.value.id == "Budget"
        owner = node.value.attr if isinstance(node.value, ast.Attribute) else getattr(node.value, "id", "")
        if of_budget or (node.attr == "budget" and owner in {"options", "mine", "plain", "bare", "settings"}):
            yield node.lineno


def test_a_budget_is_begun_where_a_question_begins_and_nowhere_else() -> None:
    found = {
        path.relative_to(SOURCES).as_posix(): len(list(budgets_begun(path.read_text("utf-8"))))
        for room in ROOMS
        for path in ((SOURCES / room).rglob("*.py") if (SOURCES / room).is_dir() else [SOURCES / room])
    }
    assert {name: count for name, count in found.items() if count} == BEGUN
