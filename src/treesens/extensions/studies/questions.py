"""The questions of a study as syntax trees, bound once: they share one space of cells and one table. Outcomes are two of
a declared decision, or the favourable one for people who get it or not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

from treesens.binder.constructs.decided import outcomes
from treesens.binder.file import ResolvedQuestion, bind
from treesens.compiler.base.diagnostics import Diagnostics, did_you_mean
from treesens.compiler.base.floats import fraction_of
from treesens.compiler.model import Ensemble
from treesens.data.tables import Table
from treesens.errors import UsageError
from treesens.extensions.studies.decisions import Asked, Decision, Kind, decisions_of, default_sizes, label_of_class
from treesens.extensions.studies.typicality import TypicalLevel
from treesens.frontends.base import LoadedModel
from treesens.frontends.meaning import NOTHING_SAID, Meaning
from treesens.grammar.constructs.decided import Decided
from treesens.grammar.tree import ast

_EXAMPLES: dict[Kind, str] = {"gap": "0.1 or 0.05,0.1", "margin": "1 or 0.5,1"}
_A, _B = ast.Name("a"), ast.Name("b")


@dataclass(frozen=True)
class Gap:
    """A size as given: `gap` in probability (or in the value of a regressor), or `margin` in raw score; 0 is any change."""

    kind: Kind
    text: str

    @property
    def size(self) -> Fraction:
        return Fraction(self.text)

    @property
    def value(self) -> float:
        return float(self.text)


@dataclass
class Questions:
    """The questions about one set of features and one decision: per gap one for a pair and one for the nearest pair, and the
    largest swing.
    """

    varied: tuple[str, ...]
    decision: Decision
    gaps: list[tuple[Gap, ResolvedQuestion]]
    near: list[ResolvedQuestion]
    swing: ResolvedQuestion
    typical: list[ResolvedQuestion] = field(default_factory=list)
    """With a level, a pair of typical inputs at every gap, and the largest swing of such a pair."""
    typical_swing: ResolvedQuestion | None = None


def gaps_of(gaps: Sequence[str], margins: Sequence[str]) -> list[Gap]:
    """Gaps from their texts, ascending. UsageError for text that is no number, or below 0."""
    kind: Kind = "gap" if gaps else "margin"
    if gaps and margins:
        raise UsageError("give either gaps (probability) or margins (raw score)")
    remedy = f"write e.g. {_EXAMPLES[kind]}"
    found = {}
    for text in gaps or margins:
        try:
            value = fraction_of(text)
        except (ValueError, ZeroDivisionError):
            raise UsageError(f"`{text}` is no number", remedy=remedy) from None
        if value < 0:
            raise UsageError(f"the {kind} `{text}` is not positive", remedy=remedy)
        found[value] = Gap(kind, text)
    return [found[value] for value in sorted(found)]


def sizes_of(
    model: LoadedModel,
    gaps: Sequence[str],
    margins: Sequence[str],
    threshold: Fraction | None = None,
    classes: Sequence[str] = (),
) -> list[Gap]:
    """Gaps from their texts; those that suit the model if none are given."""
    if gaps or margins:
        return gaps_of(gaps, margins)
    kind, texts = default_sizes(model.ensemble, threshold, classes)
    return [Gap(kind, text) for text in texts]


def questions_of(
    model: LoadedModel,
    table: Table,
    varied: Sequence[Sequence[str]],
    gaps: Sequence[Gap],
    diagnostics: Diagnostics,
    *,
    asked: Asked | None = None,
    real: Sequence[str] = (),
    domain: Sequence[ast.Declaration] = (),
    typical: TypicalLevel | None = None,
) -> list[Questions]:
    """All questions of an audit: for every set of features those of each decision of the model."""
    decisions = decisions_of(model.ensemble, asked or Asked(gaps[0].kind))
    for decision in decisions:
        for gap in gaps:
            decision.check(gap.size)
    check_features(model, varied)
    units = [(tuple(group), decision) for group in varied for decision in decisions]
    queries = [query for number, unit in enumerate(units) for query in _queries(number, *unit, gaps, typical)]
    declared = declarations_of(model, real, has_table=True, domain=domain)
    bound = iter(bind_study(model, table, (*declared, *queries), diagnostics))
    found = []
    for group, decision in units:
        mine = Questions(
            group, decision, [(gap, next(bound)) for gap in gaps], [next(bound) for _ in gaps], next(bound)
        )
        if typical is not None:
            mine.typical, mine.typical_swing = [next(bound) for _ in gaps], next(bound)
        found.append(mine)
    return found


def _queries(
    number: int, group: tuple[str, ...], decision: Decision, gaps: Sequence[Gap], typical: TypicalLevel | None
) -> Iterator[ast.Query]:
    """A pair at every gap, the nearest pair at every gap, the largest swing; then both again for typical inputs."""
    nearest = ast.Objective("minimize", ast.Distance(_A, ast.NearestRow(ast.Name("d")), "l2"))
    for kind, goal in (("q", None), ("n", nearest)):
        for i, gap in enumerate(gaps):
            yield ast.Query(ast.Name(f"{kind}{number}_{i}"), pair_of(group, decision.clauses(gap.size), goal))
    swing = ast.Objective("maximize", decision.difference())
    yield ast.Query(ast.Name(f"s{number}"), pair_of(group, (), swing))
    if typical is not None:
        for i, gap in enumerate(gaps):
            yield ast.Query(ast.Name(f"t{number}_{i}"), pair_of(group, (*decision.clauses(gap.size), typical.clause())))
        yield ast.Query(ast.Name(f"ts{number}"), pair_of(group, (typical.clause(),), swing))


def pair_of(
    varied: Sequence[str], clauses: tuple[ast.Formula, ...], objective: ast.Objective | None = None
) -> ast.Find:
    """Two points `a` and `b` that agree except on `varied`, under more constraints."""
    alike = ast.PointsEqual(_A, _B, features_node(varied))
    return ast.Find((ast.Point(_A), ast.Point(_B)), (alike, *clauses), objective)


def bind_study(
    model: LoadedModel, table: Table | None, declared: Sequence[ast.Declaration], diagnostics: Diagnostics | None
) -> Sequence[ResolvedQuestion]:
    """The typed questions of declarations about the model `m` and the table `d`."""
    return bind(
        ast.File(tuple(declared)),
        Path(),
        load_model=lambda _path, _format: model,
        load_table=lambda _path, _label, _rows: table,  # type: ignore[arg-type, return-value]
        diagnostics=diagnostics,
    ).queries


def check_features(model: LoadedModel, varied: Sequence[Sequence[str]]) -> None:
    """UsageError for a feature that the model does not have."""
    known = model.ensemble.feature_names
    for name in (name for group in varied for name in group):
        if name not in known:
            raise UsageError(f"the model has no feature `{name}`", remedy=did_you_mean(name, known) or "")


def features_node(names: Sequence[str]) -> ast.Features:
    """A set of features; a node holds any name, also one that no text can."""
    return ast.Features(tuple(ast.Name(name) for name in names))


def declarations_of(
    model: LoadedModel, real: Sequence[str], *, has_table: bool, domain: Sequence[ast.Declaration] = ()
) -> tuple[ast.Declaration, ...]:
    """A model `m`, a table `d` that the domains come from, what a user declares of domains, and features that take fractions.
    UsageError for unknown names.
    """
    known = model.ensemble.feature_names
    for name in real:
        if name not in known:
            raise UsageError(f"the model has no feature `{name}`", remedy=did_you_mean(name, known))
    stated = {item.name.text for item in domain if isinstance(item, ast.Feature)}
    if both := stated & set(real):
        raise UsageError(f"`{min(both)}` is declared already", remedy="leave it out of --real")
    table = (ast.Data(ast.Name("d"), ast.Text("d")), ast.DomainFrom(ast.Name("d"))) if has_table else ()
    fractions = tuple(ast.Feature(ast.Name(name), ast.Numeric("real")) for name in real)
    return (ast.Model(ast.Name("m"), ast.Text("m")), *table, *domain, *fractions)


def sets_of(model: LoadedModel, varied: Sequence[Sequence[str]] | None) -> list[tuple[str, ...]]:
    """The sets of features that are asked for; every feature that some tree asks about by itself if none are named, protected
    ones first.
    """
    if varied is not None:
        return [tuple(group) for group in varied]
    protected = model.meaning.protected
    return [(name,) for name in sorted(model.ensemble.used_features, key=lambda name: name not in protected)]


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
