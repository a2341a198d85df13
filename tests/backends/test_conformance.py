"""The conformance kit: every backend that works here passes it, and backends that lie do not."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest

from treesens.backends.base import (
    Artifact,
    Backend,
    Capabilities,
    Limits,
    OnIncumbent,
    Proof,
    RawOutcome,
    Termination,
    get_backend,
)
from treesens.compiler.ir import Linear, Module, Objective
from treesens.compiler.ir.evaluate import brute_force
from treesens.compiler.ir.text import parse_module, print_module
from treesens.compiler.ir.verifier import verify
from treesens.extensions.conformance import backends as conformance
from treesens.extensions.conformance.passes import Outcome
from treesens.extensions.conformance.shapes import cases

MAY_STAY_OPEN = {
    # Below the tolerances of floating point, or beyond the 60 bits of CP-SAT: honest, and no answer.
    "linear-missed-by-a-bit": {"highs", "scip", "cbc", "gurobi"},
    "big-by-a-bit": {"cpsat", "highs", "scip", "cbc", "gurobi"},
    # The native engine merges copies and takes no other equalities.
    "equal-negated": {"native"},
}


def test_the_cases_are_well_formed_and_hold_every_kind_of_block_and_op() -> None:
    seen: set[str] = set()
    solvable: set[bool] = set()
    for case in cases():
        verify(case.module)
        assert parse_module(print_module(case.module, full=True)) == case.module
        seen |= {type(node).__name__ for node in (*case.module.blocks, *case.module.ops)}
        solvable.add(brute_force(case.module).solutions > 0)
    assert seen == {
        "Order",
        "ExactlyOne",
        "Bool",
        "LeafImplies",
        "LeafSum",
        "Equal",
        "Clauses",
        "Linear",
        "Membership",
        "Facts",
    }
    assert solvable == {True, False}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["native", "cpsat", "highs", "z3", "scip", "cbc", "gurobi"])
def test_backend_is_conformant(name: str) -> None:
    reason = get_backend(name).available()
    if reason is not None:
        pytest.skip(reason)
    report = conformance.run(name)
    assert report.ok, str(report)
    left_open = {check.name.split(" ")[0] for check in report.of(Outcome.OPEN)}
    assert left_open <= {case for case, names in MAY_STAY_OPEN.items() if name in names}, str(report)


class Brute(Backend):
    """Honest, with one way to lie per subclass."""

    name: ClassVar[str] = "brute"
    capabilities: ClassVar[Capabilities] = Capabilities(proof=Proof.EXACT)

    def available(self) -> str | None:
        return None

    def emit(self, module: Module, *, precision: int = 0) -> Artifact:
        del precision
        goal = module.objective
        return Artifact("sir", print_module(module, full=True), module.variables, has_objective=goal is not None)

    def solve(self, artifact: Artifact, limits: Limits, on_incumbent: OnIncumbent | None = None) -> RawOutcome:
        del limits, on_incumbent
        module = parse_module(artifact.text)
        if module.name == "hard":
            return RawOutcome(Termination.TIME)
        found = brute_force(self.changed(module))
        if found.assignment is None:
            return RawOutcome(Termination.INFEASIBLE)
        goal = module.objective
        if goal is None or goal.surrogate or found.objective is None:
            return RawOutcome(Termination.SATISFIED, found.assignment)
        return RawOutcome(Termination.OPTIMAL, found.assignment, self.bound(found.objective, goal))

    def changed(self, module: Module) -> Module:
        return module

    def bound(self, value: int, goal: Objective) -> float | None:
        return value / 2**goal.shift


def test_brute_force_passes_its_own_kit() -> None:
    report = conformance.run(Brute())
    assert report.ok
    assert not report.of(Outcome.OPEN)


class ForgetsRows(Brute):
    def changed(self, module: Module) -> Module:
        return replace(module, ops=tuple(op for op in module.ops if not isinstance(op, Linear)))


class ForgetsConditions(Brute):
    def changed(self, module: Module) -> Module:
        ops = [replace(op, when=-1) if isinstance(op, Linear) else op for op in module.ops]
        return replace(module, ops=tuple(ops))


class Minimises(Brute):
    def changed(self, module: Module) -> Module:
        goal = module.objective
        turned = None if goal is None else replace(goal, coefficients=-goal.coefficients, constant=-goal.constant)
        return replace(module, objective=turned)

    def bound(self, value: int, goal: Objective) -> float | None:
        return None


class ForgetsTheConstant(Brute):
    def bound(self, value: int, goal: Objective) -> float:
        return (value - abs(goal.constant)) / 2**goal.shift


class TimeIsInfeasible(Brute):
    def solve(self, artifact: Artifact, limits: Limits, on_incumbent: OnIncumbent | None = None) -> RawOutcome:
        outcome = super().solve(artifact, limits, on_incumbent)
        return RawOutcome(Termination.INFEASIBLE) if outcome.termination is Termination.TIME else outcome


class BadIncumbents(Brute):
    def solve(self, artifact: Artifact, limits: Limits, on_incumbent: OnIncumbent | None = None) -> RawOutcome:
        if on_incumbent is not None:
            on_incumbent(np.zeros(artifact.variables, bool))
        return super().solve(artifact, limits)


class Throws(Brute):
    def solve(self, artifact: Artifact, limits: Limits, on_incumbent: OnIncumbent | None = None) -> RawOutcome:
        raise ValueError("no")


@pytest.mark.parametrize(
    ("liar", "caught_by", "words"),
    [
        (ForgetsRows, "linear-missed", "breaks the module"),
        (ForgetsConditions, "when", "infeasible, but"),
        (Minimises, "maximum", "can be reached"),
        (ForgetsTheConstant, "maximum", "below the optimum"),
        (TimeIsInfeasible, "time-limit", "planted"),
        (BadIncumbents, "facts", "incumbent 0"),
        (Throws, "path", "ValueError: no"),
    ],
)
def test_a_lie_is_found_where_it_is_told(liar: type[Brute], caught_by: str, words: str) -> None:
    (check,) = conformance.run(liar(), only=[caught_by]).checks
    assert check.outcome is Outcome.FAILED
    assert words in check.reason


def test_a_backend_that_is_not_here_is_open_with_its_reason_and_not_ok() -> None:
    class Absent(Brute):
        def available(self) -> str | None:
            return "not installed: pip install it"

    report = conformance.run(Absent())
    assert not report.ok
    assert "pip install it" in str(report)
