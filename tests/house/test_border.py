"""Nothing outside `extensions/` depends on it: no import, none under TYPE_CHECKING, and no name of a module in a string.

`builtin.py` names the extensions that come with treesens, and `__init__.pyi` has the types of what the package offers by name.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "src" / "treesens"
TABLE = "builtin.py"
PLACE = re.compile(r"treesens\.extensions\b")


def extensions_named(text: str) -> Iterator[str]:
    """Modules of extensions that a source imports, or names in a string that is no docstring."""
    tree = ast.parse(text)
    documents = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if PLACE.match(alias.name))
        elif isinstance(node, ast.ImportFrom):
            yield from (
                f"{node.module}.{alias.name}" for alias in node.names if PLACE.match(f"{node.module}.{alias.name}")
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documents:
            yield from [node.value] if PLACE.search(node.value) else []


def test_the_core_names_no_extension() -> None:
    core = [path for path in SOURCES.rglob("*.py") if path.relative_to(SOURCES).parts[0] != "extensions"]
    assert len(core) > 200
    found = {
        path.relative_to(SOURCES).as_posix(): sorted(extensions_named(path.read_text("utf-8")))
        for path in core
        if path.name != TABLE
    }
    assert {name: places for name, places in found.items() if places} == {}


def test_all_ways_to_name_one_are_found() -> None:
    text = '''
"""Not this: treesens.extensions.studies."""
from typing import TYPE_CHECKING
import treesens.extensions.repair
from treesens import extensions, errors
def late():
    """Nor this: treesens.extensions."""
    from treesens.extensions.editor import names
    return "treesens.extensions.sweeps.run:main"
if TYPE_CHECKING:
    from treesens.extensions.certify.claims import Part
'''
    assert sorted(extensions_named(text)) == [
        "treesens.extensions",
        "treesens.extensions.certify.claims.Part",
        "treesens.extensions.editor.names",
        "treesens.extensions.repair",
        "treesens.extensions.sweeps.run:main",
    ]
