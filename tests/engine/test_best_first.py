"""Optimising goes best-first: the bound falls long before the end, and holds wherever a search is stopped."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.engine.test_bounds import best_of, bounds_of
from tests.engine.test_brute import check_point, with_bound
from tests.engine.tiny import Shape, brute_force, random_problem
from tests.trials import trials
from treesens.backends.native.problem import SearchProblem
from treesens.backends.native.solver import Method, Solver

SHAPES = {
    "pair": Shape(cells=5, trees=8),
    "rows of one class each": Shape(classes=3, trees=8, clauses=2),
    "domains": Shape(domains=True, clauses=4, sensitive=2, shared=2, cells=3),
}
STOPS = (1, 2, 3, 5, 9, 17)
LITTLE = 4_000_000
"""Bytes with which no node is put off for later: every dive goes on depth-first."""


@pytest.mark.parametrize("memory", [None, LITTLE])
@pytest.mark.parametrize("kind", ["swing", "unary", "slack"])
@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.sampled
def test_a_search_that_is_stopped_has_a_valid_bound(name: str, kind: str, memory: int | None) -> None:
    rng = np.random.default_rng([7, *map(ord, name + kind)])
    stopped = 0
    for trial in range(100):
        shape = SHAPES[name] if kind == "slack" else dataclasses.replace(SHAPES[name], objective=kind)
        problem = random_problem(rng, shape)
        answers = brute_force(problem)
        problem = bounds_of(rng, problem, answers)
        mode = "slack" if kind == "slack" else "objective"
        best = best_of(problem, answers, mode)
        method: Method = "messages" if trial % 2 else "both"
        for nodes in STOPS:
            solver = Solver(problem, mode=mode, seed=trial, audit=1, method=method, max_bytes=memory)  # type: ignore[arg-type]
            result = solver.run(20, node_limit=nodes)
            assert result.reason in {"", "nodes"}, result.fault
            check_point(problem, result)
            stopped += result.status == "open"
            if best is None:
                assert result.status in {"open", "infeasible"}
                continue
            assert result.status in {"open", "optimal"}
            assert result.upper is None or result.upper >= best
            assert result.level is None or not (result.slack >= 0).all() or result.level <= best
            if result.status == "optimal":
                assert result.level == best == result.upper
                break
    assert stopped > 10


def long_problem(objective: bool, seed: int = 4) -> SearchProblem:
    shape = Shape(shared=8, sensitive=2, cells=10, trees=40, depth=5, objective="swing" if objective else "")
    problem = random_problem(np.random.default_rng(seed), shape)
    return with_bound(problem, np.full(problem.constraints, -(10**6))) if objective else problem


@pytest.mark.parametrize("objective", [True, False])
def test_the_bound_falls_long_before_the_end(objective: bool) -> None:
    """Depth-first it stays at the root's until the second half of the root is begun."""
    problem = long_problem(objective)
    mode = "objective" if objective else "slack"
    whole = Solver(problem, mode=mode, method="messages").run(120)  # type: ignore[arg-type]
    assert whole.status == "optimal"
    assert whole.level is not None
    nodes = whole.statistics.nodes
    assert nodes > 60
    solver = Solver(problem, mode=mode, method="messages")  # type: ignore[arg-type]
    bounds = []
    while (result := solver.run(60, node_limit=max(1, nodes // 16))).status == "open":
        assert result.upper is not None
        assert result.upper >= whole.level
        bounds.append(result.upper)
    assert len(set(bounds[: len(bounds) // 2])) > len(bounds) // 4
    first, middle = bounds[0] - whole.level, bounds[len(bounds) // 2] - whole.level
    assert middle < first * 0.8


def test_a_row_without_terms_takes_no_weight_from_the_objective() -> None:
    """A row that always holds had a multiplier, which left the bound of the objective loose."""
    rng = np.random.default_rng(11)
    for trial in trials(40):
        problem = random_problem(rng, Shape(cells=5, trees=8, objective="unary"))
        keep = problem.coefficient_row == problem.constraints
        offset = np.concatenate(([0], np.cumsum(keep)))[problem.coefficient_offset]
        problem = dataclasses.replace(
            problem,
            coefficient_offset=offset.astype(np.int64),
            coefficient_row=problem.coefficient_row[keep],
            coefficient_value=problem.coefficient_value[keep],
            bound=np.zeros(problem.constraints, np.int64),
        )
        best = best_of(problem, brute_force(problem), "objective")
        result = Solver(problem, mode="objective", seed=trial, method="messages", audit=1).run(20)
        check_point(problem, result)
        assert result.status == "optimal"
        assert result.level == best == result.upper
