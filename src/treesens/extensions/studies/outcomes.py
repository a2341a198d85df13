"""What studies ask about a declared decision: an outcome for one input, and another one for the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from treesens.binder.constructs.decided import outcomes
from treesens.errors import UsageError
from treesens.grammar.constructs.decided import Decided
from treesens.grammar.tree import ast


@dataclass(frozen=True)
class Outcomes:
    """Two outcomes of a decision: `first` for the point `a`, `second` for `b`."""

    decision: ast.Decision
    first: str
    second: str

    def clauses(self) -> tuple[ast.Formula, ...]:
        """The constraints on the points `a` and `b`."""
        return is_decided("a", self.decision, self.first), is_decided("b", self.decision, self.second)

    def words(self) -> str:
        """The question in words."""
        return f"{self.first} for one input, {self.second} for the other"

    def record(self) -> dict[str, Any]:
        """What records say of it."""
        return {"decision": self.decision.name.text, "outcomes": [self.first, self.second]}


def is_decided(point: str, decision: ast.Decision, outcome: str) -> ast.Formula:
    """`decision(P, NAME) = OUTCOME`"""
    return Decided(ast.Name(point), decision.name, (ast.Name(outcome),))


def pairs_of(decision: ast.Decision) -> list[Outcomes]:
    """Every two outcomes, in the order of the text. UsageError if there is one alone."""
    known = outcomes(decision)
    if len(known) < 2:
        raise UsageError(
            f"`{decision.name.text}` has the outcome `{known[0]}` alone",
            remedy="declare two outcomes or more: `approve when .. else decline`",
        )
    return [Outcomes(decision, one, other) for one, other in combinations(known, 2)]


def refuse_beside(decision: ast.Decision | None, given: Sequence[tuple[str, Any]]) -> None:
    """UsageError for options that say nothing of outcomes: pairs of their words and values."""
    for word, value in given if decision is not None else ():
        if value is not None and value != () and value is not False:
            raise UsageError(
                f"--{word} is about scores, and --decision about outcomes",
                remedy=f"leave out --{word}, or ask about the scores without --decision",
            )
