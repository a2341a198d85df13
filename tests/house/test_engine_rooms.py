"""The folders of the engine include each other downwards only, in the order of docs/engine.md."""

import re
from pathlib import Path

ENGINE = Path(__file__).parents[2] / "src" / "treesens" / "engine"
FLOORS = [
    {"bindings"},
    {"levels"},
    {"."},
    {"certify"},
    {"prove"},
    {"overlap"},
    {"bound", "local", "measure", "nearest", "regions"},
    {"problem"},
    {"ensemble"},
]
"""From the top; folders of one floor do not include each other. `.` is search.cpp."""


def floor_of(room: str) -> int:
    return next(i for i, rooms in enumerate(FLOORS) if room in rooms)


def test_includes_run_downwards() -> None:
    upward = []
    for path in sorted(ENGINE.rglob("*.?pp")):
        own = path.parent.relative_to(ENGINE).as_posix()
        for name in re.findall(r'#include "([^"]+)"', path.read_text()):
            other = Path(name).parent.as_posix()
            if other != own and floor_of(other) <= floor_of(own):
                upward.append(f"{path.relative_to(ENGINE)} -> {name}")
    assert upward == []


def test_every_room_of_the_engine_has_a_floor() -> None:
    rooms = {path.parent.relative_to(ENGINE).as_posix() for path in ENGINE.rglob("*.?pp")}
    assert rooms == set.union(*FLOORS)


def test_names_of_the_engine_are_imported_from_it() -> None:
    """`from treesens import _engine` would look like an import of the whole interface, which the package offers by name."""
    sources = [path for folder in ("src", "tests", "benchmarks") for path in (ENGINE.parents[2] / folder).rglob("*.py")]
    assert len(sources) > 400
    assert [
        path for path in sources if re.search(r"^\s*from treesens import _engine\b", path.read_text(), re.MULTILINE)
    ] == []


def test_trees_come_from_python_in_one_place() -> None:
    """Nothing but `CheckedTrees` takes the arrays of nodes: what is checked there is checked for all."""
    taking = [
        path.name for path in sorted((ENGINE / "bindings").glob("*.cpp")) if '"category_set"_a' in path.read_text()
    ]
    assert taking == ["trees.cpp"]
