"""The largest certified gap: the greatest g for which the answer to `sensitive m to F margin g` is `found`.

Around a cut-off the gap is the lesser distance of both scores from it, between two classes the lesser lead, and for a score
that just moves (a regressor, one chosen class) the largest difference, which is an objective of its own.

One search of the native engine maximises the lesser slack of both scores (`Solver(mode="slack")`). Whenever it stops it has a
verified pair, which reaches the gap `value`, and a proof that no pair reaches more than `bound`. Gaps up to the one are
`found`, gaps beyond the other are `none`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from math import ceil
from typing import Any

from treesens.backends.native.backend import NativeArtifact, NativeBackend
from treesens.backends.native.solver import SearchResult, Solver
from treesens.binder.file import ResolvedQuestion
from treesens.binder.terms import predicts_probabilities
from treesens.compiler.base.budget import Budget, OutOfTime, working_within
from treesens.compiler.base.diagnostics import Diagnostics
from treesens.compiler.base.dyadic import Unit, nearest_double
from treesens.compiler.base.floats import NumberType, ceil_to
from treesens.compiler.base.tolerance import RELATIVE, Closeness, Tolerance
from treesens.compiler.model import Task
from treesens.compiler.model.evaluate import LibraryReplay
from treesens.compiler.pipeline import Compilation, compile_query, decide_at_compile_time
from treesens.compiler.query.evaluate import form_value, inputs_of, linear_constraints
from treesens.compiler.query.probabilities import names_probabilities
from treesens.compiler.query.query import AtLeast, Query
from treesens.compiler.result import Certified, Result, Verdict, answered
from treesens.data.tables import Table, align_table
from treesens.extensions.studies.decisions import (
    Apart,
    Around,
    Decision,
    check_votes,
    decisions_of,
    natural_question,
)
from treesens.extensions.studies.gap import CLOSE, GapOptions, GapRecord
from treesens.extensions.studies.halving import halve_gap
from treesens.extensions.studies.questions import bind_study, check_features, declarations_of, pair_of, sets_of
from treesens.extensions.studies.running import as_finished, library_of, with_study_certificates
from treesens.extensions.studies.shared_records import ToleranceRecord, TypicalRecord, certificates_of
from treesens.extensions.studies.study import Asking, Found
from treesens.extensions.studies.typicality import TypicalLevel, typical_level
from treesens.frontends.base import LoadedModel
from treesens.grammar.tree import ast
from treesens.records.answers import certificate_record, points_of
from treesens.records.plain import ABSENT
from treesens.solve.conclude import conclude_contradiction, conclude_found, conclude_none, leave_open
from treesens.solve.driver import FIRST_MOMENT, NOT_COMPILED
from treesens.solve.options import Options
from treesens.solve.question import answer
from treesens.values.verify import Witness, verify_cells

_BITS = 128
"""Of a logarithm in the gap of a pair, which is shown as a float64."""


@dataclass(frozen=True)
class LargestGap:
    """What is known about the largest gap of one set of features and one decision, in units of the raw score (a forest has
    probabilities, a regressor values).

    `value` is reached by the verified `witness`, no pair reaches more than `bound`; both None if nothing is known. `closed`
    says whether the bound is as close to the value as was asked for; `verdict` is `none` if no pair crosses the threshold:
    nothing is open then.
    """

    varied: tuple[str, ...]
    decision: Decision
    query: ResolvedQuestion
    verdict: Verdict
    value: float | None
    bound: float | None
    closed: bool
    reason: str
    witness: Witness | None
    seconds: float
    nodes: int = 0
    certificates: tuple[Certified, ...] = ()
    """Of the bound, or of there being no pair; several if it is proved in cases, which hold together only."""
    close: float = CLOSE
    typical: TypicalLevel | None = None

    def __post_init__(self) -> None:
        if self.verdict is Verdict.NONE:
            object.__setattr__(self, "closed", True)

    def record(self) -> GapRecord:
        """The facts for JSON; points in the user's own labels."""
        made = [certificate_record(one) for one in self.certificates]
        return GapRecord(
            varied=list(self.varied),
            **self.decision.record(),
            verdict=str(self.verdict),
            largest_gap=self.value,
            largest_gap_bound=self.bound,
            unit=_unit_of(self.query.query),
            closed=self.closed,
            tolerance=ToleranceRecord(relative=self.close, absolute=0.0),
            reason=self.reason,
            points=None if self.witness is None else points_of(self.query.query, self.witness),
            replay=None if self.witness is None else str(self.witness.replay),
            nodes=self.nodes,
            typical=ABSENT if self.typical is None else TypicalRecord(**self.typical.record()),
            certificates=certificates_of(made),
            seconds=round(self.seconds, 6),
        )


