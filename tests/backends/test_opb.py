"""OPB through a real solver behind the command line of the competitions: every fact against brute force, in both directions."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.questions import oracle, random_query
from treesens.backends.base import Limits, Termination, get_backend
from treesens.backends.solvers.pb import VARIABLE
from treesens.compiler.ir import Linear
from treesens.compiler.ir.evaluate import brute_force
from treesens.compiler.result import Verdict
from treesens.extensions.conformance.backends import run
from treesens.extensions.conformance.passes import Outcome
from treesens.extensions.conformance.shapes import cases
from treesens.solve.options import Options
from treesens.solve.question import answer

PROGRAM = Path(__file__).with_name("opb_program.py")


@pytest.fixture(autouse=True)
def solver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, shlex.join([sys.executable, str(PROGRAM)]))


def test_every_fact_is_that_of_brute_force() -> None:
    report = run("pb", isolated=False, seconds=60, only={case.name for case in cases()})
    assert report.ok, str(report)
    assert not report.of(Outcome.OPEN), str(report)


def test_one_unit_decides() -> None:
    """Rows on the best value that there is are satisfied, rows one unit of 2**-shift harder are not: nothing is rounded."""
    backend = get_backend("pb")
    asked = 0
    for case in cases():
        row = next(
            (op for op in case.module.ops if isinstance(op, Linear) and op.when == -1 and len(op.variables)), None
        )
        if row is None or not brute_force(case.module).solutions:
            continue
        for bound in range(row.bound, row.bound + 200):
            ops = tuple(replace(op, bound=bound) if op is row else op for op in case.module.ops)
            module = replace(case.module, ops=ops)
            if not brute_force(module).solutions:
                break
        else:
            continue
        last = replace(
            case.module, ops=tuple(replace(op, bound=bound - 1) if op is row else op for op in case.module.ops)
        )
        for tried, wanted in ((module, {Termination.INFEASIBLE}), (last, {Termination.SATISFIED, Termination.OPTIMAL})):
            assert backend.solve(backend.emit(tried), Limits(60)).termination in wanted, case.name
        asked += 1
    assert asked >= 5


@pytest.mark.parametrize("seed", range(700, 706))
def test_answers_to_questions(seed: int) -> None:
    """Through the worker process, with a guide where there is no objective: it is left out, so nothing is optimised."""
    query = random_query(np.random.default_rng(seed))
    some, best = oracle(query)
    result = answer(query, Options(backend="pb", pipeline="independent", time_limit=60))
    assert result.verdict is (Verdict.FOUND if some else Verdict.NONE), result.reason
    if best is not None:
        assert result.objective is not None
        assert result.objective.bound == pytest.approx(result.objective.value)
    if not some and result.backend == "pb":
        assert result.proof == "exact"


def test_a_solver_that_is_killed_or_broken_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = get_backend("pb")
    module = next(case.module for case in cases() if case.name == "facts-infeasible")
    monkeypatch.setenv(VARIABLE, shlex.join([sys.executable, "-c", "import sys; sys.exit(1)"]))
    assert backend.solve(backend.emit(module), Limits(20)).termination is Termination.UNKNOWN
    monkeypatch.setenv(VARIABLE, shlex.join([sys.executable, "-c", "import time; time.sleep(60)"]))
    assert backend.solve(backend.emit(module), Limits(1)).termination is Termination.TIME
