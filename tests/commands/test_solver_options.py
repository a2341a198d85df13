"""Options of a solver in the name of a backend: checked against the solver's own list, applied, and recorded."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.commands.conftest import Ran
from treesens.backends.base import BACKENDS, Limits, Termination, get_backend, split_options
from treesens.backends.worker import check_options, solve_isolated
from treesens.errors import BackendError
from treesens.extensions.conformance import backends as conformance
from treesens.extensions.conformance.shapes import cases

STEERED = {
    "highs": (
        "highs{presolve=off,mip_heuristic_effort=0.5}",
        "presolve=bogus",
        "mip_max_nodes=0,mip_heuristic_effort=0",
    ),
    "cpsat": ("cpsat{linearization_level=2,search_branching=FIXED_SEARCH}", "linearization_level=x", ""),
    "z3": ("z3{arith.solver=6}", "arith.solver=x", "rlimit=1"),
    "scip": ("scip{presolving/maxrounds=0,branching/preferbinary=true}", "presolving/maxrounds=x", ""),
    "gurobi": ("gurobi{Presolve=0,MIPFocus=1}", "Presolve=99", ""),
    "cbc": ("cbc{cuts=0,preprocess=0}", "cuts=x", ""),
}
"""For each solver: options that it accepts, a value that it rejects, and options that keep it from answering."""


def available(name: str) -> None:
    if (reason := get_backend(name).available()) is not None:
        pytest.skip(reason)


@pytest.mark.parametrize("name", STEERED)
def test_a_steered_solver_is_conformant(name: str) -> None:
    """The kit compares every case with brute force."""
    available(name)
    spec = STEERED[name][0]
    check_options(spec)
    report = conformance.run(spec, only=("path", "equal-copies", "maximum"))
    assert report.ok, str(report)
    assert report.subject == spec == get_backend(spec).name


@pytest.mark.parametrize("name", STEERED)
def test_names_and_values_are_those_of_the_solver(name: str) -> None:
    available(name)
    option = split_options(STEERED[name][0])[1].popitem()[0]
    with pytest.raises(BackendError, match=f"{name} has no option `{option}y`"):
        check_options(f"{name}{{{option}y=1}}")
    with pytest.raises(BackendError, match=f"{name} rejects {STEERED[name][1]}"):
        check_options(f"{name}{{{STEERED[name][1]}}}")


@pytest.mark.parametrize("name", STEERED)
def test_what_treesens_sets_cannot_be_set(name: str) -> None:
    """Every reserved name is an option of the solver: a misspelt name would protect nothing."""
    available(name)
    spec = f"{name}{{{','.join(f'{reserved}=1' for reserved in get_backend(name).reserved)}}}"
    with pytest.raises(BackendError, match=f"of {name} is set by treesens"):
        check_options(spec)
    # Libraries of several solvers do not share a process.
    code = "import sys\nfrom treesens.backends.base import get_backend\nb = get_backend(sys.argv[1])\n"
    code += "print(*sorted(b.reserved - set(b.known_options(b.fresh()))))"
    done = subprocess.run([sys.executable, "-c", code, spec], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.mark.parametrize("name", [name for name in STEERED if STEERED[name][2]])
def test_options_reach_the_solver(name: str) -> None:
    """With a limit of its own, the solver gives up on a case that it decides without."""
    available(name)
    case = next(case for case in cases() if case.name == "maximum")
    ends = set()
    for spec in (name, f"{name}{{{STEERED[name][2]}}}"):
        backend = get_backend(spec)
        ends.add(solve_isolated(spec, backend.emit(case.module), Limits(20.0)).termination)
    assert len(ends) == 2
    assert Termination.OPTIMAL in ends


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("native{seed=1}", "`native` has no options"),
        ("highs{}", "not OPTION=VALUE"),
        ("highs{presolve}", "`{presolve}`, which is not OPTION=VALUE"),
        ("highs{presolve=off,presolve=on}", "repeats `presolve`"),
        ("cpsat{linearization_level=2 num_workers: 8}", "not OPTION=VALUE"),
        ("nosuch{a=1}", "unknown backend `nosuch`"),
    ],
)
def test_a_text_that_is_no_list_of_options(text: str, words: str) -> None:
    with pytest.raises(BackendError) as caught:
        check_options(text)
    assert words in str(caught.value)


def test_records_and_comparisons_name_the_options(treesens: Callable[..., Ran], sens_file: Path) -> None:
    ran = treesens("compare", sens_file, "-b", "highs{presolve=off,mip_max_nodes=1000},cpsat", "--json")
    assert ran.code == 0, ran.err
    assert '"highs{presolve=off,mip_max_nodes=1000}"' in ran.out
    ran = treesens("check", sens_file, "-b", "cpsat{linearization_level=2}", "--json")
    assert {record["backend"] for record in ran.record["results"]} == {"cpsat{linearization_level=2}"}
    ran = treesens("check", sens_file, "-b", "highs{presolv=off}")
    assert ran.code == 2
    assert "highs has no option `presolv`" in ran.err
    assert "did you mean `presolve`?" in ran.err


def test_every_solver_of_the_registry_is_in_the_table() -> None:
    assert {*STEERED, "native", "pb"} == set(BACKENDS.builtin)
