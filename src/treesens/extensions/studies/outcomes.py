"""Outcomes in the questions of studies: two of a declared decision, or the favourable one for people who get it or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

from treesens.binder.constructs.decided import outcomes
from treesens.compiler.base.diagnostics import did_you_mean
from treesens.compiler.model import Ensemble
from treesens.errors import UsageError
from treesens.extensions.studies.decisions import label_of_class
from treesens.frontends.meaning import NOTHING_SAID, Meaning
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


def favourable_class(ensemble: Ensemble, name: str | None, meaning: Meaning = NOTHING_SAID) -> int:
    """The place of the favourable class: the one with this label, or with this given name (`meaning`); without either, the
    one stated to be favourable. UsageError if nothing states which one is: a guess would explain the decisions of the wrong
    people. UsageError if the model has no class of that name, or decides nothing.
    """
    called = {said: label for label, said in meaning.classes.items()}
    name = meaning.favourable if name is None else called.get(name, name)
    known = [str(c) for c in ensemble.classes]
    if not known:
        raise UsageError("a regressor decides nothing", remedy="ask about a classifier")
    if name is None:
        classes = [f"{label} ({meaning.classes[label]})" if label in meaning.classes else label for label in known[:8]]
        raise UsageError(
            "which class is favourable? Nothing says so",
            remedy=f'add --favourable, one of {", ".join(classes)}, or write favourable = "{known[0]}" into treesens.toml',
        )
    if name not in known:
        raise UsageError(f"the model has no class `{name}`", remedy=did_you_mean(name, [*known, *called]))
    return known.index(name)


def favourable_clause(ensemble: Ensemble, favourable: int, threshold: Fraction | None) -> ast.Formula:
    """The point `a` gets the favourable decision."""
    point, label = ast.Name("a"), label_of_class(ensemble, favourable)
    if threshold is None:
        return ast.ClassIs(point, label)
    return ast.Comparison(ast.Prob(point, label), ">=", ast.Number(threshold))
