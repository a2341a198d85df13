"""Trees that share a factor: the same answers as by brute force, every pruned node looked at again."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.engine.test_best_first import long_problem
from tests.engine.test_bounds import best_of, bounds_of
from tests.engine.test_brute import SHAPES, check_point, largest_level, with_bound
from tests.engine.tiny import brute_force, random_problem
from tests.trials import trials
from treesens.backends.native.solver import Solver

ENTRIES = (3, 12, 60, 400)


@pytest.mark.parametrize("name", SHAPES)
def test_decisions(name: str) -> None:
    rng = np.random.default_rng([11, *map(ord, name)])
    for trial in trials(60):
        problem = random_problem(rng, SHAPES[name])
        best = largest_level(brute_force(problem), problem)
        together = ENTRIES[trial % len(ENTRIES)]
        if best is None:
            assert Solver(problem, seed=trial, method="messages", together=together).run(30).status == "infeasible"
            continue
        for offset in (0, 1):
            asked = with_bound(problem, problem.bound + best + offset)
            result = Solver(asked, seed=trial, method="messages", together=together, audit=1).run(30)
            assert not result.fault
            assert result.status == ("witness" if offset == 0 else "infeasible")
            check_point(asked, result)


@pytest.mark.parametrize("kind", ["swing", "unary", "slack"])
@pytest.mark.parametrize("name", SHAPES)
def test_optima(name: str, kind: str) -> None:
    rng = np.random.default_rng([12, *map(ord, name + kind)])
    for trial in trials(60):
        shape = SHAPES[name] if kind == "slack" else dataclasses.replace(SHAPES[name], objective=kind)
        problem = random_problem(rng, shape)
        answers = brute_force(problem)
        problem = bounds_of(rng, problem, answers)
        mode = "slack" if kind == "slack" else "objective"
        best = best_of(problem, answers, mode)
        method = ("messages", "both")[trial % 2]
        together = ENTRIES[trial % len(ENTRIES)]
        solver = Solver(problem, mode=mode, seed=trial, audit=1, method=method, together=together)  # type: ignore[arg-type]
        result = solver.run(30)
        assert not result.fault
        check_point(problem, result)
        if best is None:
            assert result.status == "infeasible"
        else:
            assert result.status == "optimal"
            assert result.level == best == result.upper


def test_long_searches_share_factors_and_take_fewer_nodes() -> None:
    nodes = {0: 0, 400: 0}
    for seed in range(4, 8):
        problem = long_problem(objective=True, seed=seed)
        results = {}
        for together in nodes:
            solver = Solver(problem, mode="objective", method="messages", together=together)
            results[together] = solver.run(120)
            assert results[together].status == "optimal"
            nodes[together] += results[together].statistics.nodes
        assert results[0].level == results[400].level
        # Factors of several trees have more entries than these trees have one by one.
        assert results[400].statistics.entries > results[0].statistics.entries
    assert nodes[400] < nodes[0]


def test_a_proof_for_others_has_factors_of_single_trees() -> None:
    problem = long_problem(objective=True)
    solver = Solver(problem, mode="objective", method="messages", together=60)
    result = solver.run(120)
    assert result.level is not None
    proof = solver.certify(60, level=result.level + abs(result.level) // 2)
    trees = [
        set(proof["factor_group"][a:b])
        for a, b in zip(proof["factor_offset"], proof["factor_offset"][1:], strict=False)
    ]
    assert proof["complete"]
    assert all(len({int(problem.group_tree[g]) for g in groups}) == 1 for groups in trees)
