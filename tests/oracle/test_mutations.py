"""The planted errors still have their places in the sources; `make mutations` says whether each is found."""

from __future__ import annotations

import builtins
import py_compile
import re
import symtable
from importlib.util import cache_from_source
from pathlib import Path

import pytest

from tests.oracle.engine_mutations import ENGINE_MUTATIONS, ROOT, sources_of_engine
from tests.oracle.mutations import ALL, source_of

IN_PYTHON = [m for m in ALL if m not in ENGINE_MUTATIONS]


@pytest.mark.parametrize("mutation", IN_PYTHON, ids=[m.name for m in IN_PYTHON])
def test_every_error_can_be_planted(mutation) -> None:
    text = source_of(mutation).read_text()
    changed, times = re.subn(mutation.pattern, mutation.replacement, text, count=1)
    assert times == 1
    compile(changed, mutation.file, "exec")
    # What the error names is there: a NameError would be found for the wrong reason.
    assert _names(changed) - _names(text) <= set(dir(builtins)), "a name that the module does not have"


@pytest.mark.parametrize("mutation", ENGINE_MUTATIONS, ids=[m.name for m in ENGINE_MUTATIONS])
def test_every_error_of_the_engine_has_its_place(mutation) -> None:
    text = source_of(mutation).read_text()
    changed, times = re.subn(mutation.pattern, mutation.replacement, text, count=1)
    assert times == 1
    assert changed != text


def test_a_copy_of_the_engine_is_made_of_sources_alone() -> None:
    """The folder of its tests holds Python modules, too, whose compiled files are no text."""
    compiled = Path(cache_from_source(str(ROOT / "tests" / "cpp" / "__init__.py")))
    py_compile.compile(str(ROOT / "tests" / "cpp" / "__init__.py"))
    assert compiled.exists()
    sources = sources_of_engine()
    assert {"search.cpp", "search.hpp", "doctest.h", "CMakeLists.txt"} <= {path.name for path in sources}
    assert all(path.read_text() for path in sources)


def _names(text: str) -> set[str]:
    """The global names that the functions of a module read, and those that it binds."""
    table = symtable.symtable(text, "module", "exec")
    found = {name.get_name() for name in table.get_symbols()}
    inner = list(table.get_children())
    while inner:
        scope = inner.pop()
        inner += scope.get_children()
        found |= {name.get_name() for name in scope.get_symbols() if name.is_global()}
    return found
