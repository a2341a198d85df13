"""The conformance kit for passes: all built-in passes keep it, and passes that break their promises do not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import pytest

from treesens.compiler.ir import Clauses, Equal, Linear, Module
from treesens.compiler.passes.base import PassResult, Relation
from treesens.compiler.passes.registry import PASSES
from treesens.extensions.conformance import passes as conformance
from treesens.extensions.conformance.passes import Outcome


@pytest.mark.parametrize("text", [*PASSES.builtin, "order-predicates{by=uses}", "leaf-rows{intervals=false}"])
def test_pass_is_conformant(text: str) -> None:
    report = conformance.run(text)
    assert report.ok, str(report)
    assert not report.of(Outcome.OPEN)


@dataclass(frozen=True)
class Forgets:
    kind: type = Linear

    name: ClassVar[str] = "forgets"
    relation: ClassVar[Relation] = Relation.EQUIVALENT

    def run(self, module: Module) -> PassResult:
        return PassResult(replace(module, ops=tuple(op for op in module.ops if not isinstance(op, self.kind))))


class ForgetsOpenly(Forgets):
    relation: ClassVar[Relation] = Relation.RELAXATION


@pytest.mark.parametrize("kind", [Linear, Clauses, Equal])
def test_a_pass_that_forgets_is_no_equivalence_but_a_relaxation(kind: type) -> None:
    assert not conformance.run(Forgets(kind)).ok
    assert conformance.run(ForgetsOpenly(kind)).ok
