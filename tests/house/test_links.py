"""Links: code outside `links/` and the readers of formats names no concrete link, compares no name of one, tests no type."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from treesens import links
from treesens.extensions.formats.links import calibrated, several
from treesens.links import Link

pytestmark = pytest.mark.extensions

SOURCES = Path(__file__).parents[2] / "src" / "treesens"
PACKAGES = ("treesens.links", "treesens.extensions.formats.links")
READERS = ("links", "frontends", "extensions/formats")
LEARNT = {"extensions/measure/cell_forest.py"}
"""Builds a forest that is learnt from rows: the reader of its own format."""


def concrete() -> set[str]:
    """The names of all links of the package, but for the base class."""
    return set(links_of_the_package())


def links_of_the_package() -> dict[str, type[Link]]:
    """All links, by the names of their classes."""
    modules = (links, calibrated, several)
    every = (one for module in modules for one in vars(module).values() if isinstance(one, type))
    return {one.__name__: one for one in every if issubclass(one, Link) and one is not Link}


def sources() -> Iterator[Path]:
    for path in SOURCES.rglob("*.py"):
        inside = path.relative_to(SOURCES).as_posix()
        if not inside.startswith(tuple(f"{folder}/" for folder in READERS)) and inside not in LEARNT:
            yield path


def faults(tree: ast.AST) -> Iterator[str]:
    """Imports of concrete links, and comparisons of the name or the type of a link."""
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module), names=names) if module.startswith(PACKAGES):
                yield from (alias.name for alias in names if alias.name in concrete())
            case ast.Compare(left=left, comparators=others):
                texts = map(ast.unparse, (left, *others))
                yield from (text for text in texts if re.search(r"\blink\.name$|\btype\(.*\blink\)$", text))
            case ast.Call(func=ast.Name("isinstance"), args=[subject, _]) | ast.Match(subject=subject):
                if re.search(r"\blink(\.name)?$", text := ast.unparse(subject)):
                    yield text


def test_every_link_has_a_name_of_its_own() -> None:
    names = {link.name for link in links_of_the_package().values()}
    # `Compared` is a kind of vote, and both are called so.
    assert len(names) == len(concrete()) - 1


def test_code_asks_a_link_and_does_not_name_it() -> None:
    found = {str(path): list(faults(ast.parse(path.read_text("utf-8")))) for path in sources()}
    assert {path: names for path, names in found.items() if names} == {}


@pytest.mark.parametrize(
    "code",
    [
        "from treesens.links import Logistic",
        "from treesens.extensions.formats.links.several import Votes",
        "found = ensemble.link.name == 'logistic'",
        "found = isinstance(ensemble.link, Kind)",
        "match e.link:\n    case Kind(): pass",
        "found = type(e.link) is Kind",
    ],
)
def test_a_link_that_is_named_is_found(code: str) -> None:
    assert list(faults(ast.parse(code)))
