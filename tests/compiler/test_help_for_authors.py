"""What the author of a pass is told: which op breaks, which modules are small enough, which names a pipeline may have."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest

from treesens.compiler.base.budget import Budget
from treesens.compiler.ir import Clauses, Module
from treesens.compiler.ir.evaluate import brute_force
from treesens.compiler.ir.text import parse_module
from treesens.compiler.passes.base import PassResult, Relation
from treesens.compiler.passes.validation import Outcome
from treesens.compiler.pipeline import PIPELINES, Pipeline
from treesens.errors import PipelineError, UsageError
from treesens.extensions.conformance import passes as conformance
from treesens.solve.validation import validations

SMALL = Path(__file__).parents[2] / "examples" / "small.sir"


@dataclass(frozen=True)
class LosesClauses:
    """Wrong on purpose: without its clauses a module has more solutions."""

    name: ClassVar[str] = "loses-clauses"
    relation: ClassVar[Relation] = Relation.EQUIVALENT

    def run(self, module: Module) -> PassResult:
        return PassResult(replace(module, ops=tuple(op for op in module.ops if not isinstance(op, Clauses))))


def test_a_failed_case_names_the_op_that_breaks() -> None:
    report = conformance.run(LosesClauses())
    assert not report.ok
    assert "a solution of the output violates op 0 (Clauses) of the input" in str(report)


def test_brute_force_refuses_before_it_begins() -> None:
    """Fault: it counted while it enumerated, more than a minute for a question of the examples."""
    module = replace(parse_module(SMALL.read_text()), ops=(), objective=None)
    large = replace(module, variables=module.variables + 50)  # fifty Booleans that may be anything
    with pytest.raises(UsageError, match="more than 1,000,000,000,000 combinations"):
        brute_force(large, 10**12)


def test_the_small_module_takes_every_pass_by_brute_force() -> None:
    module = parse_module(SMALL.read_text())
    assert brute_force(module).solutions > 0
    for name in PIPELINES:
        compiled = Pipeline.parse(name).run(module, verify_each=True, keep_each=True)
        found = validations(compiled, "brute", Budget.of(60))
        assert {one.outcome for one in found} <= {Outcome.PROVED}, found


def test_an_unknown_name_is_answered_with_passes_and_pipelines() -> None:
    with pytest.raises(PipelineError) as raised:
        Pipeline.parse("nosuch")
    assert "share-copies" in raised.value.remedy
    assert all(name in raised.value.remedy for name in PIPELINES)
