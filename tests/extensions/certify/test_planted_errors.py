"""Errors planted into what the engine proves, about questions that have a solution: the checker accepts none of the proofs.

A bound is one unit too low, a factor counts for too little, or a cell is lost: in the compiled problem, and in the one on the
trees themselves. Each error is planted in a hundred models, and only proofs that the engine completes are counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.extensions.certify.made import query_of
from tests.extensions.certify.models import train
from treesens.backends.native.backend import NativeArtifact, NativeBackend
from treesens.backends.native.problem import SearchProblem
from treesens.backends.native.score_constraints import score_constraints_of
from treesens.backends.native.solver import Solver
from treesens.backends.native.tree_question import RunningSearch, TreeQuestion, ask
from treesens.compiler.base.budget import Budget
from treesens.compiler.pipeline import compile_query
from treesens.compiler.query.query import CellSet
from treesens.extensions import treesens_verify as checker
from treesens.extensions.certify.produce import _document, _problem, _text, _text_on_trees
from treesens.extensions.certify.proof_text import layout_of_module
from treesens.extensions.certify.statement import NoCertificate, Statement, statement_of
from treesens.extensions.certify.tree_proof import proof_of

RUNS, MOST_MODELS = 100, 130


@dataclass
class Tight:
    """A question with a solution that a single unit more would take away: its statement, problem and model file."""

    statement: Statement
    artifact: NativeArtifact
    problem: SearchProblem
    data: bytes
    known: dict[str, Any]


@pytest.fixture(scope="module")
def questions(tmp_path_factory: pytest.TempPathFactory) -> list[Tight]:
    folder = tmp_path_factory.mktemp("planted")
    return [tight(seed, folder) for seed in range(MOST_MODELS)]


def tight(seed: int, folder: Path) -> Tight:
    model = folder / f"m{seed}.json"
    train(seed, model, trees=4)
    text = (
        f'model m from "{model}"\nquery q: find a, b in m such that a = b except {{f0, f1}}; margin(a) - margin(b) >= '
    )
    first = emitted(statement_of(query_of(f"{text}0.01", folder)))
    assert first.adapted is not None
    best = Solver(first.adapted.problem, mode="slack").run(10)
    assert best.status == "optimal"
    assert best.level is not None
    unit = 2.0**-first.adapted.gap_shift
    exact = (int(first.adapted.problem.bound[0]) + best.level) * unit
    statement = statement_of(query_of(f"{text}{exact:.60f}", folder))
    artifact = emitted(statement)
    assert artifact.adapted is not None
    return Tight(statement, artifact, artifact.adapted.problem, model.read_bytes(), {})


def emitted(statement: Statement) -> NativeArtifact:
    artifact = NativeBackend().emit(compile_query(statement.query, "native").module)
    assert isinstance(artifact, NativeArtifact)
    return artifact


# --- in the compiled problem --------------------------------------------------------------------------------------------------


def too_low(problem: SearchProblem, random: np.random.Generator) -> list[SearchProblem]:
    """Every bound that the engine proves is one unit too low."""
    return [replace(problem, bound=problem.bound + 1)]


def without_a_factor(problem: SearchProblem, random: np.random.Generator) -> list[SearchProblem]:
    """A tree counts with its least values."""
    wrong = []
    for number in random.permutation(np.unique(problem.group_tree)):
        values = problem.coefficient_value.copy()
        for group in np.flatnonzero(problem.group_tree == number):
            leaves = problem.group_offset[group : group + 2]
            mine = slice(*problem.coefficient_offset[leaves])
            values[mine] = values[mine].min(initial=0)
        wrong.append(replace(problem, coefficient_value=values))
    return wrong


def without_a_cell(problem: SearchProblem, random: np.random.Generator) -> list[SearchProblem]:
    """A cell that a solution lies in is lost."""
    solution = Solver(problem, mode="decide").run(10)
    assert solution.assignment is not None
    start = np.concatenate(([0], np.cumsum(problem.size)))
    wrong = []
    for v in random.permutation(len(problem.size)):
        allowed = problem.allowed.copy()
        allowed[start[v] + solution.assignment[v]] = 0
        if problem.size[v] > 1:
            wrong.append(replace(problem, allowed=allowed))
    return wrong


def compiled(
    error: Callable[..., list[SearchProblem]], one: Tight, random: np.random.Generator
) -> dict[str, Any] | None:
    """The first complete proof of a wrong problem."""
    for wrong in error(one.problem, random):
        found = Solver(wrong, mode="decide").certify(10)
        if found["complete"]:
            assert one.artifact.merged is not None
            assert one.artifact.adapted is not None
            layout = layout_of_module(one.artifact.merged, one.artifact.adapted.row_dropped, one.statement)
            return _text(found, layout, _problem(one.statement), one.statement)
    return None


# --- on the trees themselves --------------------------------------------------------------------------------------------------


def trees_too_low(running: RunningSearch, one: Tight, random: np.random.Generator) -> list[RunningSearch]:
    return [searched(running, one, running.trees, below=1)]


def trees_without_a_factor(running: RunningSearch, one: Tight, random: np.random.Generator) -> list[RunningSearch]:
    query = one.statement.query
    parts = score_constraints_of(query)
    assert parts is not None
    leaf_tree = query.models[0].ensemble.leaf_tree
    wrong = []
    for number in random.permutation(query.models[0].n_trees):
        values = {p: v.copy() for p, v in running.question.rows[0].values.items()}
        for mine in values.values():
            mine[leaf_tree == number] = mine[leaf_tree == number].min()
        rows = [replace(running.question.rows[0], values=values)]
        wrong.append(searched(running, one, TreeQuestion(query, running.trees.coarse, parts, rows)))
    return wrong


def trees_without_a_cell(running: RunningSearch, one: Tight, random: np.random.Generator) -> list[RunningSearch]:
    cells = running.trees.decide(running.search, running.cells, Budget.of(10)).cells
    assert cells is not None
    grid, wrong = one.statement.query.space.grid, []
    for f in random.permutation(len(grid)):
        mask = np.ones(grid[f].n_cells, bool)
        mask[cells[0, f]] = False
        wrong.append(searched(running, one, running.trees, CellSet(0, int(f), mask)))
    return wrong


def searched(
    running: RunningSearch, one: Tight, question: TreeQuestion, *lost: CellSet, below: int = 0
) -> RunningSearch:
    query = one.statement.query
    parts = score_constraints_of(query)
    assert parts is not None
    made = running.question.rows
    bound = np.array([row.bound(stated) + below for row, stated in zip(made, parts.rows, strict=True)], np.int64)
    cells = question.cells(query, replace(parts, sets=[*parts.sets, *lost]))
    return RunningSearch(question, cells, question.search(cells, bound, None, 0, None), running.question)


def on_trees(
    error: Callable[..., list[RunningSearch]], one: Tight, random: np.random.Generator
) -> dict[str, Any] | None:
    """The first complete proof of a wrong problem."""
    query = one.statement.query
    running = ask(query, None, 0, None)
    assert running is not None
    for wrong in error(running, one, random):
        if wrong.search is None:
            continue
        try:
            return _text_on_trees(proof_of(wrong, 10), one.statement)
        except NoCertificate:
            continue
    return None


# --- both ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prove", "error"),
    [
        (compiled, too_low),
        (compiled, without_a_factor),
        (compiled, without_a_cell),
        (on_trees, trees_too_low),
        (on_trees, trees_without_a_factor),
        (on_trees, trees_without_a_cell),
    ],
)
def test_no_proof_with_a_planted_error_is_accepted(prove: Any, error: Any, questions: list[Tight]) -> None:
    proved = 0
    for seed, one in enumerate(questions):
        text = prove(error, one, np.random.default_rng(seed))
        if text is None:
            continue
        proved += 1
        with pytest.raises(checker.Rejected):
            checker.check(_document(one.statement, one.statement.query, "none") | text, [one.data])
        if proved == RUNS:
            return
    pytest.fail(f"{proved} complete proofs instead of {RUNS}")
