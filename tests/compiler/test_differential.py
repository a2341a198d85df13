"""Brute force over cells = lowering = every pass = every pipeline = every solver, on random tiny questions."""

from __future__ import annotations

import numpy as np
import pytest

from tests.questions import oracle, random_query
from treesens.backends.base import Limits, Termination, get_backend
from treesens.compiler.base.budget import Budget
from treesens.compiler.ir.evaluate import brute_force
from treesens.compiler.ir.text import parse_module, print_module
from treesens.compiler.ir.verifier import verify
from treesens.compiler.lower import lower
from treesens.compiler.passes.registry import PASSES
from treesens.compiler.passes.validation import Outcome
from treesens.compiler.pipeline import PIPELINES, Pipeline, compile_query, pipeline_for
from treesens.compiler.result import Verdict
from treesens.solve.options import Options
from treesens.solve.question import answer
from treesens.solve.validation import validations

SEEDS = range(30)
PIPELINE_TEXTS = [*PIPELINES, *PASSES.builtin, "unaffected-leaves,share-copies,leaf-rows{intervals=false},drop-dead"]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.sampled
def test_lowering_and_every_pass_agree_with_brute_force_over_cells(seed: int) -> None:
    query = random_query(np.random.default_rng(seed))
    module = lower(query)
    verify(module)
    some, best = oracle(query)
    solved = brute_force(module)
    assert (solved.solutions > 0) == some
    if best is not None:
        assert query.objective is not None
        assert module.objective is not None
        sign = 1 if query.objective.maximize else -1
        assert solved.objective == sign * best * 2**module.objective.shift
    for text in PIPELINE_TEXTS:
        compiled = Pipeline.parse(text).run(module, verify_each=True, keep_each=True)
        found = validations(compiled, "brute", Budget.of(60))
        assert {one.outcome for one in found} <= {Outcome.PROVED}, (text, found)


@pytest.mark.parametrize("seed", range(20))
def test_the_textual_form_parses_back(seed: int) -> None:
    module = lower(random_query(np.random.default_rng(seed)))
    for text in PIPELINES:
        rewritten = Pipeline.parse(text).run(module).module
        assert parse_module(print_module(rewritten, full=True)) == rewritten


@pytest.mark.parametrize("name", ["native", "cpsat", "highs", "z3"])
@pytest.mark.parametrize("seed", range(100, 140))
@pytest.mark.sampled
def test_solvers_agree_with_brute_force_over_cells(seed: int, name: str) -> None:
    """In this process, for speed; these three can be loaded together (the worker isolates the others)."""
    query = random_query(np.random.default_rng(seed))
    some, best = oracle(query)
    backend = get_backend(name)
    for pipeline in PIPELINES:
        compiled = compile_query(query, pipeline_for(name, pipeline)).compiled
        artifact = backend.emit(compiled.module, precision=backend.exact_precision() if name == "cpsat" else 0)
        outcome = backend.solve(artifact, Limits(seconds=20))
        assert (outcome.termination is not Termination.INFEASIBLE) == some, pipeline
        if best is not None:
            assert outcome.termination is Termination.OPTIMAL
            assert outcome.assignment is not None
            cells = compiled.source.cells(compiled.recover(outcome.assignment))
            value = _value(query, cells)
            assert float(value) == pytest.approx(float(best), abs=1e-5)


def _value(query, cells):  # type: ignore[no-untyped-def]
    from treesens.compiler.query.evaluate import Inputs, form_value, scores_of_cells

    return form_value(query.objective.form, Inputs(cells.astype(float), cells, scores_of_cells(query, cells)))


@pytest.mark.parametrize("name", ["cpsat", "highs", "z3", "cbc", "scip", "gurobi"])
def test_answers_through_worker_processes(name: str) -> None:
    seen = set()
    for seed in range(200, 206):
        query = random_query(np.random.default_rng(seed))
        some, _ = oracle(query)
        result = answer(query, Options(backend=name, time_limit=30))
        assert result.verdict is (Verdict.FOUND if some else Verdict.NONE), (seed, result.reason)
        seen.add(result.verdict)
    assert seen == {Verdict.FOUND, Verdict.NONE}
