"""Boxes and levels of one problem against brute force: dead leaves are dropped, cells merged, and no solution is lost."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.engine.test_brute import SHAPES
from tests.engine.tiny import Answers, Box, Group, assemble, brute_force, random_problem, rows_at, satisfies
from treesens._engine import LevelSearch, RestrictedSearch, SharedProblem
from treesens.backends.native.problem import SearchProblem
from treesens.backends.native.solver import Solver


def starts(problem: SearchProblem) -> NDArray[np.int64]:
    return np.concatenate(([0], np.cumsum(problem.size)))


def inside(problem: SearchProblem, answers: Answers, allowed: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Which of the points lie in a box."""
    return np.asarray(allowed[answers.points + starts(problem)[:-1]].all(axis=1), bool)


def solves(problem: SearchProblem, answers: Answers, bound: NDArray[np.int64]) -> NDArray[np.bool_]:
    return np.asarray((answers.rows[:, : problem.constraints] >= bound).all(axis=1), bool)


def finished(search: Any) -> dict[str, Any]:
    search.run(30.0, 30.0)
    return dict(search.result())


def check_solution(problem: SearchProblem, bound: NDArray[np.int64], point: list[int]) -> None:
    x = np.array(point, np.int64)[None]
    assert satisfies(problem, x).all()
    assert (rows_at(problem, x)[0, : problem.constraints] >= bound).all()


@pytest.mark.parametrize("name", SHAPES)
def test_a_box_has_a_solution_if_one_of_its_points_is_one(name: str) -> None:
    rng = np.random.default_rng(sum(map(ord, name)))
    found = 0
    for trial in range(60):
        problem = random_problem(rng, SHAPES[name])
        answers = brute_force(problem)
        shared = SharedProblem(Solver(problem)._engine)
        hints = np.zeros((0, len(problem.size)), np.int32)
        for _ in range(6):
            allowed = (rng.random(int(problem.size.sum())) < rng.choice([0.3, 0.6, 0.9])).astype(np.uint8)
            here = inside(problem, answers, allowed)
            rows = answers.rows[here][:, : problem.constraints]
            best = int((rows - problem.bound).min(axis=1).max()) if len(rows) else 0
            for offset in (0, 1):
                bound = problem.bound + best + offset
                facts = finished(
                    RestrictedSearch(shared, allowed, bound, hints, trial, -1, int(rng.choice([-1, 0, 30_000])))
                )
                expected = bool((here & solves(problem, answers, bound)).any())
                assert facts["status"] == ("witness" if expected else "infeasible")
                if expected:
                    found += 1
                    check_solution(problem, bound, facts["point"])
                    assert allowed[np.array(facts["point"]) + starts(problem)[:-1]].all()
    assert found > 60


@pytest.mark.parametrize("name", SHAPES)
def test_the_best_point_of_a_box_is_that_of_trying_all(name: str) -> None:
    """Also of boxes that leave one point, or none."""
    rng = np.random.default_rng(5 + sum(map(ord, name)))
    single = best_of_several = 0
    for trial in range(60):
        shape = dataclasses.replace(SHAPES[name], objective=["swing", "unary"][trial % 2])
        problem = random_problem(rng, shape)
        answers = brute_force(problem)
        shared = SharedProblem(Solver(problem)._engine)
        hints = np.zeros((0, len(problem.size)), np.int32)
        for share in (0.1, 0.4, 0.9):
            allowed = (rng.random(int(problem.size.sum())) < share).astype(np.uint8)
            if share == 0.1:  # one cell of every variable
                allowed[:] = 0
                allowed[starts(problem)[:-1] + rng.integers(0, problem.size)] = 1
            here = inside(problem, answers, allowed)
            least = answers.rows[:, : problem.constraints].min(axis=1)
            bound = problem.bound + (int(np.median(least[here])) if here.any() else 0)
            worth = answers.rows[here & solves(problem, answers, bound), problem.constraints]
            facts = finished(RestrictedSearch(shared, allowed, bound, hints, trial, -1, -1, 1, True))
            if not len(worth):
                assert facts["status"] == "infeasible"
                continue
            single += int(here.sum()) == 1
            best_of_several += len(worth) > 1
            assert facts["status"] == "optimal"
            assert facts["upper"] == worth.max()
            check_solution(problem, bound, facts["point"])
            assert allowed[np.array(facts["point"]) + starts(problem)[:-1]].all()
            assert rows_at(problem, np.array(facts["point"], np.int64)[None])[0, problem.constraints] == worth.max()
    assert single > 3
    assert best_of_several > 10


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("hinted", [False, True])
def test_the_least_level_is_that_of_trying_all(name: str, hinted: bool) -> None:
    rng = np.random.default_rng(7 + sum(map(ord, name)))
    levels_seen = set()
    for trial in range(60):
        problem = random_problem(rng, SHAPES[name])
        answers = brute_force(problem)
        shared = SharedProblem(Solver(problem)._engine)
        if len(answers.rows) == 0:
            continue
        best = int((answers.rows[:, : problem.constraints] - problem.bound).min(axis=1).max())
        for _ in range(4):
            level = rng.integers(-1 if rng.random() < 0.3 else 0, 6, int(problem.size.sum())).astype(np.int32)
            bound = problem.bound + best - int(rng.integers(0, 30))
            hints = np.zeros((0, len(problem.size)), np.int32)
            if hinted:
                hints = answers.points[rng.integers(0, len(answers.points), 3)].astype(np.int32)
            facts = finished(LevelSearch(shared, level, bound, hints, trial, -1))
            of_points = level[answers.points + starts(problem)[:-1]]
            good = solves(problem, answers, bound) & (of_points >= 0).all(axis=1)
            if not good.any():
                assert facts["status"] == "infeasible"
                continue
            least = int(of_points[good].max(axis=1).min())
            assert (facts["status"], facts["low"], facts["high"]) == ("optimal", least, least)
            check_solution(problem, bound, facts["point"])
            assert level[np.array(facts["point"]) + starts(problem)[:-1]].max() == least
            levels_seen.add(least)
    assert len(levels_seen) > 1


