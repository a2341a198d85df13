"""Finds the largest certified gap of every set of features (`optima.largest_gap`). Gaps up to the value are `found`, gaps
beyond the bound are `none`. For regressors and a chosen class, the gap is the largest score difference, which is the objective.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

from treesens.binder.file import ResolvedQuestion
from treesens.binder.terms import predicts_probabilities
from treesens.compiler.base.budget import Budget
from treesens.compiler.base.diagnostics import Diagnostics
from treesens.compiler.base.tolerance import RELATIVE, Closeness, Tolerance
from treesens.compiler.model import Task
from treesens.compiler.model.evaluate import LibraryReplay
from treesens.compiler.query.probabilities import names_probabilities
from treesens.compiler.query.query import Query
from treesens.compiler.result import Verdict, answered
from treesens.data.tables import align_table
from treesens.extensions.studies.decisions import Apart, Around, Decision, check_votes, decisions_of, natural_question
from treesens.extensions.studies.events import TypicalLevel, typical_level
from treesens.extensions.studies.evidence import LargestSlack
from treesens.extensions.studies.gap import GapOptions, GapRecord
from treesens.extensions.studies.optima import Optimum, best, largest_gap
from treesens.extensions.studies.questions import bind_study, check_features, declarations_of, pair_of, sets_of
from treesens.extensions.studies.running import gathered, library_of, with_study_certificates
from treesens.extensions.studies.shared_records import ToleranceRecord, TypicalRecord, certificates_of
from treesens.extensions.studies.study import Asking, Found
from treesens.grammar.tree import ast
from treesens.records.answers import certificate_record, points_of
from treesens.records.plain import ABSENT
from treesens.solve.conclude import leave_open
from treesens.solve.options import Options


@dataclass(frozen=True, eq=False, kw_only=True)
class LargestGap(Optimum):
    """The largest gap of one set of features and one decision, in units of the raw score (for a forest, of probabilities; for a
    regressor, of values). The verdict is `none` if no pair crosses the threshold; the answer is then closed.
    """

    varied: tuple[str, ...]
    decision: Decision
    close: float
    typical: TypicalLevel | None

    def record(self) -> GapRecord:
        """The gap as a record; points are in the user's own labels."""
        made = [certificate_record(one) for one in self.result.certificates]
        return GapRecord(
            varied=list(self.varied),
            **self.decision.record(),
            verdict=str(self.verdict),
            largest_gap=self.value,
            largest_gap_bound=self.bound,
            unit=_unit_of(self.query),
            closed=self.closed,
            tolerance=ToleranceRecord(relative=self.close, absolute=0.0),
            reason=self.reason,
            points=None if self.witness is None else points_of(self.query, self.witness),
            replay=None if self.witness is None else str(self.witness.replay),
            nodes=self.nodes,
            typical=ABSENT if self.typical is None else TypicalRecord(**self.typical.record()),
            certificates=certificates_of(made),
            seconds=round(self.seconds, 6),
        )


def _unit_of(query: Query) -> str:
    """The unit of the model's scores."""
    ensemble = query.models[0].ensemble
    if predicts_probabilities(ensemble) or ensemble.link.averages:
        return "probability"
    plain = ensemble.task in (Task.REGRESSION, Task.RANKING) or not ensemble.classes
    return "value" if plain and ensemble.link.is_linear else "raw score"


def ask(asked: Asking[GapOptions]) -> Found[GapRecord]:
    """Finds the largest gap of every set; with more than two classes, for each pair of classes."""
    model, options, diagnostics = asked.model, asked.options, Diagnostics()
    table = None if asked.table is None else align_table(model, asked.table)
    varied = sets_of(model, options.vary)
    level = typical_level(options.typical, options.typical_by, has_table=table is not None)
    check_votes(model.ensemble, "the largest gap")
    natural = natural_question(model.ensemble, options.threshold, options.classes)
    decisions = decisions_of(model.ensemble, natural)
    check_features(model, varied)
    units = [(tuple(group), decision) for group in varied for decision in decisions]
    queries = [ast.Query(ast.Name(f"q{i}"), _widest(*unit, level)) for i, unit in enumerate(units)]
    declared = declarations_of(model, options.real, has_table=table is not None, domain=options.domain)
    bound = bind_study(model, table, (*declared, *queries), diagnostics)
    library = library_of(model, options.replay)
    tasks = [partial(_one, *unit, question, asked, level, library) for unit, question in zip(units, bound, strict=True)]
    found = gathered(tasks, options.jobs, lambda one: asked.advance(one.record()))
    records = [one.record() for one in found]
    warnings = tuple(item.render() for item in diagnostics)
    evidence = [
        [LargestSlack(f"the largest gap of {', '.join(one.varied)}", one.query, one.result, one.value)] for one in found
    ]
    return Found(records, warnings, asked.stop.is_set(), all(one.closed for one in records), found, evidence=evidence)


