"""The built-in passes on small modules of every kind, and on published models: no pass is refuted, and few are left open."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests.data.settings import BENCH, needs_bench
from tests.questions import random_query
from treesens.compiler.base.budget import Budget
from treesens.compiler.ir import Module
from treesens.compiler.lower import lower
from treesens.compiler.passes.registry import PASSES
from treesens.compiler.passes.validation import Outcome
from treesens.compiler.pipeline import Pipeline
from treesens.extensions.conformance.shapes import cases
from treesens.extensions.sweeps.instances import questions_of, read_instances
from treesens.records.questions import open_session
from treesens.solve.validation import Validation, validations

INSTANCES = Path(__file__).parents[2] / "benchmarks" / "instances" / "published.jsonl"
COUNT, SECONDS, MOST_OPEN = 40, 10.0, 0.01


def found_for(module: Module, pipeline: str, seconds: float = 60.0) -> list[Validation]:
    compiled = Pipeline.parse(pipeline).run(module, keep_each=True)
    return validations(compiled, "auto", Budget.of(seconds * max(1, len(compiled.rewrites))))


@pytest.mark.parametrize("name", PASSES.builtin)
def test_every_pass_is_proved_on_the_modules_of_the_kit(name: str) -> None:
    left = []
    for case in cases():
        for one in found_for(case.module, name):
            assert one.outcome is not Outcome.COUNTEREXAMPLE, (case.name, str(one))
            left += [(case.name, str(one))] if one.outcome is Outcome.OPEN else []
    assert not left


@pytest.mark.parametrize("pipeline", ["kant", "ensense", "default", "leaf-rows"])
def test_every_pass_is_proved_on_random_questions(pipeline: str) -> None:
    for seed in range(200, 206):
        for one in found_for(lower(random_query(np.random.default_rng(seed))), pipeline):
            assert one.outcome is Outcome.PROVED, (seed, str(one))


@needs_bench
@pytest.mark.thorough
def test_every_pass_is_proved_on_published_models() -> None:
    """Prints the passes that are left open."""
    listed = read_instances(INSTANCES)
    listed = listed[:: len(listed) // COUNT][:COUNT]
    counts: Counter[Outcome] = Counter()
    for key, question in questions_of(listed, BENCH / "models").items():
        session = open_session(question.document.file(), Path(question.document.base), trust_pickle=False)
        (asked,) = (one for one in session.asked() if one.name == question.name)
        module = lower(session.question(asked).query)
        for one in found_for(module, "default", SECONDS):
            assert one.outcome is not Outcome.COUNTEREXAMPLE, (key, str(one))
            counts[one.outcome] += 1
            if one.outcome is Outcome.OPEN:
                print(key, one)
    print(dict(counts))
    assert counts[Outcome.OPEN] <= MOST_OPEN * counts.total()
