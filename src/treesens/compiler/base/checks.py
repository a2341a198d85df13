"""What a conformance kit reports: checks with a name and a reason, none of them skipped silently."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from treesens.errors import TreesensError


class Outcome(Enum):
    """How a check ended."""

    PASSED = "passed"
    FAILED = "failed"
    OPEN = "open"
    """Inconclusive: no wrong fact, but no answer."""


@dataclass(frozen=True)
class Check:
    """One check: its name, how it ended, and why."""

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
        """No check failed, and something was shown at all."""
        return not self.of(Outcome.FAILED) and bool(self.of(Outcome.PASSED))

    def of(self, outcome: Outcome) -> list[Check]:
        return [check for check in self.checks if check.outcome is outcome]

    def __str__(self) -> str:
        counts = ", ".join(f"{len(self.of(outcome))} {outcome.value}" for outcome in Outcome)
        shown = [f"  {c.outcome.value}: {c.name}: {c.reason}" for c in self.checks if c.outcome is not Outcome.PASSED]
        return "\n".join([f"{self.subject}: {counts}", *shown])

    def raise_if_wrong(self) -> None:
        """Raises the kit's error with everything that did not pass."""
        if not self.ok:
            raise self.error(str(self), remedy="fix the failed cases before using it")
