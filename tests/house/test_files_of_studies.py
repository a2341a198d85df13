"""A study is a declaration and a search: every other module of `extensions/studies` serves several studies or rooms."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from treesens.builtin import STUDIES

pytestmark = pytest.mark.extensions
ROOM = Path(__file__).parents[2] / "src" / "treesens" / "extensions" / "studies"
PACKAGE = "treesens.extensions.studies"
NAMES = sorted(name for name in STUDIES.names() if (ROOM / f"{name}.py").is_file())
SHARED = {
    "assumed": "choices left to defaults",
    "claims": "claims by kinds of evidence",
    "columns": "columns of tables and frames",
    "contributions": "TreeSHAP, for `why` and `reasons`",
    "decisions": "what a model decides",
    "events": "the two sides of a pair",
    "evidence": "questions with results",
    "largest": "what is known of a largest value",
    "limits": "permitted changes, read by commands and calls",
    "losses": "losses on labelled rows, for `diff` and `repair`",
    "optima": "the searches for optima",
    "prices": "what a new version costs, for `diff` and `repair`",
    "questions": "questions, bound once",
    "recognised": "facts that `audit` and `init` recognise",
    "registry": "the studies by name",
    "required": "what is left with --require-certificate",
    "rows": "which rows of a table are which side",
    "running": "threads, replay and certificates of studies",
    "sens_file": "domains and decisions from files",
    "shared_options": "options of several studies",
    "shared_records": "parts of several records",
    "study": "the declaration",
}
"""Modules that are abilities, not studies, and what each is."""


def imports(path: Path) -> set[str]:
    """The modules of the room that a module imports or names as a place, at any level of the room."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            found |= {node.module, *(f"{node.module}.{one.name}" for one in node.names)}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith(f"{PACKAGE}."):
            found.add(node.value.partition(":")[0])
    return {name.removeprefix(f"{PACKAGE}.") for name in found if name.startswith(f"{PACKAGE}.")}


def owner(module: str) -> str:
    """The study whose file a module is; the module itself if it is shared, or the room of another kind of work."""
    name = module.removesuffix("_search")
    return name if name in NAMES else module.partition(".")[0]


def name_of(path: Path) -> str:
    """A module of the room by its name there, and one of another extension or of the core by that of its room."""
    if path.is_relative_to(ROOM):
        return path.relative_to(ROOM).with_suffix("").as_posix().replace("/", ".")
    return f"{path.parent.name}.outside"


GRAPH: dict[str, set[str]] = {}
for source in sorted(ROOM.parents[1].rglob("*.py")):
    if source.name != "__init__.py":
        GRAPH.setdefault(name_of(source), set()).update(imports(source))
INSIDE = {name for name in GRAPH if not name.endswith(".outside")}


def test_the_studies_are_those_of_the_table() -> None:
    assert len(NAMES) == 12


@pytest.mark.parametrize("name", NAMES)
def test_a_study_has_at_most_two_files(name: str) -> None:
    mine = {module for module in INSIDE if owner(module) == name}
    only = {module for module in SHARED if users(module) == {name}}
    assert len(mine | only) <= 2, sorted(mine | only)


def users(module: str) -> set[str]:
    """The studies, shared modules and rooms that import a module, its own file left out."""
    return {owner(other) for other, named in GRAPH.items() if module in named} - {module}


def test_every_other_module_is_shared_and_says_what_it_is() -> None:
    plain = {module for module in INSIDE if "." not in module}
    assert {module for module in plain if owner(module) not in NAMES} == set(SHARED)
