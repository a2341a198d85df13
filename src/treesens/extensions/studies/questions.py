"""The questions of a study, built as syntax trees and bound together, so that they share one space of cells and one table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from treesens.binder.file import ResolvedQuestion, bind
from treesens.compiler.base.diagnostics import Diagnostics, did_you_mean
from treesens.data.tables import Table
from treesens.errors import UsageError
from treesens.extensions.studies.decisions import Around, Asked, Decision, decisions_of, default_sizes
from treesens.extensions.studies.events import Event, Gap, TypicalLevel, gaps_of, outcome_events
from treesens.extensions.studies.optima import largest_of
from treesens.frontends.base import LoadedModel
from treesens.grammar.tree import ast

_A, _B = ast.Name("a"), ast.Name("b")


@dataclass(frozen=True, eq=False)
class EventQuestion:
    """The questions about an event: one for any pair, one for the pair nearest to a row, one for typical inputs (or None)."""

    event: Event
    query: ResolvedQuestion
    near: ResolvedQuestion
    typical: ResolvedQuestion | None


@dataclass(frozen=True, eq=False)
class SetQuestions:
    """The questions about one set of features: events that share a budget, and the largest swing (or None).

    `score` is the decision if one score decides; None for outcomes, votes and averaged probabilities.
    """

    varied: tuple[str, ...]
    score: Decision | None
    unit: str | None
    asked: list[EventQuestion]
    swing: ResolvedQuestion | None
    typical_swing: ResolvedQuestion | None


@dataclass(frozen=True)
class Family:
    """Events that share a budget, and the decision whose largest swing is searched for (or None)."""

    events: list[Event]
    swings: Decision | None
    of_score: bool

    @property
    def unit(self) -> str | None:
        """The unit of the swing."""
        return None if self.swings is None else self.swings.unit if self.of_score else "probability"

    def largest_swing(self) -> tuple[tuple[ast.Formula, ...], ast.Objective | None]:
        """The constraints and the objective of the largest swing."""
        assert self.swings is not None
        if self.of_score:
            return largest_of(self.swings.difference(), averaged=False)
        assert isinstance(self.swings, Around)
        return largest_of(ast.Sum((self.swings.score(_A), ast.Negate(self.swings.score(_B)))), averaged=True)


def sizes_of(
    model: LoadedModel,
    gaps: Sequence[str],
    margins: Sequence[str],
    threshold: Fraction | None = None,
    classes: Sequence[str] = (),
) -> list[Gap]:
    """The gaps that the texts state, or the default gaps of the model."""
    if gaps or margins:
        return gaps_of(gaps, margins)
    kind, texts = default_sizes(model.ensemble, threshold, classes)
    return [Gap(kind, text) for text in texts]


def needs_pairs(model: LoadedModel, decision: ast.Decision | None) -> bool:
    """True if `decision`, or the model's own decision, is not about a single score."""
    return decision is not None or model.ensemble.link.of_several


def families_of(
    model: LoadedModel, gaps: Sequence[Gap], asked: Asked | None, policy: ast.Decision | None
) -> list[Family]:
    """The families of events for every set of features. Raises UsageError for gaps that the model does not support."""
    if policy is not None:
        return [Family(outcome_events(policy), None, of_score=False)]
    decisions = decisions_of(model.ensemble, asked or Asked(gaps[0].kind))
    for decision in decisions:
        for gap in gaps:
            decision.check(gap.size)
    events = [[one.event(gap, harder=number > 0) for number, gap in enumerate(gaps)] for one in decisions]
    if not needs_pairs(model, None):
        return [Family(some, one, of_score=True) for one, some in zip(decisions, events, strict=True)]
    swings = None if model.ensemble.link.votes else decisions[0]
    return [Family([event for some in events for event in some], swings, of_score=False)]


