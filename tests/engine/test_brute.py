"""The engine against brute force on thousands of tiny problems, with bounds on, just below and above the optimum."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.engine.tiny import Answers, Shape, brute_force, random_problem, rows_at, satisfies
from tests.trials import trials
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


METHODS: tuple[Method, ...] = ("auto", "overlap", "both")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", SHAPES)
def test_decide(name: str, method: Method) -> None:
    rng = np.random.default_rng(sum(map(ord, name)))
    for trial in trials(120):
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
    for trial in trials(60):
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


def stretched(rng: np.random.Generator, problem: SearchProblem, times: int) -> SearchProblem:
    """Every cell becomes so many cells that nothing tells apart; of an allowed one at least one is allowed."""
    start = np.concatenate(([0], np.cumsum(problem.size)))
    unary_cell = (problem.unary_cell[:, None] * times + np.arange(times)).ravel().astype(np.int32)
    allowed = np.repeat(problem.allowed[:, None], times, axis=1) * (rng.random((start[-1], times)) < 0.5)
    allowed[np.arange(start[-1]), rng.integers(times, size=start[-1])] = problem.allowed
    return dataclasses.replace(
        problem,
        size=problem.size * times,
        allowed=allowed.ravel().astype(np.uint8),
        literal_low=problem.literal_low * times,
        literal_high=problem.literal_high * times + times - 1,
        clause_low=problem.clause_low * times,
        clause_high=problem.clause_high * times + times - 1,
        unary_row=np.repeat(problem.unary_row, times),
        unary_variable=np.repeat(problem.unary_variable, times),
        unary_cell=unary_cell,
        unary_value=np.repeat(problem.unary_value, times),
    )


@pytest.mark.parametrize("times", [6, 120])
@pytest.mark.parametrize("name", SHAPES)
def test_many_cells_that_nothing_tells_apart(name: str, times: int) -> None:
    """Moves over many cells stand on the places between the cuts: with 120 all of them do, with 6 those of pairs at most."""
    rng = np.random.default_rng(3 + sum(map(ord, name)))
    for trial in trials(20):
        problem = random_problem(rng, SHAPES[name])
        best = largest_level(brute_force(problem), problem)
        if best is None:
            continue
        many = stretched(rng, problem, times)
        for offset in (0, 1):
            asked = with_bound(many, problem.bound + best + offset)
            result = Solver(asked, seed=trial, audit=1).run(30)
            assert result.status == ("infeasible" if offset else "witness")
            check_point(asked, result)
        result = Solver(many, mode="slack", seed=trial, audit=1).run(30)
        check_point(many, result)
        assert (result.status, result.level, result.upper) == ("optimal", best, best)


@pytest.mark.parametrize("kind", ["swing", "unary"])
@pytest.mark.parametrize("name", ["one feature", "two features", "clauses", "domains", "large values", "three classes"])
@pytest.mark.parametrize("method", METHODS)
def test_objective(name: str, kind: str, method: Method) -> None:
    rng = np.random.default_rng(2 + sum(map(ord, name + kind)))
    for trial in trials(60):
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
    for trial in trials(100):
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
    for trial in trials(60):
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
    for trial in trials(60):
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


def as_equalities(problem: SearchProblem, values: np.ndarray) -> SearchProblem:
    """Every row twice, from above and from below: it has to be one value."""
    count = problem.constraints
    leaf = np.repeat(np.arange(len(problem.coefficient_offset) - 1), np.diff(problem.coefficient_offset))
    order = np.argsort(np.concatenate((leaf, leaf)), kind="stable")
    return dataclasses.replace(
        problem,
        coefficient_offset=problem.coefficient_offset * 2,
        coefficient_row=np.concatenate((problem.coefficient_row, problem.coefficient_row + count))[order],
        coefficient_value=np.concatenate((problem.coefficient_value, -problem.coefficient_value))[order],
        bound=np.concatenate((values, -values)).astype(np.int64),
        slack_weight=np.concatenate((problem.slack_weight, problem.slack_weight)),
        unary_row=np.concatenate((problem.unary_row, problem.unary_row + count)).astype(np.int32),
        unary_variable=np.concatenate((problem.unary_variable, problem.unary_variable)),
        unary_cell=np.concatenate((problem.unary_cell, problem.unary_cell)),
        unary_value=np.concatenate((problem.unary_value, -problem.unary_value)),
    )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", SHAPES)
def test_rows_that_have_to_be_one_value(name: str, method: Method) -> None:
    """Of two rows that contradict each other but in one place, the weights of which cancel."""
    rng = np.random.default_rng(1 + sum(map(ord, name)))
    seen = set()
    for trial in trials(60):
        problem = random_problem(rng, SHAPES[name])
        answers = brute_force(problem)
        if not len(answers.rows):
            continue
        rows = answers.rows[:, : problem.constraints]
        values = rows[rng.integers(len(rows))] + (rng.integers(-1, 2, rows.shape[1]) if rng.random() < 0.4 else 0)
        possible = bool((rows == values).all(axis=1).any())
        asked = as_equalities(problem, values)
        solver = Solver(asked, seed=trial, audit=1, method=method)
        result = solver.run(5.0)
        check_point(asked, result)
        assert result.status == ("witness" if possible else "infeasible"), trial
        seen.add(result.status)
    assert len(seen) == 2


def test_a_point_is_moved_into_the_cells_that_are_left() -> None:
    """One tree, a score that has to be -15, and clauses: four of 24 points. The point at hand lay in a cell that the last step
    had taken away, and decided the node.
    """
    problem = SearchProblem(
        size=np.array([2, 2, 2, 3], np.int32),
        feature=np.arange(4, dtype=np.int32),
        allowed=np.ones(9, np.uint8),
        group_tree=np.zeros(1, np.int32),
        group_offset=np.array([0, 4], np.int64),
        leaf_offset=np.arange(5, dtype=np.int64),
        box_offset=np.arange(0, 9, 2, dtype=np.int64),
        literal_variable=np.array([2, 3] * 4, np.int32),
        literal_low=np.array([0, 0, 0, 1, 1, 0, 1, 2], np.int32),
        literal_high=np.array([0, 0, 0, 2, 1, 1, 1, 2], np.int32),
        coefficient_offset=np.arange(0, 9, 2, dtype=np.int64),
        coefficient_row=np.array([0, 1] * 4, np.int32),
        coefficient_value=np.array([-5, 5, -15, 15, 8, -8, -8, 8], np.int64),
        bound=np.array([-15, 15], np.int64),
        slack_weight=np.ones(2, np.uint8),
        objective=False,
        unary_row=np.zeros(0, np.int32),
        unary_variable=np.zeros(0, np.int32),
        unary_cell=np.zeros(0, np.int32),
        unary_value=np.zeros(0, np.int64),
        clause_offset=np.array([0, 2, 5, 7, 9, 11], np.int64),
        clause_variable=np.array([2, 3, 0, 1, 2, 0, 1, 0, 2, 1, 2], np.int32),
        clause_low=np.array([0, 2, 1, 1, 1, 0, 0, 0, 0, 0, 0], np.int32),
        clause_high=np.array([0, 2, 1, 1, 1, 0, 0, 0, 0, 0, 0], np.int32),
    )
    for seed in trials(40):
        result = Solver(problem, seed=seed, audit=1).run(5.0)
        assert result.status == "witness"
        check_point(problem, result)


@pytest.mark.parametrize("name", ["one feature", "small values and ties", "clauses and domains", "three classes"])
def test_verdicts_after_a_reset_are_those_of_brute_force(name: str) -> None:
    """One solver at bounds of any order: a proof at some bounds answers those that are as large, and no others."""
    rng = np.random.default_rng(3 + sum(map(ord, name)))
    seen = set()
    for trial in trials(40):
        problem = random_problem(rng, SHAPES[name])
        answers = brute_force(problem)
        best = largest_level(answers, problem)
        if best is None:
            continue
        solver = Solver(problem, seed=trial)
        for _ in range(12):
            offsets = rng.integers(-3, 4, problem.constraints) if rng.random() < 0.5 else int(rng.integers(-9, 10))
            bound = problem.bound + best + offsets
            some = bool((answers.rows[:, : problem.constraints] >= bound).all(axis=1).any())
            solver.reset(bound, mode="decide")
            result = solver.run(60)
            assert result.status == ("witness" if some else "infeasible"), (trial, bound)
            check_point(with_bound(problem, bound), result)
            seen.add((some, result.status))
    assert len(seen) == 2