def _widest(varied: tuple[str, ...], decision: Decision, typical: TypicalLevel | None) -> ast.Find:
    """The question for two points on opposite sides of the decision, or as far apart as possible."""
    only = () if typical is None else (typical.clause(),)
    goal = ast.Objective("maximize", decision.difference()) if isinstance(decision, Apart) else None
    return pair_of(varied, (*decision.widest().clauses, *only), goal)


def _one(
    varied: tuple[str, ...],
    decision: Decision,
    question: ResolvedQuestion,
    asked: Asking[GapOptions],
    level: TypicalLevel | None,
    library: list[LibraryReplay] | None,
) -> LargestGap | None:
    if asked.stop.is_set():
        return None
    found = answered(
        f"the largest gap of {' and '.join(varied)}",
        partial(_searched, decision, question, asked, library),
        lambda reason: Optimum(question=question, result=leave_open(question.query.name, reason)),
    )
    return LargestGap(varied=varied, decision=decision, close=asked.options.close, typical=level, **vars(found))


def _searched(
    decision: Decision, question: ResolvedQuestion, asked: Asking[GapOptions], library: list[LibraryReplay] | None
) -> Optimum:
    mine = asked.options
    options = Options(backend="native", time_limit=mine.time_limit, seed=mine.seed, library_predict=library)
    budget = Budget.of(mine.time_limit, asked.stop)
    if isinstance(decision, Apart):
        return _farthest(question, replace(options, threads=mine.threads), mine, budget)
    room = min(decision.centre, 1 - decision.centre) if isinstance(decision, Around) else Fraction(1)
    found = largest_gap(question, options, budget, close=mine.close, most=room, threads=mine.threads)
    return found if names_probabilities(question.query.constraints) else _with_certificate(found, mine)


def _with_certificate(found: Optimum, options: GapOptions) -> Optimum:
    """The gap, with a certificate for its bound or for the absence of any pair."""
    if options.certificates is None or (found.bound is None and found.verdict is not Verdict.NONE):
        return found
    from treesens.extensions.certify.answers import certified_gap, certified_none
    from treesens.extensions.certify.produce import proof_budget

    budget = proof_budget(max(options.time_limit, found.seconds))
    if found.bound is None:
        made = certified_none(found.query, options.certificates, budget=budget)
    else:
        made = [certified_gap(found.query, max(0.0, found.bound), options.certificates, budget=budget)]
    return replace(found, result=replace(found.result, certificates=tuple(made)))


def _farthest(question: ResolvedQuestion, options: Options, mine: GapOptions, budget: Budget) -> Optimum:
    """The largest difference of one score, maximised as an objective up to the usual tolerance, if time permits."""
    options = replace(options, tolerance=min(mine.close, RELATIVE))
    start = time.perf_counter()
    found = best(question.query, options, budget)
    seconds = time.perf_counter() - start
    options = replace(options, certificates=mine.certificates)
    result = with_study_certificates(question.query, found, options, options.time_limit)
    if result.objective is None:
        return Optimum(question=question, result=replace(result, witness=None, certificates=()), seconds=seconds)
    value, bound = result.objective.value, result.objective.bound
    closed = Tolerance(mine.close).closeness(value, bound) is not Closeness.OPEN
    claims = tuple(c for c in result.certificates if c.claim == "bound")
    said = replace(result, reason="" if closed else result.reason, certificates=claims)
    return Optimum(question=question, result=said, value=value, bound=bound, closed=closed, seconds=seconds)