def questions_of(
    model: LoadedModel,
    table: Table,
    varied: Sequence[Sequence[str]],
    gaps: Sequence[Gap],
    diagnostics: Diagnostics,
    *,
    asked: Asked | None = None,
    policy: ast.Decision | None = None,
    real: Sequence[str] = (),
    domain: Sequence[ast.Declaration] = (),
    typical: TypicalLevel | None = None,
) -> list[SetQuestions]:
    """All questions of an audit: one entry for every set of features and family of events."""
    families = families_of(model, gaps, asked, policy)
    check_features(model, varied)
    units = [(tuple(group), family) for group in varied for family in families]
    queries = [query for number, unit in enumerate(units) for query in _queries(number, *unit, typical)]
    declared = (*declarations_of(model, real, has_table=True, domain=domain), *(() if policy is None else (policy,)))
    bound = iter(bind_study(model, table, (*declared, *queries), diagnostics))
    found = []
    for group, family in units:
        pairs, near = [next(bound) for _ in family.events], [next(bound) for _ in family.events]
        swing = None if family.swings is None else next(bound)
        usual = [None if typical is None else next(bound) for _ in family.events]
        most = next(bound) if typical is not None and family.of_score else None
        questions = list(map(EventQuestion, family.events, pairs, near, usual))
        score = family.swings if family.of_score else None
        found.append(SetQuestions(group, score, family.unit, questions, swing, most))
    return found


def _queries(number: int, group: tuple[str, ...], family: Family, typical: TypicalLevel | None) -> Iterator[ast.Query]:
    """The questions for a pair and for the nearest pair of every event, for the largest swing, and for typical inputs."""
    nearest = ast.Objective("minimize", ast.Distance(_A, ast.NearestRow(ast.Name("d")), "l2"))
    for kind, goal in (("q", None), ("n", nearest)):
        for i, event in enumerate(family.events):
            yield ast.Query(ast.Name(f"{kind}{number}_{i}"), pair_of(group, event.clauses, goal))
    if family.swings is not None:
        clauses, swing = family.largest_swing()
        yield ast.Query(ast.Name(f"s{number}"), pair_of(group, clauses, swing))
    if typical is not None:
        for i, event in enumerate(family.events):
            yield ast.Query(ast.Name(f"t{number}_{i}"), pair_of(group, (*event.clauses, typical.clause())))
        if family.of_score:
            yield ast.Query(ast.Name(f"ts{number}"), pair_of(group, (typical.clause(),), swing))


def pair_of(
    varied: Sequence[str], clauses: tuple[ast.Formula, ...], objective: ast.Objective | None = None
) -> ast.Find:
    """The question for two points `a` and `b` that agree in all features except `varied` and satisfy `clauses`."""
    alike = ast.PointsEqual(_A, _B, features_node(varied))
    return ast.Find((ast.Point(_A), ast.Point(_B)), (alike, *clauses), objective)


def bind_study(
    model: LoadedModel, table: Table | None, declared: Sequence[ast.Declaration], diagnostics: Diagnostics | None
) -> Sequence[ResolvedQuestion]:
    """The bound questions of declarations about the model `m` and the table `d`."""
    return bind(
        ast.File(tuple(declared)),
        Path(),
        load_model=lambda _path, _format: model,
        load_table=lambda _path, _label, _rows: table,  # type: ignore[arg-type, return-value]
        diagnostics=diagnostics,
    ).queries


def check_features(model: LoadedModel, varied: Sequence[Sequence[str]]) -> None:
    """Raises UsageError for a feature that the model does not have."""
    known = model.ensemble.feature_names
    for name in (name for group in varied for name in group):
        if name not in known:
            raise UsageError(f"the model has no feature `{name}`", remedy=did_you_mean(name, known) or "")


def features_node(names: Sequence[str]) -> ast.Features:
    """A set of features as a syntax node, which accepts any name, even a name that cannot be written as text."""
    return ast.Features(tuple(ast.Name(name) for name in names))


def declarations_of(
    model: LoadedModel, real: Sequence[str], *, has_table: bool, domain: Sequence[ast.Declaration] = ()
) -> tuple[ast.Declaration, ...]:
    """The model `m`, the table `d` with the domains, the user's declarations of domains, and features that may take fractions.
    Raises UsageError for unknown names.
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
    """The requested sets of features; if no set is named, each protected feature and then each other feature that a tree splits
    on is a set by itself.
    """
    if varied is not None:
        return [tuple(group) for group in varied]
    return [(name,) for name in dict.fromkeys((*model.meaning.protected, *model.ensemble.used_features))]
