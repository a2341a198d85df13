"""What the engine calls out of reach, against all solutions of tiny problems, with bounds on and beside the optimum."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.engine.test_brute import SHAPES, largest_level, with_bound
from tests.engine.tiny import Box, Group, assemble, brute_force, random_problem
from tests.trials import trials
from treesens.backends.native.problem import SearchProblem
from treesens.backends.native.solver import Solver

WORK = 10**9


def leaves_reached(problem: SearchProblem, points: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Of every leaf: whether one of the points lies in one of its boxes."""
    reached = np.zeros(len(problem.leaf_offset) - 1, bool)
    for leaf in range(len(reached)):
        for box in range(problem.leaf_offset[leaf], problem.leaf_offset[leaf + 1]):
            inside = np.ones(len(points), bool)
            for i in range(problem.box_offset[box], problem.box_offset[box + 1]):
                cell = points[:, problem.literal_variable[i]]
                inside &= (cell >= problem.literal_low[i]) & (cell <= problem.literal_high[i])
            reached[leaf] |= bool(inside.any())
    return reached


def cells_used(problem: SearchProblem, points: NDArray[np.int64]) -> NDArray[np.bool_]:
    start = np.cumsum([0, *problem.size[:-1]])
    used = np.zeros(int(problem.size.sum()), bool)
    used[(points + start).ravel()] = True
    return used


@pytest.mark.parametrize("probe", [False, True], ids=["bounds", "probes"])
@pytest.mark.parametrize("name", SHAPES)
def test_what_is_out_of_reach_is_used_by_no_solution(name: str, probe: bool) -> None:
    rng = np.random.default_rng(11 + sum(map(ord, name)))
    impossible = refuted = unused = dropped = 0
    for trial in trials(30):
        problem = random_problem(rng, SHAPES[name])
        answers = brute_force(problem)
        best = largest_level(answers, problem)
        if best is None:
            Solver(problem, seed=trial).fix(WORK, probe=probe)  # nothing to contradict, and no crash
            continue
        spread = int(np.ptp((answers.rows[:, : problem.constraints] - problem.bound).min(axis=1)))
        for offset in (-37, -1, 0, 1, 1 + spread // 5):
            asked = with_bound(problem, problem.bound + best + offset)
            solutions = answers.points[(answers.rows[:, : problem.constraints] >= asked.bound).all(axis=1)]
            fixing = Solver(asked, seed=trial).fix(WORK, probe=probe)
            if len(solutions) == 0:
                impossible += 1
                refuted += fixing.infeasible
                continue
            assert not fixing.infeasible
            cells, leaves = cells_used(asked, solutions), leaves_reached(asked, solutions)
            assert not (cells & ~fixing.cells).any()
            assert not (leaves & ~fixing.leaves).any()
            unused += int((~cells).sum())
            dropped += int((~fixing.cells).sum())
    # It is of use: many contradictions are seen at once, and much of what no solution uses goes.
    assert impossible
    # Where values are large a unit is too fine for a grid of 35 bits, and of four classes the root's bound sees least.
    assert refuted > 0.3 * impossible
    assert dropped > 0.15 * unused


def test_the_objective_is_not_looked_at() -> None:
    rng = np.random.default_rng(12)
    for trial in trials(60):
        problem = random_problem(rng, dataclasses.replace(SHAPES["one feature"], objective="unary"))
        answers = brute_force(problem)
        level = largest_level(answers, problem)
        assert level is not None
        problem = with_bound(problem, np.full(problem.constraints, level - 20))
        solutions = answers.points[(answers.rows[:, :-1] >= problem.bound).all(axis=1)]
        fixing = Solver(problem, mode="objective", seed=trial).fix(WORK)
        assert not (cells_used(problem, solutions) & ~fixing.cells).any()


def test_the_search_goes_on_as_if_nothing_had_been_asked() -> None:
    rng = np.random.default_rng(13)
    for trial in trials(40):
        problem = random_problem(rng, SHAPES["clauses and domains"])
        plain, asked = Solver(problem, seed=trial), Solver(problem, seed=trial)
        asked.fix(WORK)
        before, after = plain.run(30), asked.run(30)
        assert before.status == after.status
        assert before.statistics.nodes == after.statistics.nodes


def test_little_work_is_still_a_proof() -> None:
    rng = np.random.default_rng(14)
    for trial in trials(60):
        problem = random_problem(rng, SHAPES["two features"])
        answers = brute_force(problem)
        best = largest_level(answers, problem)
        assert best is not None
        asked = with_bound(problem, problem.bound + best)
        solutions = answers.points[(answers.rows >= asked.bound).all(axis=1)]
        for work in (0, 1, 1000):
            fixing = Solver(asked, seed=trial).fix(work)
            assert not fixing.infeasible
            assert not (cells_used(asked, solutions) & ~fixing.cells).any()


@pytest.mark.parametrize("name", SHAPES)
def test_stopped_at_once_it_keeps_what_solutions_use(name: str) -> None:
    rng = np.random.default_rng(5 + sum(map(ord, name)))
    asked = 0
    for trial in trials(20):
        problem = random_problem(rng, SHAPES[name])
        answers = brute_force(problem)
        best = largest_level(answers, problem)
        if best is None:
            continue
        asked += 1
        tight = with_bound(problem, problem.bound + best)
        solutions = answers.points[(answers.rows[:, : problem.constraints] >= tight.bound).all(axis=1)]
        solver = Solver(tight, seed=trial)
        solver.stop()
        fixing = solver.fix(WORK)
        assert not fixing.infeasible
        assert fixing.leaves.all()  # none is looked at
        assert (fixing.cells | ~cells_used(problem, solutions)).all()
    assert asked


def test_leaves_are_looked_at_within_the_work() -> None:
    """A comparison of a leaf with an entry is work, too: without any allowed nothing is dropped for it, with little some."""
    rng = np.random.default_rng(19)
    dropped = dict.fromkeys((3, 3_000, WORK), 0)
    for trial in trials(40):
        problem = random_problem(rng, SHAPES["two features"])
        best = largest_level(brute_force(problem), problem)
        if best is None:
            continue
        for work in dropped:
            fixing = Solver(with_bound(problem, problem.bound + best), seed=trial).fix(work, probe=False)
            dropped[work] += int((~fixing.leaves).sum())
    assert dropped[3] < dropped[3_000] <= dropped[WORK]


def pair_of_deep_trees() -> SearchProblem:
    rng = np.random.default_rng(3)
    groups = []
    for tree in range(3):
        values = rng.integers(-100, 101, 256).tolist()
        for point, sign in ((0, 1), (1, -1)):
            boxes: list[list[Box]] = [[{8 * point + i: (leaf >> i & 1,) * 2 for i in range(8)}] for leaf in range(256)]
            groups.append(Group(tree, boxes, [[(point, sign * value)] for value in values]))
    return assemble([2] * 16, [*range(8), *range(8)], groups, [280, 280])


def test_a_search_that_was_told_to_stop_sets_up_no_prover() -> None:
    """Two copies of a tree of 256 leaves over eight features meet in thousands of pairs."""
    problem = pair_of_deep_trees()
    whole = Solver(problem, seed=1)
    assert whole.fix(WORK, probe=False).sweeps > 0
    stopped = Solver(problem, seed=1)
    stopped.stop()
    fixing = stopped.fix(WORK, probe=False)
    assert fixing.sweeps == 0
    assert fixing.cells.all()
    assert fixing.leaves.all()
    assert stopped.run(node_limit=0).statistics.entries == 0, "without a node to spend none is set up either"
