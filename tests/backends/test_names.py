"""Backends by name: found by their file, by an old name too, and with the versions that answers depend on."""

from __future__ import annotations

from pathlib import Path

import pytest

from treesens.backends.base import BACKENDS, get_backend, packages_of, solver_names
from treesens.extensions.sweeps.settings import Settings
from treesens.records.installation import package_versions, solver_packages
from treesens.records.journal import versions
from treesens.solve.options import Options


def test_every_file_of_solvers_is_a_backend_of_that_name() -> None:
    folder = Path(__file__).parents[2] / "src" / "treesens" / "backends" / "solvers"
    assert solver_names() == sorted(p.stem for p in folder.glob("*.py") if p.stem != "__init__")
    for name in solver_names():
        assert get_backend(name).name == name


def test_search_is_the_old_name_of_native() -> None:
    assert get_backend("search").name == "native"
    assert Options("search").backend == Settings("search").backend == "native"
    assert "search" not in BACKENDS.names()


@pytest.mark.parametrize("name", ["cpsat", "highs", "z3", "cbc", "scip", "gurobi"])
def test_answers_are_kept_under_the_version_of_their_solver(name: str) -> None:
    (package,) = packages_of(name)
    assert package in versions(name)
    assert package in solver_packages()
    if get_backend(name).available() is None:
        assert package_versions()[package] == versions(name)[package]
