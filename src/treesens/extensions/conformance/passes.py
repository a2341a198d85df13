"""The kit for passes: checks the declared `relation` of a pass on small modules by brute force.

Like the kit for backends, this kit reports each check with a name and a reason, and skips no check silently.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import partial

from treesens.compiler.ir import Module
from treesens.compiler.ir.text import digest
from treesens.compiler.ir.verifier import verify
from treesens.compiler.passes.base import Pass, PassResult, Rewrite
from treesens.compiler.passes.validation import claims_of, misfit, refute_by_brute_force
from treesens.compiler.pipeline import Pipeline
from treesens.errors import PipelineError, TreesensError
from treesens.extensions.conformance.shapes import cases


def run(step: Pass | str) -> Report:
    """Checks a pass, given as an instance or by its pipeline text (`name` or `name{option=value}`)."""
    steps = Pipeline.parse(step).steps if isinstance(step, str) else (step,)
    if len(steps) != 1:
        raise PipelineError(f"`{step}` is not a single pass")
    (tested,) = steps
    checks = [Check("interface", *_guarded(partial(_interface, tested)))]
    checks += [
        Check(f"{case.name} ({case.about})", *_guarded(partial(_check_case, tested, case.module))) for case in cases()
    ]
    return Report(tested.name, tuple(checks), PipelineError)


def _guarded(check: partial[tuple[Outcome, str]]) -> tuple[Outcome, str]:
    try:
        return check()
    except Exception as error:  # noqa: BLE001 (whatever a pass throws is a finding)
        return Outcome.FAILED, f"{type(error).__name__}: {error}"


def _interface(step: object) -> tuple[Outcome, str]:
    if not isinstance(step, Pass):
        return Outcome.FAILED, "the pass lacks name, relation or run"
    hash(step)  # raises TypeError if the pass is not frozen
    return Outcome.PASSED, "a frozen dataclass with name, relation and run"


def _check_case(step: Pass, module: Module) -> tuple[Outcome, str]:
    before = digest(module)
    result: object = step.run(module)
    if not isinstance(result, PassResult):
        return Outcome.FAILED, f"run returned {type(result).__name__}"
    if digest(module) != before:
        return Outcome.FAILED, "the pass changed its input"
    if undeclared := result.statistics.keys() - getattr(step, "statistics_names", {}).keys():
        return Outcome.FAILED, f"statistics that `statistics_names` does not declare: {', '.join(sorted(undeclared))}"
    verify(result.module)
    rewrite = Rewrite(step, step.name, module, result)
    if (words := misfit(rewrite)) is not None:
        return Outcome.FAILED, words
    for claim in claims_of(step.relation):
        if (words := refute_by_brute_force(rewrite, claim)) is not None:
            return Outcome.FAILED, words
    again = step.run(module)
    if digest(again.module) != digest(result.module):
        return Outcome.FAILED, "running twice gives different modules"
    return Outcome.PASSED, step.relation.value


class Outcome(Enum):
    """The result of a check."""

    PASSED = "passed"
    FAILED = "failed"
    OPEN = "open"
    """Inconclusive: neither a wrong fact nor an answer."""


@dataclass(frozen=True)
class Check:
    """One check: its name, outcome and reason."""

    name: str
    outcome: Outcome
    reason: str


@dataclass(frozen=True)
class Report:
    """All checks of one backend or pass."""

    subject: str
    checks: tuple[Check, ...]
    error: type[TreesensError] = TreesensError

    @property
    def ok(self) -> bool:
        """True if no check failed and at least one passed."""
        return not self.of(Outcome.FAILED) and bool(self.of(Outcome.PASSED))

    def of(self, outcome: Outcome) -> list[Check]:
        return [check for check in self.checks if check.outcome is outcome]

    def __str__(self) -> str:
        counts = ", ".join(f"{len(self.of(outcome))} {outcome.value}" for outcome in Outcome)
        shown = [f"  {c.outcome.value}: {c.name}: {c.reason}" for c in self.checks if c.outcome is not Outcome.PASSED]
        return "\n".join([f"{self.subject}: {counts}", *shown])

    def raise_if_wrong(self) -> None:
        """If a check failed or no check passed, raises the kit's error with all checks that did not pass."""
        if not self.ok:
            raise self.error(str(self), remedy="fix the failed cases before using the backend or pass")
