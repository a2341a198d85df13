"""An objective that shares no tree with the rows beside it, and the time that it takes to set up its prover."""

from __future__ import annotations

import dataclasses
import threading
import time

import numpy as np
import pytest

from tests.engine.test_bounds import best_of, bounds_of
from tests.engine.test_brute import check_point, with_bound
from tests.engine.tiny import Shape, brute_force, random_problem
from tests.oracle.schedules import scheduled
from tests.trials import at_night, trials
from treesens.backends.native import solver as solver_module
from treesens.backends.native.problem import SearchProblem
from treesens.backends.native.solver import Solver
from treesens.compiler.base.budget import Budget


@pytest.mark.parametrize("name", ["", "weak bounds", "large factors", "parts"])
def test_optima_in_another_unit_than_the_rows(name: str) -> None:
    """The objective is a thousand times smaller than the scores, or larger."""
    rng = np.random.default_rng([34, *map(ord, name)])
    steps = 0
    with scheduled(name):
        for trial in trials(60):
            problem = random_problem(rng, Shape(cells=5, trees=8, objective="unary"))
            unit = 10 ** int(rng.integers(0, 7))
            of_objective = problem.unary_row == problem.constraints
            if trial % 2:
                problem = dataclasses.replace(
                    problem, unary_value=np.where(of_objective, problem.unary_value * unit, problem.unary_value)
                )
            else:
                problem = dataclasses.replace(problem, coefficient_value=problem.coefficient_value * unit)
            answers = brute_force(problem)
            problem = bounds_of(rng, problem, answers)
            best = best_of(problem, answers, "objective")
            solver = Solver(problem, mode="objective", seed=trial, audit=1, method="messages")
            result = solver.run(30)
            assert not result.fault
            check_point(problem, result)
            assert result.status == ("infeasible" if best is None else "optimal")
            assert best is None or result.level == best == result.upper
            steps += result.statistics.multiplier_steps
    assert steps > 60


def many_trees() -> SearchProblem:
    """Which trees share a factor takes some tenths of a second to choose."""
    shape = Shape(shared=12, sensitive=1, cells=30, trees=200, depth=5, objective="unary")
    problem = random_problem(np.random.default_rng(4), shape)
    return with_bound(problem, np.full(problem.constraints, -1000))


def test_trees_share_factors_however_short_the_runs_before_were() -> None:
    """The time of each of the short runs ends while the factors are chosen."""
    problem = many_trees()
    alone = Solver(problem, mode="objective", together=0).run(60)
    whole = Solver(problem, mode="objective").run(60)
    assert whole.statistics.entries > alone.statistics.entries
    solver = Solver(problem, mode="objective")
    for _ in trials(200):
        solver.run(0.003)
    assert solver.run(60).statistics.entries == whole.statistics.entries


def test_a_run_within_a_budget_ends_when_somebody_asks() -> None:
    rng = np.random.default_rng(0)
    shape = Shape(shared=14, sensitive=1, cells=30, trees=120, depth=6, magnitude=10**6)
    solver = Solver(random_problem(rng, shape), mode="slack")
    stop = threading.Event()
    timer = threading.Timer(0.3, stop.set)
    start = time.perf_counter()
    timer.start()
    result = solver.run_within(Budget.of(300, stop))
    assert time.perf_counter() - start < 150
    assert result.status == "open"
    assert result.reason in {"stopped", "time"}
    assert solver.run_within(Budget.of(0.2)).reason == "time", "the event of another budget no longer counts"
    assert solver.run_within(Budget.of(60, stop)).status == "open", "nothing is left of a budget that was stopped"


@pytest.mark.parametrize("cells", [12, at_night(20)])
def test_a_moment_before_a_long_run_changes_no_search(monkeypatch: pytest.MonkeyPatch, cells: int) -> None:
    """Wherever the moment ends, the nodes are those of one run."""
    shape = Shape(shared=16, sensitive=1, cells=cells, trees=60, depth=4, objective="unary", magnitude=10**6)
    problem = random_problem(np.random.default_rng(8), shape)
    whole = Solver(problem, mode="slack").run(60)
    assert whole.status == "optimal"
    assert whole.statistics.nodes > 500
    # However busy the machine is, nothing is broken off here.
    monkeypatch.setattr(solver_module, "PAUSE", 60)
    for moment in np.linspace(0.001, 0.06, 5):
        monkeypatch.setattr(solver_module, "MOMENT", float(moment))
        within = Solver(problem, mode="slack").run_within(Budget.of(60))
        assert within.statistics.nodes == whole.statistics.nodes
        assert within.statistics.restarts == whole.statistics.restarts
        assert within.level == whole.level
