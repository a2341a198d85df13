"""bound-fixing and warm-start on random questions: no solution is lost, no start is none, and the record says what helped."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.questions import oracle, random_query
from treesens.backends.base import Limits, Termination, get_backend
from treesens.backends.native.passes.bound_fixing import PREMISE, BoundFixing
from treesens.compiler.ir import Clauses, Facts, Linear, Module, Objective, Start
from treesens.compiler.ir.evaluate import brute_force, satisfies
from treesens.compiler.ir.text import parse_module, print_module
from treesens.compiler.lower import lower
from treesens.compiler.pipeline import PIPELINES, Pipeline, pipeline_for
from treesens.compiler.result import Verdict
from treesens.extensions.conformance.shapes import cases
from treesens.solve.driver import start_of
from treesens.solve.options import Options
from treesens.solve.question import answer

SEARCH = Pipeline.parse("native")


def merged(seed: int) -> Module:
    """A module as the pass gets it: copies merged, dead leaves gone."""
    return SEARCH.run(lower(random_query(np.random.default_rng(seed)))).module


def row_values(module: Module) -> tuple[int, int] | None:
    """Of the first score row that holds always: its place among the ops and the largest value that a solution gives it."""
    for number, op in enumerate(module.ops):
        if isinstance(op, Linear) and op.when == -1 and len(op.variables):
            free = replace(module, ops=module.ops[:number] + module.ops[number + 1 :], objective=None)
            goal = Objective(op.variables, op.coefficients, 0, op.shift)
            best = brute_force(replace(free, objective=goal)).objective
            return None if best is None else (number, best)
    return None


@pytest.mark.parametrize("seed", range(300, 320))
def test_no_solution_is_lost_and_facts_are_all_that_comes(seed: int) -> None:
    module = merged(seed)
    for probe in (False, True):
        result = BoundFixing(probe=probe).run(module)
        old, new = brute_force(module), brute_force(result.module)
        assert new.solutions == old.solutions
        assert new.objective == old.objective
        added = result.module.ops[len(module.ops) :]
        assert result.module.ops[: len(module.ops)] == module.ops
        assert all(isinstance(op, Facts | Clauses) for op in added)
        assert bool(result.proof_dependencies) == bool(added)


def test_at_the_threshold_and_one_unit_beside_it() -> None:
    """The bound of a row on the best value that there is, one unit of 2**-shift (below 1e-9) below it and above it."""
    asked = refuted = 0
    for seed in range(400, 412):
        module = merged(seed)
        known = row_values(module)
        if known is None:
            continue
        number, best = known
        for offset in (-1, 0, 1):
            row = module.ops[number]
            assert isinstance(row, Linear)
            ops = (*module.ops[:number], replace(row, bound=best + offset), *module.ops[number + 1 :])
            sharp = replace(module, ops=ops)
            result = BoundFixing().run(sharp)
            truth = brute_force(sharp)
            assert (truth.solutions > 0) == (offset <= 0)
            assert brute_force(result.module).solutions == truth.solutions
            asked += offset > 0
            refuted += offset > 0 and result.module.contradictory
    assert asked >= 4
    assert refuted > asked / 2  # most are seen at the root


def test_cases_of_every_kind_keep_their_solutions() -> None:
    """Also those that the engine does not read, which stay as they are."""
    declined = 0
    for case in cases():
        result = BoundFixing().run(case.module)
        assert brute_force(result.module).solutions == brute_force(case.module).solutions
        if result.statistics.get("declined"):
            declined += 1
            assert result.module == case.module
    assert declined  # copies that are not merged, for one


@pytest.mark.parametrize("seed", range(500, 515))
def test_a_start_is_a_solution_and_stays_one_through_the_pipeline(seed: int) -> None:
    module = lower(random_query(np.random.default_rng(seed)))
    started = Pipeline.parse(f"{PIPELINES['native']},warm-start").run(module).module
    compiled = Pipeline.parse("default").run(module)
    if started.warm_start is None:
        assert compiled.module.warm_start is None
        return
    assert brute_force(module).solutions > 0
    assert start_of(started) is not None
    point = start_of(compiled.module)
    assert point is not None
    assert satisfies(module, compiled.recover(point)[None, :])[0]
    assert parse_module(print_module(compiled.module, full=True)) == compiled.module


def test_most_questions_with_an_answer_get_a_start() -> None:
    some = starts = 0
    for seed in range(500, 530):
        query = random_query(np.random.default_rng(seed))
        module = Pipeline.parse("default").run(lower(query)).module
        some += oracle(query)[0]
        starts += module.warm_start is not None
    assert starts > 0.8 * some > 0


def test_a_start_that_is_no_solution_reaches_no_backend() -> None:
    for case in cases():
        wrong = replace(case.module, warm_start=Start(np.arange(case.module.variables, dtype=np.int32)))
        holds = satisfies(case.module, np.ones((1, case.module.variables), bool))[0]
        assert (start_of(wrong) is not None) == holds


@pytest.mark.parametrize("name", ["cpsat", "highs", "z3"])
def test_a_start_ends_a_decision_and_does_not_end_an_optimisation(name: str) -> None:
    backend = get_backend(name)
    seen = set()
    for seed in range(500, 530):
        query = random_query(np.random.default_rng(seed))
        some, best = oracle(query)
        module = Pipeline.parse("default").run(lower(query)).module
        point = start_of(module)
        if point is None:
            continue
        assert some
        outcome = backend.solve(replace(backend.emit(module), warm_start=point), Limits(20))
        assert outcome.assignment is not None
        seen.add(best is None)
        if best is None:
            assert outcome.detail == "the start"
            assert np.array_equal(outcome.assignment, point)
        else:
            assert outcome.termination is Termination.OPTIMAL
    assert seen == {True, False}


def test_pipelines_without_the_engine_hold_nothing_of_it() -> None:
    for name in ("kant", "ensense", "independent"):
        assert not {"bound-fixing", "warm-start"} & {step.name for step in Pipeline.parse(name).steps}
    assert "warm-start" not in PIPELINES["bounded"]
    assert pipeline_for("native", "default") == pipeline_for("native", "bounded") == "native"
    assert pipeline_for("auto", "default") == "native"
    assert pipeline_for("auto", "independent") == "independent"
    assert pipeline_for("highs", "default") == "default"
    assert pipeline_for("native", "kant") == "kant"


def test_the_answer_says_what_it_rests_on() -> None:
    seen = set()
    for seed in range(600, 630):
        query = replace(random_query(np.random.default_rng(seed)), objective=None)
        helped = answer(query, Options(backend="cpsat", time_limit=30))
        alone = (
            answer(query, Options(backend="cpsat", pipeline="independent", time_limit=30)) if len(seen) < 3 else None
        )
        if alone is not None:
            assert helped.verdict is alone.verdict
            assert not alone.proof_dependencies
            assert not alone.warm_started
        if helped.verdict is Verdict.FOUND:
            seen.add("start" if helped.warm_started else "found")
        elif helped.backend == "native":
            assert helped.proof_dependencies == (PREMISE,)
            assert not helped.attempts
            seen.add("refuted")
        elif helped.proof_dependencies:
            assert helped.proof_dependencies == (PREMISE, "infeasible by cpsat (exact)")
            seen.add("both")
        if seen >= {"start", "refuted"}:
            return
    raise AssertionError(seen)
