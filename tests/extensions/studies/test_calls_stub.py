"""The type stub of the studies is that of their declarations."""

from __future__ import annotations

import ast
from pathlib import Path

import treesens
from tests.extensions.studies.calls_stub import STUB, formatted
from treesens.extensions.studies.python.study import call_name, calls


def test_the_stub_is_made_from_the_declarations() -> None:
    assert STUB.read_text("utf-8") == formatted(), "python -m tests.extensions.studies.calls_stub --write"


def test_the_stub_of_the_package_offers_what_the_package_offers() -> None:
    """Users see the types of `__init__.pyi`, and get the objects of `__init__.py`."""
    offered = {call_name(study) for study in calls()}
    for node in ast.parse(Path(treesens.__file__).with_suffix(".pyi").read_text("utf-8")).body:
        match node:
            case ast.ImportFrom(names=names):
                offered |= {name.asname for name in names if name.asname}
            case ast.Assign(targets=[ast.Name(name)]) | ast.AnnAssign(target=ast.Name(name)):
                offered.add(name)
    assert offered == set(treesens.__all__)
