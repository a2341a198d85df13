"""Nodes that become problems of their own: the same answers as by brute force, wherever a search is stopped."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import pytest

from tests.engine.test_best_first import LITTLE, SHAPES, STOPS, long_problem
from tests.engine.test_bounds import best_of, bounds_of
from tests.engine.test_brute import check_point
from tests.engine.tiny import Group, assemble, brute_force, random_problem, random_tree
from tests.trials import THOROUGH, at_night
from treesens.backends.native.problem import SearchProblem
from treesens.backends.native.solver import Solver

DEPTHS = (1, 2, 3)
ENTRIES = (3, 12, 60)


@pytest.mark.parametrize("kind", ["swing", "unary"])
@pytest.mark.parametrize("name", SHAPES)
def test_optima(name: str, kind: str) -> None:
    rng = np.random.default_rng([16, *map(ord, name + kind)])
    parts = 0
    for trial in range(100):
        problem = random_problem(rng, dataclasses.replace(SHAPES[name], objective=kind))
        answers = brute_force(problem)
        problem = bounds_of(rng, problem, answers)
        best = best_of(problem, answers, "objective")
        for depth in (0, DEPTHS[trial % len(DEPTHS)]):
            together = ENTRIES[trial % len(ENTRIES)]
            solver = Solver(
                problem, mode="objective", seed=trial, audit=1, method="messages", together=together, parts=depth
            )
            result = solver.run(30)
            assert not result.fault
            check_point(problem, result)
            assert result.status == ("infeasible" if best is None else "optimal")
            assert best is None or result.level == best == result.upper
            parts += result.statistics.parts
    assert parts > 5


@pytest.mark.parametrize("memory", [None, LITTLE])
@pytest.mark.parametrize("name", SHAPES)
def test_a_search_in_parts_that_is_stopped_has_a_valid_bound(name: str, memory: int | None) -> None:
    rng = np.random.default_rng([17, *map(ord, name)])
    stopped = 0
    for trial in range(60):
        problem = random_problem(rng, dataclasses.replace(SHAPES[name], objective="unary"))
        answers = brute_force(problem)
        problem = bounds_of(rng, problem, answers)
        best = best_of(problem, answers, "objective")
        solver = Solver(
            problem,
            mode="objective",
            seed=trial,
            audit=1,
            method="messages",
            max_bytes=memory,
            together=60,
            parts=DEPTHS[trial % len(DEPTHS)],
        )
        done = 0
        for nodes in STOPS:
            # The same search goes on after each stop.
            result = solver.run(20, node_limit=nodes)
            assert result.reason in {"", "nodes"}, result.fault
            check_point(problem, result)
            assert result.statistics.nodes <= done + nodes
            done = result.statistics.nodes
            stopped += result.status == "open"
            assert best is None or result.upper is None or result.upper >= best
            if result.status != "open":
                break
        else:
            result = solver.run(30)
        assert result.status == ("infeasible" if best is None else "optimal")
        assert best is None or result.level == best == result.upper
    assert stopped > 2


def ask(problem: SearchProblem, threads: int, parts: int) -> Solver:
    return Solver(problem, mode="objective", method="messages", threads=threads, together=60, parts=parts, audit=64)


@functools.cache
def level_as_a_whole(seed: int) -> int | None:
    """The best value of a long problem by a search without parts."""
    problem = long_problem(objective=True, seed=seed)
    return Solver(problem, mode="objective", method="messages", together=0).run(120).level


@pytest.mark.parametrize("threads", [1, 2, at_night(3)])
def test_long_searches_in_parts_find_the_same(threads: int) -> None:
    for seed in (4, 6):
        problem = long_problem(objective=True, seed=seed)
        result = ask(problem, threads, parts=2).run(120)
        assert not result.fault
        assert result.status == "optimal"
        assert result.level == level_as_a_whole(seed)
        assert result.statistics.parts > 1
        check_point(problem, result)


def largest_score(seed: int, trees: int = 60) -> SearchProblem:
    """The largest score of one point, and nothing else."""
    rng = np.random.default_rng(seed)
    size = [int(rng.integers(4, 12)) for _ in range(10)]
    groups = []
    for tree in range(trees):
        leaves = random_tree(rng, size, list(range(len(size))), 5)
        groups.append(Group(tree, leaves, [[(1, int(rng.integers(-1000, 1000)))] for _ in leaves]))
    return assemble(size, list(range(len(size))), groups, [0], objective=True)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_search_of_one_row_that_looks_long_begins_again_in_parts(threads: int) -> None:
    parts = 0
    for seed in range(3):
        problem = largest_score(seed)
        result = ask(problem, threads, parts=0).run(120)
        whole = Solver(problem, mode="objective", method="messages", together=0).run(120)
        assert not result.fault
        assert result.status == whole.status == "optimal"
        assert result.level == whole.level
        assert result.statistics.nodes > 128 or result.statistics.parts == 0
        parts += result.statistics.parts
    assert parts > 0


def test_several_rows_are_searched_as_a_whole() -> None:
    result = ask(long_problem(objective=True), 1, parts=0).run(120)
    assert result.status == "optimal"
    assert result.statistics.nodes > 128
    assert result.statistics.parts == 0


def test_bounds_fall_and_hold_while_parts_are_searched() -> None:
    problem = long_problem(objective=True, seed=4)
    best = level_as_a_whole(4)
    assert best is not None
    for threads in (1, 2):
        solver = ask(problem, threads, parts=2)
        bounds = []
        result = solver.run(0.02)
        while result.status == "open":
            bounds.append(result.upper)
            result = solver.run(0.02)
        assert result.level == best
        known = [bound for bound in bounds if bound is not None]
        assert known == sorted(known, reverse=True)
        assert all(bound >= best for bound in known)


def test_pauses_do_not_change_the_search() -> None:
    for seed, pauses in ((4, (0.005,)), (6, (0.005, 0.0007)))[: 2 if THOROUGH else 1]:
        problem = long_problem(objective=True, seed=seed)
        at_once = ask(problem, 1, parts=2).run(120).statistics
        for seconds in pauses:
            solver = ask(problem, 1, parts=2)
            while solver._engine.result()["status"] == "open":
                solver._engine.run(slice=seconds, seconds=-1, node_limit=-1)
            facts = solver._engine.result()
            assert (facts["nodes"], facts["parts"]) == (at_once.nodes, at_once.parts)
