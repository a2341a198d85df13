"""Several threads on one search: the answers of one thread, a bound that holds at every pause."""

from __future__ import annotations

import dataclasses
import threading
import time

import numpy as np
import pytest

from tests.engine.test_brute import check_point
from tests.engine.tiny import Shape, random_problem
from treesens.backends.native.problem import SearchProblem
from treesens.backends.native.solver import Solver


@pytest.fixture(scope="module")
def long() -> tuple[SearchProblem, int]:
    """Some seconds of search, and what is the most that can be reached."""
    problem = random_problem(np.random.default_rng(4), Shape(shared=8, sensitive=2, cells=10, trees=50, depth=5))
    alone = Solver(problem, mode="slack").run(120)
    assert alone.status == "optimal"
    assert alone.level is not None
    return problem, alone.level


def test_same_optimum_and_a_valid_bound_at_every_pause(long: tuple[SearchProblem, int]) -> None:
    problem, best = long
    solver = Solver(problem, mode="slack", threads=3)
    result = solver.run(0.02)
    for _ in range(5000):
        check_point(problem, result)
        assert result.level is None or result.level <= best
        assert result.upper is None or result.upper >= best
        if result.status != "open":
            break
        result = solver.run(0.02)
    assert result.status == "optimal"
    assert result.level == best == result.upper


@pytest.mark.parametrize(("offset", "status"), [(0, "witness"), (1, "infeasible")])
def test_same_verdicts(long: tuple[SearchProblem, int], offset: int, status: str) -> None:
    problem, best = long
    asked = dataclasses.replace(problem, bound=problem.bound + best + offset)
    result = Solver(asked, threads=3).run(120)
    assert result.status == status
    check_point(asked, result)


def test_a_stop_reaches_all_threads_and_the_search_goes_on(long: tuple[SearchProblem, int]) -> None:
    problem, best = long
    solver = Solver(problem, mode="slack", threads=3)
    timer = threading.Timer(0.3, solver.stop)
    timer.start()
    start = time.perf_counter()
    result = solver.run(600)
    timer.cancel()  # or it stops the next run
    timer.join()
    if result.status == "open":
        assert time.perf_counter() - start < 300
        assert result.upper is None or result.upper >= best
        result = solver.run(120)
    assert result.status == "optimal"
    assert result.level == best
    solver.reset(problem.bound + best + 1, mode="decide")
    assert solver.run(120).status == "infeasible"


def test_bad_number_of_threads(long: tuple[SearchProblem, int]) -> None:
    with pytest.raises(ValueError, match="threads"):
        Solver(long[0], threads=0)