def _unit_of(query: Query) -> str:
    """What the scores of the model are."""
    ensemble = query.models[0].ensemble
    if predicts_probabilities(ensemble) or ensemble.link.averages:
        return "probability"
    plain = ensemble.task in (Task.REGRESSION, Task.RANKING) or not ensemble.classes
    return "value" if plain and ensemble.link.is_linear else "raw score"


@dataclass
class LargestGaps:
    """One entry per set of features, in the order of the request; those that were not reached are left out."""

    results: list[LargestGap] = field(default_factory=list)
    interrupted: bool = False
    warnings: tuple[str, ...] = ()


def questions_of(
    model: LoadedModel,
    table: Table | None,
    varied: Sequence[Sequence[str]],
    options: GapOptions,
    diagnostics: Diagnostics | None = None,
    typical: TypicalLevel | None = None,
) -> list[tuple[tuple[str, ...], Decision, ResolvedQuestion]]:
    """A question per set and decision, over the table's domain if there is one."""
    check_votes(model.ensemble, "the largest gap")
    asked = natural_question(model.ensemble, options.threshold, options.classes)
    decisions = decisions_of(model.ensemble, asked)
    check_features(model, varied)
    units = [(tuple(group), decision) for group in varied for decision in decisions]
    only = () if typical is None else (typical.clause(),)
    queries = [ast.Query(ast.Name(f"q{i}"), _widest(*unit, only)) for i, unit in enumerate(units)]
    declared = declarations_of(model, options.real, has_table=table is not None, domain=options.domain)
    bound = bind_study(model, table, (*declared, *queries), diagnostics)
    return [(*unit, question) for unit, question in zip(units, bound, strict=True)]


def _widest(varied: Sequence[str], decision: Decision, only: tuple[ast.Formula, ...]) -> ast.Find:
    """Two points on both sides of what decides, or as far apart as they can be."""
    if isinstance(decision, Apart):
        return pair_of(varied, only, ast.Objective("maximize", decision.difference()))
    return pair_of(varied, (*decision.widest().clauses, *only))


def largest_gaps(
    model: LoadedModel,
    table: Table | None = None,
    *,
    options: GapOptions | None = None,
    stop: threading.Event | None = None,
    on_result: Callable[[LargestGap], None] | None = None,
) -> LargestGaps:
    """The largest gap of every set of features, between every two classes of a model of several. A set
    event keeps what is known by then.
    """
    options = options or GapOptions()
    table = None if table is None else align_table(model, table)
    groups = sets_of(model, options.vary)
    halt = stop or threading.Event()
    diagnostics = Diagnostics()
    level = typical_level(options.typical, options.typical_by, has_table=table is not None)
    questions = questions_of(model, table, groups, options, diagnostics, level)
    library_predict = library_of(model, options.replay)
    found: dict[int, LargestGap] = {}
    tasks = [partial(_one, *unit, options, level, library_predict, halt) for unit in questions]
    for number, result in as_finished(tasks, options.jobs):
        if result is not None:
            found[number] = result
            if on_result is not None:
                on_result(result)
    return LargestGaps([found[i] for i in sorted(found)], halt.is_set(), tuple(item.render() for item in diagnostics))


def _one(
    varied: tuple[str, ...],
    decision: Decision,
    question: ResolvedQuestion,
    options: GapOptions,
    level: TypicalLevel | None,
    library_predict: list[LibraryReplay] | None,
    stop: threading.Event,
) -> LargestGap | None:
    if stop.is_set():
        return None
    bare = LargestGap(
        varied,
        decision,
        question,
        Verdict.UNKNOWN,
        None,
        None,
        False,
        "",
        None,
        0.0,
        close=options.close,
        typical=level,
    )
    return answered(
        f"the largest gap of {' and '.join(varied)}",
        lambda: _searched(bare, options, library_predict, stop),
        lambda reason: replace(bare, reason=reason),
    )


