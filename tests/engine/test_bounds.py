"""Bounds of the engine against brute force at every pause, for all objectives, with every pruned node looked at again.

Fault 0: multipliers left their range, the bound became nonsense, and the node with the true optimum was pruned. A long run:
`TREESENS_BOUND_TRIALS=20000 TREESENS_BOUND_SEED=1 pytest -s tests/engine/test_bounds.py`; it prints its totals.
"""

from __future__ import annotations

import dataclasses
import os
from collections import Counter

import numpy as np
import pytest

from tests.engine.test_brute import check_point, with_bound
from tests.engine.tiny import Answers, Shape, brute_force, random_problem
from tests.trials import trials
from treesens.backends.native.problem import SearchProblem
from treesens.backends.native.solver import Solver

TRIALS = int(os.environ.get("TREESENS_BOUND_TRIALS", len(trials(150))))
SEED = int(os.environ.get("TREESENS_BOUND_SEED", "0"))
SHAPES = {
    "pair": Shape(cells=5, trees=6),
    "ladder": Shape(cells=6, trees=5, clauses=5, constraint_unary=True),
    "three classes": Shape(classes=3, trees=6, clauses=2),
    "four classes": Shape(classes=4, trees=8),
    "far apart": Shape(magnitude=10**11, classes=3, constraint_unary=True),
    "ties": Shape(magnitude=2, classes=3, trees=6),
    "domains": Shape(domains=True, clauses=4, sensitive=2, shared=2, cells=3),
}


def best_of(problem: SearchProblem, answers: Answers, mode: str) -> int | None:
    """The most that can be reached, by brute force; None where nothing satisfies the constraints."""
    slack = answers.rows[:, : problem.constraints] - problem.bound
    if mode == "slack":
        return int(slack.min(axis=1).max()) if len(slack) else None
    feasible = (slack >= 0).all(axis=1)
    return int(answers.rows[feasible, -1].max()) if feasible.any() else None


def at_scales(rng: np.random.Generator, problem: SearchProblem) -> SearchProblem:
    """Rows of very different sizes: the grid of one says nothing about another's."""
    scale = 10 ** rng.integers(0, 7, problem.constraints + problem.objective)
    return dataclasses.replace(
        problem,
        coefficient_value=problem.coefficient_value * scale[problem.coefficient_row],
        unary_value=problem.unary_value * scale[problem.unary_row],
    )


def bounds_of(rng: np.random.Generator, problem: SearchProblem, answers: Answers) -> SearchProblem:
    """Bounds that some points satisfy, few or many of them, and now and then none."""
    if not len(answers.rows):
        return problem
    share = rng.choice([0.02, 0.2, 0.6, 0.9])
    bound = np.quantile(answers.rows[:, : problem.constraints], share, axis=0, method="nearest")
    return with_bound(problem, bound)


def solved_in_pauses(
    problem: SearchProblem, mode: str, seed: int, best: int | None, threads: int, gap: float
) -> tuple[str, int]:
    """Runs a problem a few nodes at a time; the bound holds at every pause and never rises."""
    solver = Solver(problem, mode=mode, seed=seed, audit=1, threads=threads)  # type: ignore[arg-type]
    solver.set_gap(relative=gap)
    last = None
    for _ in range(2000):
        result = solver.run(20, node_limit=None if threads > 1 else 7)
        assert result.reason != "internal", result.fault
        check_point(problem, result)
        if result.upper is not None and best is not None:
            assert result.upper >= best
            assert last is None or result.upper <= last
            last = result.upper
        if result.status != "open":
            break
    if best is None:
        assert result.status == "infeasible"
    else:
        assert result.status == "optimal"
        assert result.level is not None
        assert result.upper is not None
        assert result.level <= best <= result.upper <= result.level + int(gap * abs(result.level))
    return result.status, result.audited


@pytest.mark.parametrize("kind", ["swing", "unary", "slack"])
@pytest.mark.parametrize("name", SHAPES)
def test_bounds_hold_at_every_pause(name: str, kind: str) -> None:
    rng = np.random.default_rng([SEED, *map(ord, name + kind)])
    seen: Counter[str] = Counter()
    for trial in range(TRIALS):
        shape = SHAPES[name] if kind == "slack" else dataclasses.replace(SHAPES[name], objective=kind)
        problem = at_scales(rng, random_problem(rng, shape))
        answers = brute_force(problem)
        problem = bounds_of(rng, problem, answers)
        mode = "slack" if kind == "slack" else "objective"
        best = best_of(problem, answers, mode)
        threads = 3 if trial % 10 == 9 else 1
        status, audited = solved_in_pauses(problem, mode, trial, best, threads, 0.3 if trial % 3 == 2 else 0.0)
        seen[status] += 1
        seen["nodes looked at again"] += audited
    print(f"\n{name}, {kind}: " + ", ".join(f"{count} {word}" for word, count in sorted(seen.items())))
    assert seen["nodes looked at again"] > 0


def test_the_largest_difference_is_closed_to_the_last_unit() -> None:
    """Messages are rounded, so that alone they count down single units of 2**-shift for ever."""
    rng = np.random.default_rng(8)
    shape = Shape(shared=6, cells=12, trees=40, depth=5, magnitude=2**40, objective="swing")
    for trial in range(5):
        problem = random_problem(rng, shape)
        problem = with_bound(problem, np.full(problem.constraints, -(2**50)))
        result = Solver(problem, mode="objective", seed=trial, audit=16).run(30)
        check_point(problem, result)
        assert result.status == "optimal"
        assert result.level == result.upper
        other = Solver(problem, mode="objective", seed=trial, method="messages")
        other.set_gap(relative=1e-4)
        second = other.run(30)
        assert second.status == "optimal"
        assert second.upper is not None
        assert second.level is not None
        assert second.level <= result.level <= second.upper
