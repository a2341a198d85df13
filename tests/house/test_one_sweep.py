"""One module sweeps rows: it alone tries the cells that rows may have, and maps the extremes back to values of a partner."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import treesens

pytestmark = pytest.mark.extensions
ROOT = Path(treesens.__file__).parent
SOURCES = ROOT if (ROOT / "solve").is_dir() else Path(__file__).parents[2] / "src" / "treesens"
ENUMERATE = {"product", "meshgrid", "unravel_index", "thinned"}
SWEEP = {"cells_of_rows", "flips"}


def ways_to_sweep(text: str) -> set[str]:
    """The ways in which a module sweeps rows itself: profiles of the engine, combinations of cells, and values of partners."""
    calls: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call):
            calls.add(ast.unparse(node.func).rpartition(".")[2])
    if "from itertools import" not in text:
        calls.discard("product")  # a function of another module
    ways = {
        "profiles": "flip_profiles" in calls,
        "combinations": bool(calls & ENUMERATE and calls & SWEEP),
        "partners": bool("pick_value" in calls and calls & SWEEP),
    }
    return {way for way, used in ways.items() if used}


def test_rows_are_swept_in_one_module() -> None:
    found = {
        path.relative_to(SOURCES).as_posix(): ways_to_sweep(path.read_text("utf-8")) for path in SOURCES.rglob("*.py")
    }
    swept = {name: ways for name, ways in found.items() if ways}
    assert swept == {"data/flips.py": {"profiles", "combinations", "partners"}}


@pytest.mark.parametrize(
    ("text", "ways"),
    [
        ("model.engine.flip_profiles(work)", {"profiles"}),
        (
            "from itertools import product\ncells_of_rows(grid, rows)\nfor way in product(*legal): pass",
            {"combinations"},
        ),
        ("found = flips(model, cells, [0], legal)\nnp.meshgrid(*legal)", {"combinations"}),
        ("found = flips(model, cells, [0], legal)\nx = pick_value(domain, grid, cell)", {"partners"}),
        ("pick_value(domain, grid, cell)\nnp.meshgrid(*options)", set()),
    ],
)
def test_what_counts_as_a_sweep(text: str, ways: set[str]) -> None:
    assert ways_to_sweep(text) == ways
