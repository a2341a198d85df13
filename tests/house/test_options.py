"""An option of `check` is declared in one place: what offers it, checks it, keeps it or sends it on is made from there.

The files that declare an option are counted by what an edit of the option would have to touch: its flag as a text (`--name`),
its name as a text among those of other options, and its name as a field or parameter among those of other options. A list of
options is a copy of the declaration as soon as it names `MANY` of them, and little else (a result has a backend and
certificates, too, and is no list of options); what names fewer uses them.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from treesens.compiler.base.option_kinds import Door, declared
from treesens.solve.options import CallOptions, Options

pytestmark = pytest.mark.extensions
SOURCES = Path(__file__).parents[2] / "src" / "treesens"
MANY = 3
MOST_FILES = 3
OPTIONS = {one.field: one for one in declared(Options, ~Door(0))}


def lists(tree: ast.AST) -> Iterator[set[str]]:
    """The names in every class, signature, and literal of a module."""
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(body=body):
                yield {one.target.id for one in body if isinstance(one, ast.AnnAssign) and _is_plain(one)}  # type: ignore[union-attr]
            case ast.arguments():
                yield {one.arg for one in (*node.posonlyargs, *node.args, *node.kwonlyargs)}
            case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
                yield {str(one.value) for one in parts if isinstance(one, ast.Constant)}
            case ast.Dict(keys=keys):
                yield {str(one.value) for one in keys if isinstance(one, ast.Constant)}


def _is_plain(field: ast.AnnAssign) -> bool:
    """True for a field of no study: a study declares options of its own, in the words of the shared ones."""
    made = isinstance(field.value, ast.Call) and getattr(field.value.func, "id", "") == "given"
    return isinstance(field.target, ast.Name) and not made


def is_copy(names: set[str]) -> bool:
    """True for names most of which are options."""
    return MANY <= len(names & OPTIONS.keys()) >= len(names) / 2


def flags(tree: ast.AST) -> set[str]:
    """The words of options that a module spells, without the prose around."""
    texts = (one.value for one in ast.walk(tree) if isinstance(one, ast.Constant) and isinstance(one.value, str))
    return {text for text in texts if re.fullmatch(r"--[a-z-]+", text)}


def declaring() -> dict[str, set[str]]:
    """The files that declare each option."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in sorted(SOURCES.rglob("*.py")):
        tree, place = ast.parse(path.read_text("utf-8")), str(path.relative_to(SOURCES))
        spelt, copies = flags(tree), [names for names in lists(tree) if is_copy(names)]
        for name, one in OPTIONS.items():
            if one.flag in spelt or any(name in names for names in copies):
                found[name].add(place)
    return found


def test_an_option_is_declared_in_at_most_three_files() -> None:
    found = declaring()
    for name in OPTIONS:
        found[name].add("solve/options.py")
    assert {name: places for name, places in found.items() if len(places) > MOST_FILES} == {}


@pytest.mark.parametrize("name", ["absolute_tolerance"])
def test_a_name_that_means_nothing_else_is_in_at_most_three_files(name: str) -> None:
    """By plain words; other names are words of the house, too (a backend, a seed), or of the results of a question."""
    paths = [path for kind in ("*.py", "*.pyi") for path in SOURCES.rglob(kind)]
    files = [path for path in paths if re.search(rf"\b{name}\b", path.read_text("utf-8"))]
    assert len(files) <= MOST_FILES, files


def test_the_types_for_checkers_are_those_of_the_declaration() -> None:
    types = {name: getattr(kind, "__forward_arg__", kind) for name, kind in CallOptions.__annotations__.items()}
    assert set(types) == {one.field for one in declared(Options, Door.PYTHON | Door.NAMED)}
    fields = {one.name: str(one.type) for one in Options.__dataclass_fields__.values()}
    wider = {"replay": "str", "certificates": "Path | None"}
    assert {name: wider.get(name, kind) for name, kind in types.items()} == {name: fields[name] for name in types}
