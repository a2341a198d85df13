"""Answers that rest on plug-in passes, against enumeration of the question itself: nothing wrong is called `exact`."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests.plugin_passes.conftest import PACKAGE, VERSION
from tests.plugin_passes.wrong import RIGHT, WRONG
from tests.questions import oracle, random_query
from tests.trials import THOROUGH
from treesens.compiler.base.dyadic import Unit
from treesens.compiler.ir.evaluate import brute_force
from treesens.compiler.lower import lower
from treesens.compiler.pipeline import reproducers_in
from treesens.compiler.query.query import Query
from treesens.compiler.result import Proof, Result, Verdict
from treesens.errors import PipelineError
from treesens.records.answers import record
from treesens.records.kept import from_json, to_json
from treesens.records.modules import module_record
from treesens.solve.methods.portfolio import race
from treesens.solve.module import answer_module
from treesens.solve.options import Options
from treesens.solve.question import answer

SEEDS = (105, 100, 109, 112, 110, 108)[: 6 if THOROUGH else 4]
"""Questions with and without answers and objectives."""
BEFORE = "share-copies,drop-dead"


@cache
def asked(seed: int) -> tuple[Query, bool, Fraction | None]:
    query = random_query(np.random.default_rng(seed))
    return query, *oracle(query)


def result_of(query: Query, text: str, backend: str) -> Result:
    return answer(query, Options(backend=backend, pipeline=text, time_limit=20))


def assert_right(query: Query, result: Result, some: bool, best: Fraction | None) -> None:
    """A verdict `found`, and an `exact` verdict or bound, is that of enumeration."""
    if result.verdict is Verdict.FOUND:
        assert some  # a witness is verified, whatever the passes do
    if result.verdict is Verdict.NONE and result.proof is Proof.EXACT:
        assert not some
    goal, told = query.objective, result.objective
    if goal is not None and told is not None and told.bound is not None and result.proof is not Proof.UNVALIDATED:
        assert best is not None
        shown = float(best * goal.unit + goal.offset)
        slack = 1e-6 * max(1.0, abs(shown))
        assert told.bound >= shown - slack if goal.maximize else told.bound <= shown + slack


def assert_named(query: Query, result: Result, name: str) -> None:
    told = record(query, result)
    plugin = {"kind": "pass", "name": name, "package": PACKAGE, "version": VERSION}
    (listed,) = told["plugins"]
    assert {key: listed[key] for key in plugin} == plugin
    assert listed["entry_point"] == f"tests.plugin_passes.wrong:{name.capitalize()}"
    if result.proof is Proof.UNVALIDATED:
        assert told["proof"] == f"unvalidated pass {name}"
        assert told["rests_on"][0] == told["proof"]
    kept = json.loads(json.dumps(to_json(query, result)))
    again = from_json(query, kept, 0.0, None)
    assert again is not None
    assert (again.proof, record(query, again)["plugins"]) == (result.proof, told["plugins"])
    assert record(query, again)["proof"] == told["proof"]


@pytest.mark.sampled
@pytest.mark.parametrize("case", WRONG)
def test_no_exact_answer_is_wrong_and_every_record_names_the_pass(case: str, tmp_path: Path) -> None:
    for number, seed in enumerate(SEEDS):
        query, some, best = asked(seed)
        text = f"{'' if number % 2 else BEFORE + ','}wrong{{case={case}}}"
        try:
            with reproducers_in(tmp_path):
                result = result_of(query, text, ("native", "cpsat", "z3", "auto")[number % 4])
        except PipelineError as error:
            if "failed: the module breaks" not in error.message:
                raise
            continue  # refused before any verdict
        assert_right(query, result, some, best)
        assert_named(query, result, "wrong")


@pytest.mark.sampled
@pytest.mark.parametrize("case", WRONG)
def test_modules_without_a_question_are_treated_alike(case: str, tmp_path: Path) -> None:
    """The answer to a module is judged by enumeration of the module."""
    for number, seed in enumerate(SEEDS):
        module = lower(asked(seed)[0])
        options = Options(backend=("cpsat", "z3", "auto")[number % 3], pipeline=f"wrong{{case={case}}}", time_limit=20)
        try:
            with reproducers_in(tmp_path):
                result = answer_module(module, options, options.budget())
        except PipelineError as error:
            if "failed: the module breaks" not in error.message:
                raise
            continue
        truth, told = brute_force(module), module_record(module, result)
        if result.verdict is not Verdict.UNKNOWN and told["proof"] in {None, "exact"}:
            assert (result.verdict is Verdict.FOUND) == bool(truth.solutions)
        if result.objective is not None and result.objective.bound is not None and told["proof"] is None:
            assert module.objective is not None
            assert truth.objective is not None
            assert result.objective.bound >= Unit(module.objective.shift).nearest(truth.objective)
        assert [plugin["name"] for plugin in told["plugins"]] == ["wrong"]


@pytest.mark.sampled
@pytest.mark.parametrize("backend", ["native", "cpsat", "auto"])
@pytest.mark.parametrize("case", [case for case in RIGHT if case != "guessed-map"])
def test_an_answer_through_a_right_pass_stays_exact(case: str, backend: str) -> None:
    for seed in SEEDS:
        query, some, best = asked(seed)
        plain = result_of(query, BEFORE, backend)
        result = result_of(query, f"{BEFORE},right{{case={case}}}", backend)
        assert_right(query, result, some, best)
        assert_named(query, result, "right")
        if RIGHT[case][1].value == "equivalent":
            assert (result.verdict, result.proof) == (plain.verdict, plain.proof)
            assert (result.objective is None) == (plain.objective is None)
        else:
            assert result.verdict is not Verdict.NONE or result.proof is Proof.EXACT


def test_a_wrong_none_becomes_unknown_and_says_why() -> None:
    query = next(query for query, some, _ in map(asked, SEEDS) if some)
    result = result_of(replace(query, objective=None), "wrong{case=empty-clause}", "cpsat")
    assert result.verdict is Verdict.UNKNOWN
    assert result.reason.startswith(
        f"the pass `wrong{{case=empty-clause}}` of {PACKAGE} is wrong on this module: a solution"
    )
    assert " in cell " in result.reason
    assert result.proof is None


def test_a_pass_that_is_wrong_on_the_module_of_the_solvers_alone() -> None:
    """Under `auto`, the engine and the solvers search different modules."""
    query = replace(next(query for query, some, _ in map(asked, SEEDS) if some), objective=None)
    text = "wrong{case=clause-of-leaves},bounded,wrong{case=only-for-solvers}"
    options = Options(backend="auto", pipeline=text, time_limit=60)
    result = race(query, options, options.budget())  # without later methods, which find a witness
    assert result.attempts[0].termination == "unsupported"
    assert result.verdict is Verdict.UNKNOWN
    assert "the pass `wrong{case=only-for-solvers}` of treesens-careless is wrong on this module" in result.reason
