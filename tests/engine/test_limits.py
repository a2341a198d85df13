"""Time, memory, node and stop limits end in an honest `open`: no verdict, valid bounds, and the search can go on."""

from __future__ import annotations

import _thread
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
def hard() -> SearchProblem:
    """Too large to be decided within the limits below: random deep trees have no structure to exploit."""
    rng = np.random.default_rng(0)
    shape = Shape(shared=14, sensitive=1, cells=30, trees=120, depth=6, magnitude=10**6)
    problem = random_problem(rng, shape)
    known = Solver(problem, mode="slack").run(1.5)
    assert known.level is not None
    assert known.upper is not None
    # Between what was found and what was excluded, nearer to what was found.
    return dataclasses.replace(problem, bound=np.full(2, (7 * known.level + known.upper) // 8, np.int64))


def test_time_limit(hard: SearchProblem) -> None:
    solver = Solver(hard)
    start = time.perf_counter()
    result = solver.run(0.1)
    assert time.perf_counter() - start < 60
    assert result.status == "open"
    assert result.reason == "time"
    check_point(hard, result)
    longer = solver.run(0.5)
    assert longer.level is not None
    assert result.level is not None
    assert longer.level >= result.level
    if longer.upper is not None:
        assert longer.upper >= longer.level


def test_zero_seconds(hard: SearchProblem) -> None:
    result = Solver(hard).run(0)
    assert result.status == "open"
    assert result.reason == "time"


def test_node_limit(hard: SearchProblem) -> None:
    result = Solver(hard).run(20, node_limit=3)
    assert result.status == "open"
    assert result.reason == "nodes"
    assert result.statistics.nodes <= 4


def test_memory_limit(hard: SearchProblem) -> None:
    fits = Solver(hard)
    fits.run(0)
    result = Solver(hard, max_bytes=fits.result().statistics.peak_bytes + 10_000).run(30)
    assert result.status == "open"
    assert result.reason == "memory"
    check_point(hard, result)
    with pytest.raises(MemoryError):
        Solver(hard, max_bytes=1000)


def test_stop_from_another_thread(hard: SearchProblem) -> None:
    solver = Solver(hard)
    threading.Timer(0.3, solver.stop).start()
    start = time.perf_counter()
    result = solver.run(300)
    assert time.perf_counter() - start < 150
    assert result.status == "open"
    assert result.reason in ("stopped", "time")


def test_interruption_passes_through_and_leaves_a_valid_state(hard: SearchProblem) -> None:
    solver = Solver(hard)
    threading.Timer(0.3, _thread.interrupt_main).start()
    with pytest.raises(KeyboardInterrupt):
        solver.run(60)
    result = solver.result()
    assert result.status == "open"
    check_point(hard, result)


def test_same_seed_same_search(hard: SearchProblem) -> None:
    first, second = (Solver(hard, seed=5).run(60, node_limit=2) for _ in range(2))
    assert first.level == second.level
    assert first.upper == second.upper
    assert (first.assignment == second.assignment).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"leaf_offset": np.zeros(3, np.int64)}, "leaf_offset|group_offset"),
        ({"literal_high": np.full(1, 99, np.int32)}, "differ in length"),
        ({"bound": np.full(2, 2**62, np.int64)}, "2\\^62"),
        ({"clause_offset": np.array([0, 1], np.int64)}, "clause_offset"),
        ({"hints": np.zeros((1, 2), np.int32)}, "hints"),
        ({"allowed": np.ones(3, np.uint8)}, "allowed"),
        (
            {
                "unary_row": np.array([9]),
                "unary_variable": np.array([0]),
                "unary_cell": np.array([0]),
                "unary_value": np.array([1]),
            },
            "row of a unary",
        ),
        ({"bound": np.array([0.5, 0])}, "does not fit"),
    ],
)
def test_bad_arrays_are_refused(changes: dict[str, np.ndarray], message: str) -> None:
    problem = random_problem(np.random.default_rng(0), Shape())
    with pytest.raises(ValueError, match=message):
        Solver(dataclasses.replace(problem, **changes))


def test_boxes_that_do_not_partition_are_refused() -> None:
    problem = random_problem(np.random.default_rng(0), Shape())
    high = problem.literal_high.copy()
    high[np.argmax(problem.literal_low < problem.literal_high)] -= 1
    with pytest.raises(ValueError, match=r"gap|overlap"):
        Solver(dataclasses.replace(problem, literal_high=high))
