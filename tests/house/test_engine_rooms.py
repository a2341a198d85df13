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
    {"problem", "clauses"},
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


TREE_SEARCHES = {
    "prove/open_nodes": "TreeSearch",
    "prove/work_sharing": "TreeSearch",
    "prove/overlap_prover": "TreeSearch",
    "certify/certifier": "TreeSearch",
    "nearest/pair_search": "PairSearch",
    "nearest/row_groups": "PairSearch",
    "measure/share_search": "ShareSearch",
}
"""Files that keep boxes to come back to, and the search by branch and bound that they belong to."""


def files_with_open_boxes() -> set[str]:
    """The files that declare a container of boxes of cells, or of structures that hold one: a branch and bound has to put
    the other side of a cut somewhere."""
    sources = {path: re.sub(r"//.*", "", path.read_text()) for path in sorted(ENGINE.rglob("*.?pp"))}
    bodies = {path: re.findall(r"\bstruct (\w+) \{\n(.*?)\n *\};", text, re.DOTALL) for path, text in sources.items()}
    names = [name for found in bodies.values() for name, _ in found]
    ends = r"std::vector<Cell> low;\s*std::vector<Cell> high;"
    boxes = {path: {"Domains", "PairBox", "RangeBox"} for path in sources}  # by their names in each file
    for _ in range(4):
        for path, found in bodies.items():
            held = rf"^\s*(?:{'|'.join(boxes[path])}) \w+(?: = .*|\{{.*\}})?;"
            for name, body in found:
                if re.search(ends, body) or re.search(held, body, re.MULTILINE):
                    for other in sources if names.count(name) == 1 else [path]:
                        boxes[other].add(name)
    container = r"std::(?:vector|deque|list|array|stack|queue|priority_queue|map|unordered_map)"
    return {
        path.relative_to(ENGINE).with_suffix("").as_posix()
        for path, text in sources.items()
        if re.search(
            rf"{container}<(?:[\w:]+, )?(?:std::\w+<)*(?:{'|'.join(boxes[path])})\b[^;()&*]*> \w+(?:;| =|\{{)", text
        )
    }


def test_three_searches_branch_and_bound() -> None:
    assert files_with_open_boxes() == set(TREE_SEARCHES)
    assert len(set(TREE_SEARCHES.values())) <= 3
    text = "".join(path.read_text() for path in ENGINE.rglob("*.?pp"))
    assert sorted(re.findall(r"class (\w+) : public TreeSearch", text)) == ["Certifier", "OverlapProver", "Prover"]
