"""No circle of imports between the modules of src/treesens, imports inside functions included (those for types are not)."""

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "src"


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(SOURCES).with_suffix("").parts).removesuffix(".__init__")


def imported(node: ast.AST, known: set[str]) -> Iterator[str]:
    """Modules that a tree imports when it runs; relative imports are not used (ruff)."""
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        return
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        names = [f"{node.module}.{alias.name}" for alias in node.names]
        yield from (name if name in known else str(node.module) for name in names)
    for child in ast.iter_child_nodes(node):
        yield from imported(child, known)


def graph_of(sources: dict[str, str]) -> dict[str, set[str]]:
    graph = {}
    for name, source in sources.items():
        found = {m for m in imported(ast.parse(source), set(sources)) if m in sources}
        graph[name] = {
            m for m in found if m != name and not name.startswith(f"{m}.")
        }  # its own packages are there anyway
    return graph


def test_no_circle() -> None:
    sources = {name_of(path): path.read_text() for path in SOURCES.rglob("*.py")}
    assert len(sources) > 200
    TopologicalSorter(graph_of(sources)).prepare()


def test_a_circle_is_seen() -> None:
    sources = {"one": "def f():\n    from two import g", "two": "import one"}
    with pytest.raises(CycleError):
        TopologicalSorter(graph_of(sources)).prepare()
