"""One way to run a function in a process of its own: `runtime/child.py`, over its server of forks."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.extensions
SOURCES = Path(__file__).parents[2] / "src" / "treesens"
OURS = {"runtime/child.py", "runtime/fork_server.py"}
FOREIGN = {
    "backends/solvers/pb.py": "a pseudo-Boolean solver",
    "extensions/certify/command.py": "the checker, a distribution of its own",
    "extensions/reduce/predicates.py": "a predicate of the user",
    "extensions/studies/report/pdf.py": "a browser",
}
"""Modules that run programs of others."""
STARTS = re.compile(r"\b(subprocess|multiprocessing|loky|ProcessPoolExecutor|os\.fork|os\.exec\w*|posix_spawn)\b")


def test_one_module_starts_processes_for_functions_of_ours() -> None:
    found = set()
    for path in SOURCES.rglob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        code = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom | ast.Attribute)]
        if any(STARTS.search(ast.unparse(node)) for node in code):
            found.add(str(path.relative_to(SOURCES)))
    assert found == OURS | FOREIGN.keys()