def _searched(
    bare: LargestGap, options: GapOptions, library_predict: list[LibraryReplay] | None, stop: threading.Event
) -> LargestGap:
    start, question = time.perf_counter(), bare.query
    asked = Options(backend="native", time_limit=options.time_limit, seed=options.seed, library_predict=library_predict)
    if isinstance(bare.decision, Apart):
        return _farthest(bare, replace(asked, threads=options.threads), options, stop)
    budget = Budget.of(options.time_limit, stop)
    if names_probabilities(question.query.constraints):
        return _halved(bare, asked, budget)
    try:
        with working_within(budget.at_least(FIRST_MOMENT)):
            compilation = compile_query(question.query, "native")
    except OutOfTime:
        reason = f"{budget.reason}: {NOT_COMPILED}"
        return replace(bare, reason=reason, seconds=time.perf_counter() - start)
    known = decide_at_compile_time(compilation)
    if known is not None:
        done = _said(bare, conclude_contradiction(question.name, known), seconds=time.perf_counter() - start)
        return _with_certificate(done, options)
    artifact = NativeBackend().emit(compilation.module, alike=True)
    assert isinstance(artifact, NativeArtifact)
    if artifact.adapted is None:
        return replace(bare, reason="the domain leaves nothing to search for")
    solver = Solver(artifact.adapted.problem, mode="slack", seed=options.seed, threads=options.threads)
    # What rounded rows lack comes to the bound after the search.
    solver.set_gap(relative=options.close / 2 if artifact.adapted.relaxed else options.close)
    result = solver.run_within(budget)
    done = _judged(bare, compilation, artifact, result, asked)
    done = replace(done, seconds=time.perf_counter() - start, nodes=result.statistics.nodes)
    return _with_certificate(done, options)


def _halved(bare: LargestGap, asked: Options, budget: Budget) -> LargestGap:
    """The largest gap of a mean of several models, which no search of the engine maximises."""
    assert isinstance(bare.decision, Around)
    centre = bare.decision.centre
    known = halve_gap(bare.query.query, min(centre, 1 - centre), replace(asked, backend="auto"), budget, bare.close)
    said = leave_open(bare.query.name, known.reason, witness=known.witness)
    if known.empty:
        said = conclude_none(said, known.reason)
    elif known.witness is not None:
        said = conclude_found(said, known.reason)
    return _said(bare, said, value=known.value, bound=known.bound, closed=known.closed, seconds=known.seconds)


def _said(bare: LargestGap, result: Result, **known: Any) -> LargestGap:
    """The gap with the verdict, the reason and the pair of a result."""
    return replace(bare, verdict=result.verdict, reason=result.reason, witness=result.witness, **known)


def _with_certificate(done: LargestGap, options: GapOptions) -> LargestGap:
    """The gap with the certificate of its bound, or of there being no pair at all."""
    if options.certificates is None or (done.bound is None and done.verdict is not Verdict.NONE):
        return done
    from treesens.extensions.certify.answers import certified_gap, certified_none
    from treesens.extensions.certify.produce import proof_budget

    query, budget = done.query.query, proof_budget(max(options.time_limit, done.seconds))
    if done.bound is None:
        made = certified_none(query, options.certificates, budget=budget)
    else:
        made = [certified_gap(query, max(0.0, done.bound), options.certificates, budget=budget)]
    return replace(done, certificates=tuple(made))


def _farthest(bare: LargestGap, asked: Options, options: GapOptions, stop: threading.Event) -> LargestGap:
    """The largest difference of one score, which the engine maximises: as closely as everywhere, if there is time."""
    asked = replace(asked, tolerance=min(options.close, RELATIVE))
    query = bare.query.query
    start = time.perf_counter()
    result = answer(query, asked, Budget.of(asked.time_limit, stop))
    seconds = time.perf_counter() - start
    result = with_study_certificates(query, result, replace(asked, certificates=options.certificates), asked.time_limit)
    if result.objective is None:
        return replace(bare, verdict=result.verdict, reason=result.reason, seconds=seconds)
    value, bound = result.objective.value, result.objective.bound
    closed = Tolerance(options.close).closeness(value, bound) is not Closeness.OPEN
    reason = "" if closed else result.reason
    claims = tuple(c for c in result.certificates if c.claim == "bound")
    done = replace(bare, verdict=result.verdict, value=value, bound=bound, closed=closed, reason=reason)
    return replace(done, witness=result.witness, seconds=seconds, certificates=claims)


