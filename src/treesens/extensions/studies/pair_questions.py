"""The questions of an audit that no single score answers: outcomes of a decision, and averaged probabilities."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from treesens.binder.file import ResolvedQuestion
from treesens.compiler.base.diagnostics import Diagnostics
from treesens.data.tables import Table
from treesens.extensions.studies.decisions import Around, Asked, decisions_of
from treesens.extensions.studies.questions import Gap, bind_study, check_features, declarations_of, pair_of, pairs_of
from treesens.extensions.studies.typicality import TypicalLevel
from treesens.frontends.base import LoadedModel
from treesens.grammar.tree import ast

_A, _B = ast.Name("a"), ast.Name("b")


@dataclass(frozen=True)
class Wanted:
    """What is wanted of a pair: constraints of one point each, how records name it, and its words. `harder`: a pair that
    fulfils it fulfils those before it, too.
    """

    clauses: tuple[ast.Formula, ...]
    facts: dict[str, Any]
    words: str
    harder: bool = False


@dataclass(frozen=True, eq=False)
class PairQuestion:
    """One question about a set of features, and that for the pair nearest to a row."""

    wanted: Wanted
    query: ResolvedQuestion
    near: ResolvedQuestion
    typical: ResolvedQuestion | None = None
    """The same of typical inputs alone."""


@dataclass(frozen=True, eq=False)
class PairQuestions:
    """All questions about one set of features. `swing` asks for any difference of the probability, if there is one."""

    varied: tuple[str, ...]
    asked: list[PairQuestion]
    swing: ResolvedQuestion | None


def needs_pairs(model: LoadedModel, decision: ast.Decision | None) -> bool:
    """True if an audit has to ask about pairs: nothing that it asks is about one score."""
    return decision is not None or model.ensemble.link.of_several


def wanted_of(
    model: LoadedModel, gaps: Sequence[Gap], asked: Asked | None, decision: ast.Decision | None
) -> tuple[list[Wanted], Around | None]:
    """What is wanted of every set of features, and whose largest swing counts. UsageError for gaps without a meaning."""
    if decision is not None:
        return [Wanted(one.clauses(), one.record(), one.words()) for one in pairs_of(decision)], None
    found = decisions_of(model.ensemble, asked or Asked(gaps[0].kind))
    for one in found:
        for gap in gaps:
            one.check(gap.size)
    if model.ensemble.link.votes:
        return [
            Wanted(one.clauses(gap.size), {gap.kind: gap.value, **one.record()}, one.words(gap.size))
            for one in found
            for gap in gaps
        ], None
    (around,) = found
    assert isinstance(around, Around)
    wanted = [
        Wanted(
            around.clauses(gap.size),
            {gap.kind: gap.value, **around.record()},
            around.words(gap.size),
            harder=number > 0,
        )
        for number, gap in enumerate(gaps)
    ]
    return wanted, around


def pair_questions(
    model: LoadedModel,
    table: Table,
    varied: Sequence[Sequence[str]],
    gaps: Sequence[Gap],
    diagnostics: Diagnostics,
    *,
    asked: Asked | None = None,
    decision: ast.Decision | None = None,
    real: Sequence[str] = (),
    domain: Sequence[ast.Declaration] = (),
    typical: TypicalLevel | None = None,
) -> list[PairQuestions]:
    """The questions about every set of features."""
    wanted, around = wanted_of(model, gaps, asked, decision)
    check_features(model, varied)
    groups = [tuple(group) for group in varied]
    queries = [
        query for number, group in enumerate(groups) for query in _queries(number, group, wanted, around, typical)
    ]
    policy = () if decision is None else (decision,)
    declared = declarations_of(model, real, has_table=True, domain=domain)
    bound = iter(bind_study(model, table, (*declared, *policy, *queries), diagnostics))
    found = []
    for group in groups:
        mine = [PairQuestion(one, next(bound), next(bound), None if typical is None else next(bound)) for one in wanted]
        found.append(PairQuestions(group, mine, None if around is None else next(bound)))
    return found


def _queries(
    number: int,
    group: tuple[str, ...],
    wanted: Sequence[Wanted],
    around: Around | None,
    typical: TypicalLevel | None,
) -> Iterator[ast.Query]:
    """For everything that is wanted a pair, the nearest pair, and a pair of typical inputs; then any two probabilities."""
    nearest = ast.Objective("minimize", ast.Distance(_A, ast.NearestRow(ast.Name("d")), "l2"))
    for i, one in enumerate(wanted):
        for kind, goal in (("q", None), ("n", nearest)):
            yield ast.Query(ast.Name(f"{kind}{number}_{i}"), pair_of(group, one.clauses, goal))
        if typical is not None:
            yield ast.Query(ast.Name(f"t{number}_{i}"), pair_of(group, (*one.clauses, typical.clause())))
    if around is not None:
        apart = ast.Sum((around.score(_A), ast.Negate(around.score(_B))))
        none = ast.Number(around.centre - around.centre)
        yield ast.Query(ast.Name(f"s{number}"), pair_of(group, (ast.Comparison(apart, ">=", none),)))
