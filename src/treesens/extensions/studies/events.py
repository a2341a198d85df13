"""Events: conditions on two inputs, the first on one side of a decision and the second on another side.

A side is a set of constraints on one point: a score above or below a cut-off, a predicted class, or an outcome of a declared
decision. If only the change of a score counts, one constraint relates both points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from typing import Any, Literal

from treesens.binder.constructs.decided import outcomes
from treesens.compiler.base.diagnostics import did_you_mean
from treesens.compiler.base.floats import fraction_of
from treesens.compiler.model import Ensemble
from treesens.errors import UsageError
from treesens.frontends.meaning import NOTHING_SAID, Meaning
from treesens.grammar.constructs.decided import Decided
from treesens.grammar.constructs.typical import Typical
from treesens.grammar.printing.print_terms import decimal
from treesens.grammar.tree import ast
from treesens.grammar.tree.words import TYPICAL_WAYS

Kind = Literal["gap", "margin"]
"""The unit of a gap: probability (for a regressor, its value), or raw score."""
_EXAMPLES: dict[Kind, str] = {"gap": "0.1 or 0.05,0.1", "margin": "1 or 0.5,1"}


@dataclass(frozen=True)
class Event:
    """The constraints on the first point `a` and on the second point `b`; `both` relates the points.

    `name` is short (`gap 0.1`); `facts` holds the fields of records that identify the event (`gap`, `classes`, `outcomes`, ..);
    `words` is the question as text; `size` is the gap, or 0. A pair for a `harder` event also answers all events before it.
    """

    one: tuple[ast.Formula, ...] = ()
    other: tuple[ast.Formula, ...] = ()
    both: tuple[ast.Formula, ...] = ()
    name: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    words: str = ""
    size: Fraction = Fraction(0)
    harder: bool = False

    @property
    def clauses(self) -> tuple[ast.Formula, ...]:
        """All constraints."""
        return (*self.one, *self.other, *self.both)


@dataclass(frozen=True)
class Gap:
    """A gap as given: `gap` in probability (for a regressor, in its value), or `margin` in raw score; 0 means any change."""

    kind: Kind
    text: str

    @property
    def size(self) -> Fraction:
        return Fraction(self.text)

    @property
    def value(self) -> float:
        return float(self.size)


def gaps_of(gaps: Sequence[str], margins: Sequence[str]) -> list[Gap]:
    """The gaps that the texts state, in ascending order. Raises UsageError for a text that is not a number, or is below 0."""
    kind: Kind = "gap" if gaps else "margin"
    if gaps and margins:
        raise UsageError("pass either gaps (probability) or margins (raw score)")
    remedy = f"write e.g. {_EXAMPLES[kind]}"
    found = {}
    for text in gaps or margins:
        try:
            value = fraction_of(text)
        except (ValueError, ZeroDivisionError):
            raise UsageError(f"`{text}` is not a number", remedy=remedy) from None
        if value < 0:
            raise UsageError(f"the {kind} `{text}` is not positive", remedy=remedy)
        found[value] = Gap(kind, text)
    return [found[value] for value in sorted(found)]


def outcome_events(decision: ast.Decision) -> list[Event]:
    """One event for each pair of different outcomes, in the order of the text. Raises UsageError if the decision has only one
    outcome.
    """
    known, name = outcomes(decision), decision.name.text
    if len(known) < 2:
        raise UsageError(
            f"`{name}` has only the outcome `{known[0]}`",
            remedy="declare two outcomes or more: `approve when .. else decline`",
        )
    return [
        Event(
            (is_decided("a", decision, one),),
            (is_decided("b", decision, other),),
            name=f"{name} {one} {other}",
            facts={"decision": name, "outcomes": [one, other]},
            words=f"{one} for one input, {other} for the other",
        )
        for one, other in combinations(known, 2)
    ]


def is_decided(point: str, decision: ast.Decision, outcome: str) -> ast.Formula:
    """The formula `decision(P, NAME) = OUTCOME`."""
    return Decided(ast.Name(point), decision.name, (ast.Name(outcome),))


def refuse_beside(decision: ast.Decision | None, given: Sequence[tuple[str, Any]]) -> None:
    """Raises UsageError for options that do not apply to outcomes; `given` holds pairs of option names and values."""
    for word, value in given if decision is not None else ():
        if value is not None and value != () and value is not False:
            raise UsageError(
                f"--{word} is about scores, and --decision about outcomes",
                remedy=f"leave out --{word}, or ask about the scores without --decision",
            )


def favourable_class(ensemble: Ensemble, name: str | None, meaning: Meaning = NOTHING_SAID) -> int:
    """The index of the favourable class: the class with the label `name`, or with this name in `meaning`; without a name, the
    class that is stated as favourable. Raises UsageError if no class is stated (a guess would explain the decisions of the
    wrong people), for a class that the model lacks, and for a regressor.
    """
    called = {said: label for label, said in meaning.classes.items()}
    name = meaning.favourable if name is None else called.get(name, name)
    known = [str(c) for c in ensemble.classes]
    if not known:
        raise UsageError("a regressor decides nothing", remedy="ask about a classifier")
    if name is None:
        classes = [f"{label} ({meaning.classes[label]})" if label in meaning.classes else label for label in known[:8]]
        raise UsageError(
            "no favourable class is stated",
            remedy=f'add --favourable, one of {", ".join(classes)}, or write favourable = "CLASS" into treesens.toml',
        )
    if name not in known:
        remedy = did_you_mean(name, [*known, *called])
        if not called:
            remedy += f'; to use a name, write classes = {{{known[0]} = "{name}", ..}} into treesens.toml'
        raise UsageError(f"--favourable: the model has no class `{name}`", remedy=remedy)
    return known.index(name)


@dataclass(frozen=True)
class TypicalLevel:
    """The percentage of fresh inputs that are typical, and the method (`way`) to learn from the table `d` what is typical."""

    percent: Fraction
    way: str = TYPICAL_WAYS[0]

    def clause(self) -> ast.Formula:
        """The constraint that both points of a study's question are typical."""
        points = ast.Name("a"), ast.Name("b")
        return Typical(points, ast.Name("d"), ast.Number(self.percent), self.way)

    def record(self) -> dict[str, Any]:
        return {"percent": float(self.percent), "way": self.way}

    def __str__(self) -> str:
        return f"{decimal(self.percent)} % by {self.way}"


def typical_level(level: str | None, way: str | None, *, has_table: bool) -> TypicalLevel | None:
    """The level that the options state; None without them. Raises UsageError for a text that is not a percentage."""
    if level is None:
        if way is not None:
            raise UsageError("--typical-by has no effect without --typical", remedy="add --typical 95%")
        return None
    try:
        percent = Fraction(level.strip().removesuffix("%").strip())
    except (ValueError, ZeroDivisionError):
        raise UsageError(f"`{level}` is not a percentage", remedy="write --typical 95%") from None
    if not 0 < percent < 100:
        raise UsageError(f"`{level}` is not a share of inputs", remedy="write a number between 0 and 100")
    if not _is_decimal(percent):
        raise UsageError(f"`{level}` has no finite decimals", remedy="write --typical 95%")
    if not has_table:
        raise UsageError("typical inputs are learnt from rows", remedy="add --data FILE")
    return TypicalLevel(percent, way or TYPICAL_WAYS[0])


def _is_decimal(value: Fraction) -> bool:
    rest = value.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    return rest == 1