def test_a_search_that_has_no_time_proves_nothing_false() -> None:
    problem = random_problem(np.random.default_rng(3), dataclasses.replace(SHAPES["deep"], trees=30))
    shared = SharedProblem(Solver(problem)._engine)
    level = np.arange(int(problem.size.sum()), dtype=np.int32)
    search = LevelSearch(shared, level, problem.bound, np.zeros((0, len(problem.size)), np.int32), 0, -1)
    before = search.result()
    assert before["status"] == "open"
    assert before["point"] == []
    search.stop()
    search.run(30.0, 30.0)
    assert (search.result()["status"], search.result()["reason"]) in {("open", "stopped"), ("infeasible", "")}
    search.clear_stop()
    done = finished(search)
    assert done["status"] in {"optimal", "infeasible"}


@pytest.mark.parametrize(
    "broken",
    [{"allowed": np.ones(3, np.uint8)}, {"bound": np.zeros(9, np.int64)}, {"hints": np.full((1, 5), 99, np.int32)}],
)
def test_arrays_that_do_not_fit_are_refused(broken: dict[str, Any]) -> None:
    problem = random_problem(np.random.default_rng(3), SHAPES["one feature"])
    shared = SharedProblem(Solver(problem)._engine)
    given = {
        "problem": shared,
        "allowed": problem.allowed,
        "bound": problem.bound,
        "hints": np.zeros((0, len(problem.size)), np.int32),
        "seed": 0,
        "max_bytes": -1,
        "first_look": -1,
        **broken,
    }
    with pytest.raises(ValueError, match=r"must have|needed|out of range"):
        RestrictedSearch(**given)


def full_tables(rng: np.random.Generator, cells: int = 9) -> SearchProblem:
    """Trees with a leaf for every pair of cells of two of three variables, and two rows."""
    groups = []
    for tree, (one, other) in enumerate([(0, 1), (1, 2), (0, 2)]):
        places = [(i, j) for i in range(cells) for j in range(cells)]
        boxes: list[list[Box]] = [[{one: (i, i), other: (j, j)}] for i, j in places]
        values = [[(row, int(rng.integers(-100, 100))) for row in (0, 1)] for _ in places]
        groups.append(Group(tree, boxes, values))
    return assemble([cells] * 3, [0, 1, 2], groups, [0, 0])


def test_deep_trees_are_proved_by_the_boxes_of_what_is_left() -> None:
    """Trees of 64 leaves and more go to a prover that looks at the boxes of leaves instead of at the trees."""
    rng = np.random.default_rng(11)
    for trial in range(25):
        problem = full_tables(rng)
        answers = brute_force(problem)
        best = int((answers.rows[:, :2] - problem.bound).min(axis=1).max())
        shared = SharedProblem(Solver(problem)._engine)
        hints = np.zeros((0, 3), np.int32)
        for offset in (-3, 0, 1, 40):
            bound = problem.bound + best + offset
            facts = finished(RestrictedSearch(shared, problem.allowed, bound, hints, trial, -1, 0))
            assert facts["status"] == ("witness" if offset <= 0 else "infeasible")
