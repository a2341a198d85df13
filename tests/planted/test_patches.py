"""Each planted error has its place in the sources and a finder that exists; `make mutations` runs the finders."""

from __future__ import annotations

import builtins
import py_compile
import symtable
from importlib.util import cache_from_source

import pytest

from tests.planted.finders import PROBLEMS, UNIT_TESTS, engine_sources
from tests.planted.patches import ROOT, Patch, StalePatch, all_patches, read

PATCHES = all_patches()


@pytest.mark.parametrize("patch", PATCHES, ids=[p.path.stem for p in PATCHES])
def test_every_error_can_be_planted(patch: Patch) -> None:
    honest, changed = (ROOT / patch.file).read_text(), patch.applied()
    assert changed != honest
    if not patch.in_engine:
        compile(changed, patch.file, "exec")
        # All names of the error are bound: a NameError would be found for the wrong reason.
        assert names(changed) - names(honest) <= set(dir(builtins))


@pytest.mark.parametrize("patch", PATCHES, ids=[p.path.stem for p in PATCHES])
def test_every_finder_exists(patch: Patch) -> None:
    name, _, rest = patch.finder.partition(" ")
    if name == UNIT_TESTS:
        assert not rest or any(f'"{rest}"' in path.read_text() for path in (ROOT / "tests" / "cpp").glob("test_*.cpp"))
    elif name == "oracle":
        assert "--seed" in rest
    elif name != PROBLEMS:
        file, _, test = patch.finder.partition("::")
        assert not test or f"def {test.partition('[')[0]}(" in (ROOT / file).read_text()


def test_names_of_errors_differ() -> None:
    assert len({patch.error for patch in PATCHES}) == len(PATCHES)


def test_a_stale_patch_names_its_remedy(tmp_path) -> None:
    text = PATCHES[0].path.read_text()
    first = next(line for line in text.splitlines() if line.startswith("-") and not line.startswith("---"))
    (tmp_path / "lines.patch").write_text(text.replace(first, first + " gone"))
    with pytest.raises(StalePatch, match=r"lines\.patch: .* has the patched lines 0 times; plant the error again"):
        read(tmp_path / "lines.patch").applied()
    (tmp_path / "file.patch").write_text(text.replace(PATCHES[0].file, "src/treesens/gone.py"))
    with pytest.raises(StalePatch, match=r"src/treesens/gone\.py is gone; change its path"):
        read(tmp_path / "file.patch").applied()
    (tmp_path / "head.patch").write_text(text.replace("Found by: ", ""))
    with pytest.raises(StalePatch, match=r"expected the lines `Error: \.\.` and `Found by: \.\.`"):
        read(tmp_path / "head.patch")


def test_a_copy_of_the_engine_is_made_of_sources_alone() -> None:
    """The folder of its tests holds Python modules, too, whose compiled files are no text."""
    compiled = ROOT / "tests" / "cpp" / "__init__.py"
    py_compile.compile(str(compiled))
    assert cache_from_source(str(compiled)) not in map(str, engine_sources())
    assert {"search.cpp", "search.hpp", "doctest.h", "CMakeLists.txt"} <= {path.name for path in engine_sources()}
    assert all(path.read_text() for path in engine_sources())


def names(text: str) -> set[str]:
    """The global names that the functions of a module read, and those that it binds."""
    table = symtable.symtable(text, "module", "exec")
    found = {name.get_name() for name in table.get_symbols()}
    inner = list(table.get_children())
    while inner:
        scope = inner.pop()
        inner += scope.get_children()
        found |= {name.get_name() for name in scope.get_symbols() if name.is_global()}
    return found