def _judged(
    bare: LargestGap, compilation: Compilation, artifact: NativeArtifact, result: SearchResult, options: Options
) -> LargestGap:
    """From the engine's facts to what they say: a pair counts when it is verified, a bound is a proof."""
    adapted, query = artifact.adapted, bare.query.query
    assert adapted is not None
    assert artifact.postsolve is not None
    whole = Unit(adapted.gap_shift).size
    unit = whole / query.models[0].ensemble.average
    least, most = _rounded_up(query, whole, Unit(adapted.coarsest_shift).size)
    # A row that is rounded outward has more slack than it should, or up to one unit less: each leaf is rounded by itself.
    less, more = (1, _leaves_summed(query)) if adapted.relaxed else (0, 0)
    upper = None if result.upper is None else result.upper + most + less
    bound = None if upper is None else ceil_to(upper * unit, NumberType.FLOAT64)
    open_result = leave_open(query.name)
    if result.status == "infeasible" or (bound is not None and bound < 0):
        return _said(bare, conclude_none(open_result, "no pair crosses the threshold"), bound=bound, closed=True)
    open_reason = "" if result.status != "open" else f"{result.reason or 'time'}: at bound level `{result.bound_level}`"
    if result.assignment is None or not result.is_witness:
        return replace(bare, bound=bound, reason=open_reason or "no pair found")
    assignment = artifact.postsolve.recover(adapted.assignment(result.assignment, artifact.merged_variables))
    compiled = compilation.compiled
    verdict = verify_cells(
        query, compiled.source.cells(compiled.recover(assignment)), library_predict=options.library_predict
    )
    if not isinstance(verdict, Witness):
        return replace(bare, bound=bound, reason=f"a pair was not confirmed: {verdict.reason}")
    value, pair = _reached(bare.query, verdict), replace(open_result, witness=verdict)
    assert result.level is not None
    near = 1e-9 * (1 + abs(value))
    if not (result.level + least - more) * unit - near <= value <= (result.level + most + less) * unit + near:
        # Some row is no row of scores: the least slack is no gap, and neither is its bound.
        reason = "the least slack of the search is not the gap of its pair"
        return _said(bare, conclude_found(pair, reason), value=value)
    bound = bound if bound is None else max(bound, value)
    # A finished search is no closed gap: a cut-off between two whole scores leaves the bound a part of a unit above the value.
    # The search ends at the tolerance itself, and both numbers are rounded once more.
    allowed = Tolerance(bare.close * (1 + 1e-9), near)
    near_enough = bound is not None and allowed.closeness(value, bound) is not Closeness.OPEN
    closed = result.status != "open" and near_enough
    why = "a leaf is so large that scores are rounded" if adapted.relaxed else "the cut-off lies between two scores"
    reason = open_reason or ("" if closed else f"{why}, and the bound is at the next one")
    return _said(bare, conclude_found(pair, reason), value=value, bound=bound, closed=closed)


def _score_rows(query: Query) -> list[AtLeast]:
    """The rows whose slack is the gap: not those of what is typical."""
    return [row for row in linear_constraints(query.constraints) if row.form.scores]


def _leaves_summed(query: Query) -> int:
    """The most leaves that a row of scores adds up, and one for its bound: by so many units rounding moves it at most."""
    sizes = [
        sum(query.models[query.points[term.point].model].ensemble.n_trees + 1 for term in row.form.scores)
        for row in _score_rows(query)
    ]
    return 1 + max(sizes)


def _rounded_up(query: Query, unit: Fraction, coarsest: Fraction) -> tuple[Fraction, Fraction]:
    """By how much the engine's whole bounds lie above the bounds of the rows: the least and the most, in units of the sum.

    Scores are whole numbers of units, cut-offs need not be. A row whose own unit is coarser, up to `coarsest`, was rounded up
    to that one.
    """
    parts = [Fraction(0), coarsest / unit] if coarsest > unit else []
    for row in _score_rows(query):
        ensembles = {term.point: query.models[query.points[term.point].model].ensemble for term in row.form.scores}
        base = sum(
            term.coefficient * Fraction(float(ensembles[term.point].base[term.output])) * ensembles[term.point].average
            for term in row.form.scores
        )
        low, high = ((end - base) / unit for end in row.bound.enclose(_BITS))
        parts += [ceil(high) - low, ceil(low) - high]
    return min(parts), max(parts)


def _reached(question: ResolvedQuestion, witness: Witness) -> float:
    """The gap of a pair: the lesser margin of the two, exact sums rounded once."""
    query = question.query
    inputs = inputs_of(query, witness.values)
    rows = _score_rows(query)
    slacks = [form_value(row.form, inputs) - row.bound.enclose(_BITS)[0] for row in rows]
    return nearest_double(min(slacks) / query.models[0].ensemble.average)


def ask(asked: Asking[GapOptions]) -> Found[GapRecord]:
    """The largest gap of every set, and between every two classes of a model of several."""
    found = largest_gaps(asked.model, asked.table, options=asked.options, stop=asked.stop, on_result=asked.advance)
    records = [one.record() for one in found.results]
    return Found(records, found.warnings, found.interrupted, all(one.closed for one in records), found)
