"""Errors planted into what the engine proves, about questions that have a solution: the checker accepts none of the proofs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.certificates.made import query_of
from tests.certificates.models import train
from treesens.backends.native.backend import NativeArtifact, NativeBackend
from treesens.backends.native.problem import SearchProblem
from treesens.backends.native.solver import Solver
from treesens.certificates import treesens_verify as checker
from treesens.certificates.layout import layout_of_module
from treesens.certificates.produce import _document, _problem, _text
from treesens.certificates.statement import Statement, statement_of
from treesens.compiler.compilation import compile_query

RUNS = 12


def tight(seed: int, folder: Path) -> tuple[Statement, NativeArtifact, bytes]:
    """A question with a solution that a single unit more would take away: its statement, problem and model file."""
    model = folder / f"m{seed}.json"
    train(seed, model, trees=4)
    text = (
        f'model m from "{model}"\nquery q: find a, b in m such that a = b except {{f0, f1}}; margin(a) - margin(b) >= '
    )
    module = compile_query(query_of(f"{text}0.01", folder), "native").module
    artifact = NativeBackend().emit(module)
    assert isinstance(artifact, NativeArtifact)
    assert artifact.adapted is not None
    best = Solver(artifact.adapted.problem, mode="slack").run(10)
    assert best.status == "optimal"
    assert best.level is not None
    unit = 2.0**-artifact.adapted.gap_shift
    exact = (int(artifact.adapted.problem.bound[0]) + best.level) * unit
    statement = statement_of(query_of(f"{text}{exact:.60f}", folder))
    artifact = NativeBackend().emit(compile_query(statement.query, "native").module)
    assert isinstance(artifact, NativeArtifact)
    return statement, artifact, model.read_bytes()


def too_low(problem: SearchProblem, random: np.random.Generator) -> SearchProblem:
    """Every bound that the engine proves is one unit too low."""
    return replace(problem, bound=problem.bound + 1)


def without_a_factor(problem: SearchProblem, random: np.random.Generator) -> SearchProblem:
    """A tree counts with its least values."""
    values = problem.coefficient_value.copy()
    group = int(random.integers(len(problem.group_tree)))
    for tree in np.flatnonzero(problem.group_tree == problem.group_tree[group]):
        leaves = problem.group_offset[tree : tree + 2]
        mine = slice(*problem.coefficient_offset[leaves])
        values[mine] = values[mine].min(initial=0)
    return replace(problem, coefficient_value=values, bound=problem.bound + 1)


def without_a_cell(problem: SearchProblem, random: np.random.Generator) -> SearchProblem:
    """A cell that a solution lies in is lost."""
    solution = Solver(problem, mode="decide").run(10)
    assert solution.assignment is not None
    start = np.concatenate(([0], np.cumsum(problem.size)))
    for v in random.permutation(len(problem.size)):
        allowed = problem.allowed.copy()
        allowed[start[v] + solution.assignment[v]] = 0
        lost = replace(problem, allowed=allowed)
        if problem.size[v] > 1 and Solver(lost, mode="decide").run(10).status == "infeasible":
            return lost
    return replace(problem, bound=problem.bound + 1)


@pytest.mark.parametrize("error", [too_low, without_a_factor, without_a_cell])
def test_no_proof_with_a_planted_error_is_accepted(error: Any, tmp_path: Path) -> None:
    proved = 0
    for seed in range(RUNS):
        statement, artifact, data = tight(seed, tmp_path)
        assert artifact.adapted is not None
        assert artifact.merged is not None
        wrong = error(artifact.adapted.problem, np.random.default_rng(seed))
        found = Solver(wrong, mode="decide").certify(10)
        if not found["complete"]:
            continue
        proved += 1
        text = _text(
            found,
            layout_of_module(artifact.merged, artifact.adapted.row_dropped, statement),
            _problem(statement),
            statement,
        )
        with pytest.raises(checker.Rejected):
            checker.check(_document(statement, statement.query, "none") | text, [data])
    assert proved >= RUNS * 0.9
