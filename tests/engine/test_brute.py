"""The engine against brute force on thousands of tiny problems, with bounds on, just below and above the optimum."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.engine.tiny import Answers, Shape, brute_force, random_problem, rows_at, satisfies
from treesens.backends.native.problem import SearchProblem
from treesens.backends.native.solver import Method, SearchResult, Solver

SHAPES = {
    "one feature": Shape(),
    "large values": Shape(magnitude=10**15),
    "small values and ties": Shape(magnitude=2, trees=4),
    "two features": Shape(shared=2, sensitive=2, cells=3),
    "everything sensitive": Shape(shared=0, sensitive=2, cells=4),
    "domains": Shape(domains=True),
    "clauses": Shape(clauses=6),
    "clauses and domains": Shape(clauses=4, domains=True, sensitive=2, shared=2, cells=3),
    "unary constraints": Shape(constraint_unary=True),
    "three classes": Shape(classes=3, trees=6),
    "four classes with clauses": Shape(classes=4, trees=8, clauses=3),
    "deep": Shape(depth=6, cells=5, shared=2),
}


def check_point(problem: SearchProblem, result: SearchResult) -> None:
    if result.assignment is None:
        return
    point = result.assignment.astype(np.int64)[None]
    assert satisfies(problem, point).all()
    rows = rows_at(problem, point)[0]
    assert (rows[: problem.constraints] - problem.bound == result.slack).all()
    assert result.is_witness == bool((result.slack >= 0).all())
    if problem.objective:
        assert result.objective == rows[-1]


def with_bound(problem: SearchProblem, bound: np.ndarray) -> SearchProblem:
    return dataclasses.replace(problem, bound=bound.astype(np.int64))


def largest_level(answers: Answers, problem: SearchProblem) -> int | None:
    if not len(answers.rows):
        return None
    return int((answers.rows[:, : problem.constraints] - problem.bound).min(axis=1).max())


METHODS: tuple[Method, ...] = ("auto", "boxes", "both")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", SHAPES)
def test_decide(name: str, method: Method) -> None:
    rng = np.random.default_rng(sum(map(ord, name)))
    for trial in range(120):
        problem = random_problem(rng, SHAPES[name])
        answers = brute_force(problem)
        best = largest_level(answers, problem)
        if best is None:
            assert Solver(problem, seed=trial, method=method).run(30).status == "infeasible"
            continue
        for offset in (-1, 0, 1, 37):
            asked = with_bound(problem, problem.bound + best + offset)
            result = Solver(asked, seed=trial, method=method, audit=1).run(30)
            assert result.status == ("witness" if offset <= 0 else "infeasible")
            check_point(asked, result)
            assert result.upper is None or result.upper >= -offset or offset > 0
            if offset > 0:
                assert result.upper == -1


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", SHAPES)
def test_prover_alone_proves_optimality(name: str, method: Method) -> None:
    rng = np.random.default_rng(1 + sum(map(ord, name)))
    for trial in range(60):
        problem = random_problem(rng, SHAPES[name])
        answers = brute_force(problem)
        best = largest_level(answers, problem)
        result = Solver(problem, mode="slack", seed=trial, method=method, audit=1).run(30)
        check_point(problem, result)
        if best is None:
            assert result.status == "infeasible"
        else:
            assert result.status == "optimal"
            assert result.level == best
            assert result.upper == best


@pytest.mark.parametrize("kind", ["swing", "unary"])
@pytest.mark.parametrize("name", ["one feature", "two features", "clauses", "domains", "large values", "three classes"])
@pytest.mark.parametrize("method", METHODS)
def test_objective(name: str, kind: str, method: Method) -> None:
    rng = np.random.default_rng(2 + sum(map(ord, name + kind)))
    for trial in range(60):
        problem = random_problem(rng, dataclasses.replace(SHAPES[name], objective=kind))
        answers = brute_force(problem)
        level = largest_level(answers, problem)
        if level is None:
            continue
        problem = with_bound(problem, np.full(problem.constraints, level - int(rng.integers(0, 60))))
        feasible = (answers.rows[:, :-1] >= problem.bound).all(axis=1)
        best = int(answers.rows[feasible, -1].max())
        result = Solver(problem, mode="objective", seed=trial, method=method, audit=1).run(30)
        check_point(problem, result)
        assert result.status == "optimal"
        assert result.objective == best == result.level == result.upper
        impossible = with_bound(problem, np.full(problem.constraints, level + 1))
        assert Solver(impossible, mode="objective", seed=trial, method=method).run(30).status == "infeasible"


@pytest.mark.parametrize("method", METHODS)
def test_hard_rows_and_soft_rows(method: Method) -> None:
    rng = np.random.default_rng(5)
    for trial in range(100):
        problem = random_problem(rng, Shape(classes=3))
        answers = brute_force(problem)
        weight = np.array([1, 0, 1, 0], np.uint8)
        hard = answers.rows[:, weight == 0].min(axis=1)
        problem = dataclasses.replace(problem, slack_weight=weight, bound=np.full(4, int(np.median(hard))))
        slack = answers.rows - problem.bound
        fine = (slack[:, weight == 0] >= 0).all(axis=1)
        result = Solver(problem, mode="slack", seed=trial, method=method, audit=1).run(30)
        check_point(problem, result)
        assert result.status == "optimal"
        assert result.level == slack[fine][:, weight == 1].min(axis=1).max() == result.upper


@pytest.mark.parametrize("method", METHODS)
def test_reset_follows_the_bounds(method: Method) -> None:
    rng = np.random.default_rng(6)
    for trial in range(60):
        problem = random_problem(rng, Shape(cells=5, trees=7))
        best = largest_level(brute_force(problem), problem)
        assert best is not None
        solver = Solver(problem, seed=trial, method=method)
        for offset in rng.integers(-50, 50, 6):
            solver.reset(np.full(2, best + int(offset)))
            assert solver.run(30).status == ("witness" if offset <= 0 else "infeasible")
        solver.reset(np.zeros(2, np.int64), mode="slack")
        assert solver.run(30).level == best


def test_relative_gap_is_honest() -> None:
    rng = np.random.default_rng(7)
    for trial in range(60):
        problem = random_problem(rng, Shape(cells=5, trees=9))
        best = largest_level(brute_force(problem), problem)
        assert best is not None
        solver = Solver(problem, mode="slack", seed=trial)
        solver.set_gap(relative=0.2)
        result = solver.run(30)
        assert result.status == "optimal"
        assert result.level is not None
        assert result.upper is not None
        assert result.level <= best <= result.upper <= result.level + max(1, 0.2 * abs(result.level))
