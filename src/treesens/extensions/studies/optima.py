"""Optima of studies: the best value of a score or a difference, an input that reaches the value, and a proved bound.

There are three searches. An objective is optimised by the usual methods. The largest gap is the greatest g for which the answer
to `sensitive m to F margin g` is `found`: for a pair, g is the smaller distance of the two scores from the cut-off, or the
smaller lead of the two classes. One search of the native engine maximises this slack (`Solver(mode="slack")`). Whenever the
search stops, a verified pair reaches `value`, and no pair reaches more than `bound` (proved).

For probabilities that are not functions of one score, the interval between value and bound is bisected. The answer `found`
raises the value, and `none` lowers the bound. The next question is about the midpoint or, after an open answer, about a smaller
gap, for which a pair is easier to find.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from typing import Self

from treesens.backends.native.backend import NativeArtifact, NativeBackend
from treesens.backends.native.solver import SearchResult, Solver
from treesens.binder.file import ResolvedQuestion
from treesens.compiler.base.budget import Budget, OutOfTime, working_within
from treesens.compiler.base.dyadic import Unit, nearest_double
from treesens.compiler.base.floats import NumberType, ceil_to, floor_to
from treesens.compiler.base.tolerance import Closeness, Tolerance
from treesens.compiler.model import Ensemble
from treesens.compiler.pipeline import Compilation, compile_query, decide_at_compile_time
from treesens.compiler.query.evaluate import form_value, holds, inputs_of, linear_constraints
from treesens.compiler.query.probabilities import names_probabilities
from treesens.compiler.query.query import AtLeast, Constraint, ProbabilitySum, Query
from treesens.compiler.result import Certified, ObjectiveValue, Proof, Result, Sense, Verdict
from treesens.extensions.studies.decisions import label_of_class
from treesens.grammar.tree import ast
from treesens.solve.conclude import conclude_contradiction, conclude_found, conclude_none, leave_open
from treesens.solve.driver import FIRST_MOMENT, NOT_COMPILED
from treesens.solve.options import Options
from treesens.solve.question import answer
from treesens.values.verify import Witness, verify_cells

CLOSE = 1e-6
"""The finest tolerance for a difference of probabilities."""
_SHARE = 0.5
"""Share of the remaining time for one question."""
_FIRST_SHARE = 0.4
"""Share of the time for the first question, which asks whether there is any difference at all."""
_LEAST = Fraction(1, 1 << 20)
_LEAST_PROBABILITY = Fraction(1, 1 << 24)
"""The precision of the search for an end of the range of a probability."""
_NO_CERTIFICATE = Certified("bound", reason="the bound depends on many questions about a mean of several models")
_BITS = 128
"""Number of bits to which a logarithm is computed for the gap of a pair, which is then rounded to float64."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Optimum:
    """A question with its answer. The witness reaches `value`, and no input is beyond `bound`, which is None if nothing is
    proved; `closed` is True if the bound is within the tolerance of the value.
    """

    question: ResolvedQuestion
    result: Result
    value: float | None = None
    bound: float | None = None
    closed: bool = False
    nodes: int = 0
    seconds: float = 0.0

    @classmethod
    def of(cls, question: ResolvedQuestion, result: Result, **more: object) -> Self:
        """The optimum that an answer states; for an answer without an objective, value and bound are None."""
        goal = result.objective
        if goal is None:
            return cls(question=question, result=result, **more)  # type: ignore[arg-type]
        closed = goal.status is not Closeness.OPEN
        return cls(question=question, result=result, value=goal.value, bound=goal.bound, closed=closed, **more)  # type: ignore[arg-type]

    @property
    def query(self) -> Query:
        return self.question.query

    @property
    def verdict(self) -> Verdict:
        return self.result.verdict

    @property
    def reason(self) -> str:
        return self.result.reason

    @property
    def witness(self) -> Witness | None:
        return self.result.witness

    @property
    def status(self) -> Closeness:
        """The closeness of the value to the bound: optimal, within the tolerance, or open."""
        return Closeness.OPEN if self.result.objective is None else self.result.objective.status


def score_of(ensemble: Ensemble, point: ast.Name, output: int, *, averaged: bool) -> ast.Expression:
    """The score of a class (or output) at a point; for a mean of several models, its probability."""
    if averaged:
        return ast.Prob(point, label_of_class(ensemble, output))
    if ensemble.n_outputs == 1:
        return ast.Margin(point)
    return ast.Margin(point, label_of_class(ensemble, output) if ensemble.classes else ast.Number(Fraction(output)))


def largest_of(apart: ast.Expression, *, averaged: bool) -> tuple[tuple[ast.Formula, ...], ast.Objective | None]:
    """The constraints and the objective of the largest difference. Averaged probabilities cannot be an objective; for them, the
    question requires a difference of at least 0, and the search raises this bound step by step.
    """
    if averaged:
        return (ast.Comparison(apart, ">=", ast.Number(Fraction(0))),), None
    return (), ast.Objective("maximize", apart)


def end_of(ensemble: Ensemble, point: ast.Name, output: int, sense: Sense) -> ast.Find:
    """The question about one end of a score. For a probability, the question requires at least 0 (or at most 1), which every
    input satisfies; the search tightens this bound step by step.
    """
    score = score_of(ensemble, point, output, averaged=ensemble.link.averages)
    if not ensemble.link.averages:
        return ast.Find((ast.Point(point),), (), ast.Objective(str(sense), score))  # type: ignore[arg-type]
    smallest = sense is Sense.MINIMIZE
    end = ast.Comparison(score, "<=" if smallest else ">=", ast.Number(Fraction(int(smallest))))
    return ast.Find((ast.Point(point),), (end,))


def best(query: Query, options: Options, budget: Budget, *, end: tuple[int, Sense] | None = None) -> Result:
    """The best value of an objective or of the difference of two probabilities, or one `end` of the probability of a class."""
    if query.objective is not None:
        return answer(query, options, budget)
    return largest_difference(query, options, budget) if end is None else probability_end(query, *end, options, budget)


@dataclass(frozen=True)
class Halved:
    """The result of bisection: the witness reaches `value`, and no pair exceeds `bound`; `empty` is True if no pair exists."""

    empty: bool
    value: float | None
    bound: float | None
    closed: bool
    reason: str
    witness: Witness | None
    seconds: float


def halve_gap(
    query: Query, most: Fraction, options: Options, budget: Budget, close: float, *, least: Fraction = _LEAST
) -> Halved:
    """The largest number, at most `most`, by which all sums of probabilities in a question can exceed their bounds together.

    The search ends at a difference of `close` relative to the value, or of `least`, whichever is larger.
    """
    start = time.perf_counter()
    value, bound, witness, reason = Fraction(-1), most, None, ""
    asked, below = Fraction(0), most
    tolerance = Tolerance(close)
    while not (budget.over and witness is not None):
        found = answer(_harder(query, asked), options, budget.share(_SHARE).at_least(0.1))
        if found.verdict is Verdict.NONE and asked == 0:
            seconds = time.perf_counter() - start
            return Halved(True, None, None, True, "no pair crosses the threshold", None, seconds)
        if found.verdict is Verdict.NONE:
            bound = below = asked
        elif found.witness is not None:
            witness, value = found.witness, _reached(query, found.witness, asked, bound, least)
            below = max(below, value)
        else:
            reason, below = found.reason, asked
            if witness is None:
                break
        if below - value <= max(least, Fraction(close) * value):
            break
        asked = (value + below) / 2
    seconds = time.perf_counter() - start
    if witness is None:
        return Halved(False, None, None, False, reason or budget.reason, None, seconds)
    reached, above = nearest_double(value), ceil_to(bound, NumberType.FLOAT64)
    closed = bound - value <= least or tolerance.closeness(reached, above) is not Closeness.OPEN
    return Halved(False, reached, above, closed, "" if closed else (reason or budget.reason), witness, seconds)


def _harder(query: Query, gap: Fraction) -> Query:
    return replace(query, constraints=tuple(_raised(query.constraints, gap))) if gap else query


def _raised(constraints: Sequence[Constraint], gap: Fraction) -> list[Constraint]:
    return [replace(c, bound=c.bound + gap) if isinstance(c, ProbabilitySum) else c for c in constraints]


def _reached(query: Query, witness: Witness, asked: Fraction, bound: Fraction, least: Fraction) -> Fraction:
    """The largest gap that a witness reaches, up to the precision `least`."""
    x = inputs_of(query, witness.values)
    low, high = asked, bound
    while high - low > least:
        middle = (low + high) / 2
        if all(holds(c, x) for c in _raised(query.constraints, middle)):
            low = middle
        else:
            high = middle
    return low


def largest_difference(query: Query, options: Options, budget: Budget) -> Result:
    """The largest value of the only sum of probabilities in a question, which requires the sum to be at least 0.

    If possible, a first question proves that the sum is never above 0, because bisection alone cannot prove this.
    """
    sums = [c for c in query.constraints if isinstance(c, ProbabilitySum)]
    if [c.bound for c in sums] != [0]:
        return leave_open(query.name, "the question does not compare two probabilities")
    plain = replace(options, backend="auto", certificates=None)
    above = tuple(replace(c, strict=True) if isinstance(c, ProbabilitySum) else c for c in query.constraints)
    first = answer(replace(query, constraints=above), plain, budget.share(_FIRST_SHARE))
    if first.verdict is Verdict.NONE and first.proof is Proof.EXACT:
        none = conclude_found(leave_open(query.name, backend=first.backend), f"no difference at all: {first.reason}")
        return _known(none, 0.0, 0.0, options)
    known = halve_gap(query, Fraction(1), plain, budget, options.closeness.relative)
    bare = leave_open(query.name, known.reason, backend=plain.backend, witness=known.witness)
    if known.value is None or known.bound is None:
        return bare
    return _known(conclude_found(bare), known.value, known.bound, options)


def _known(found: Result, value: float, bound: float, options: Options) -> Result:
    close = options.closeness
    tolerance = close if close.is_exact else Tolerance(close.relative, max(close.absolute, CLOSE))
    goal = ObjectiveValue(value, bound, Sense.MAXIMIZE, "prob", tolerance)
    certificates = () if options.certificates is None else (_NO_CERTIFICATE,)
    return replace(found, objective=goal, certificates=certificates)


def probability_end(query: Query, output: int, sense: Sense, options: Options, budget: Budget) -> Result:
    """One end of the range of the probability of a class, with the input that reaches this end, and the bound."""
    known = halve_gap(
        query, Fraction(1), replace(options, backend="auto", certificates=None), budget, 0.0, least=_LEAST_PROBABILITY
    )
    if known.witness is None or known.bound is None:
        verdict = "the domain contains no input" if known.empty else known.reason
        return leave_open(query.name, verdict)
    # The value, rounded like the library's, may lie one digit beyond the bound.
    value, most = known.witness.probabilities[0][output], known.bound
    least = floor_to(1 - Fraction(most), NumberType.FLOAT64)
    bound = max(value, most) if sense is Sense.MAXIMIZE else min(value, least)
    goal = ObjectiveValue(value, bound, sense, "prob", options.closeness)
    certificates = () if options.certificates is None else (_NO_CERTIFICATE,)
    return conclude_found(leave_open(query.name, witness=known.witness, objective=goal, certificates=certificates))


def largest_gap(
    question: ResolvedQuestion, options: Options, budget: Budget, *, close: float, most: Fraction, threads: int
) -> Optimum:
    """The largest gap of a question about a pair, to the relative precision `close`. Gaps in probability are at most `most`."""
    start = time.perf_counter()
    if names_probabilities(question.query.constraints):
        known = halve_gap(question.query, most, replace(options, backend="auto"), budget, close)
        said = leave_open(question.query.name, known.reason, witness=known.witness)
        if known.empty:
            said = conclude_none(said, known.reason)
        elif known.witness is not None:
            said = conclude_found(said, known.reason)
        found = Optimum(question=question, result=said, value=known.value, bound=known.bound, closed=known.closed)
    else:
        found = _largest_slack(question, options, budget, close, threads)
    closed = found.closed or found.verdict is Verdict.NONE
    return replace(found, closed=closed, seconds=time.perf_counter() - start)


def _largest_slack(question: ResolvedQuestion, options: Options, budget: Budget, close: float, threads: int) -> Optimum:
    """The largest gap by a single search, which maximises the smallest slack of all rows of scores."""
    open_result = leave_open(question.query.name)
    try:
        with working_within(budget.at_least(FIRST_MOMENT)):
            compilation = compile_query(question.query, "native")
    except OutOfTime:
        return Optimum(question=question, result=replace(open_result, reason=f"{budget.reason}: {NOT_COMPILED}"))
    known = decide_at_compile_time(compilation)
    if known is not None:
        return Optimum(question=question, result=conclude_contradiction(question.name, known))
    artifact = NativeBackend().emit(compilation.module, alike=True)
    assert isinstance(artifact, NativeArtifact)
    if artifact.adapted is None:
        return Optimum(question=question, result=replace(open_result, reason="the domain leaves nothing to search for"))
    solver = Solver(artifact.adapted.problem, mode="slack", seed=options.seed, threads=threads)
    # Relaxed rows need half of the tolerance, because their rounding is added to the bound after the search.
    solver.set_gap(relative=close / 2 if artifact.adapted.relaxed else close)
    result = solver.run_within(budget)
    return replace(_judged(question, compilation, artifact, result, options, close), nodes=result.statistics.nodes)


def _judged(
    question: ResolvedQuestion,
    compilation: Compilation,
    artifact: NativeArtifact,
    result: SearchResult,
    options: Options,
    close: float,
) -> Optimum:
    """The optimum from the engine's result. A pair counts only if it is verified; a bound is always proved."""
    adapted, query = artifact.adapted, question.query
    assert adapted is not None
    assert artifact.postsolve is not None
    whole = Unit(adapted.gap_shift).size
    unit = whole / query.models[0].ensemble.average
    least, most = _rounded_up(query, whole, Unit(adapted.coarsest_shift).size)
    # In a relaxed row each leaf is rounded by itself: its slack may be a unit too small, or several units too large.
    less, more = (1, _leaves_summed(query)) if adapted.relaxed else (0, 0)
    upper = None if result.upper is None else result.upper + most + less
    bound = None if upper is None else ceil_to(upper * unit, NumberType.FLOAT64)
    open_result = leave_open(query.name)
    if result.status == "infeasible" or (bound is not None and bound < 0):
        return Optimum(
            question=question, result=conclude_none(open_result, "no pair crosses the threshold"), bound=bound
        )
    open_reason = "" if result.status != "open" else f"{result.reason or 'time'}: at bound level `{result.bound_level}`"

    def unfound(reason: str) -> Optimum:
        return Optimum(question=question, result=replace(open_result, reason=reason), bound=bound)

    if result.assignment is None or not result.is_witness:
        return unfound(open_reason or "no pair found")
    assignment = artifact.postsolve.recover(adapted.assignment(result.assignment, artifact.merged_variables))
    compiled = compilation.compiled
    verdict = verify_cells(
        query, compiled.source.cells(compiled.recover(assignment)), library_predict=options.library_predict
    )
    if not isinstance(verdict, Witness):
        return unfound(f"a pair was not confirmed: {verdict.reason}")
    value, pair = _slack_of(query, verdict), replace(open_result, witness=verdict)
    assert result.level is not None
    near = 1e-9 * (1 + abs(value))
    if not (result.level + least - more) * unit - near <= value <= (result.level + most + less) * unit + near:
        # The smallest slack belongs to a row that is not about scores, so neither the slack nor its bound is about the gap.
        reason = "the smallest slack of the search differs from the gap of its pair"
        return Optimum(question=question, result=conclude_found(pair, reason), value=value)
    bound = bound if bound is None else max(bound, value)
    # Even a finished search may leave the bound above the value: by a part of a unit if a cut-off lies between two whole
    # scores, and by roundings, since the search ends exactly at the tolerance.
    allowed = Tolerance(close * (1 + 1e-9), near)
    near_enough = bound is not None and allowed.closeness(value, bound) is not Closeness.OPEN
    closed = result.status != "open" and near_enough
    why = "scores are rounded because of a large leaf" if adapted.relaxed else "the cut-off lies between two scores"
    reason = open_reason or ("" if closed else f"{why}, and the bound is at the next score")
    return Optimum(question=question, result=conclude_found(pair, reason), value=value, bound=bound, closed=closed)


def _score_rows(query: Query) -> list[AtLeast]:
    """The rows about scores, whose slack is the gap; rows about typical inputs have no scores."""
    return [row for row in linear_constraints(query.constraints) if row.form.scores]


def _leaves_summed(query: Query) -> int:
    """The maximum number of units by which rounding changes a row of scores: one for each added leaf, one for the bound."""
    sizes = [
        sum(query.models[query.points[term.point].model].ensemble.n_trees + 1 for term in row.form.scores)
        for row in _score_rows(query)
    ]
    return 1 + max(sizes)


def _rounded_up(query: Query, unit: Fraction, coarsest: Fraction) -> tuple[Fraction, Fraction]:
    """The least and the greatest excess of the engine's integer bounds over the exact bounds of rows, in units of the sum.

    Scores are whole numbers of units, but cut-offs need not be whole, and are rounded up. If a row has a coarser unit (up to
    `coarsest`), its bound is rounded up to this unit.
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


def _slack_of(query: Query, witness: Witness) -> float:
    """The gap of a pair: its smallest slack in rows of scores, from exact sums that are rounded once."""
    inputs = inputs_of(query, witness.values)
    slacks = [form_value(row.form, inputs) - row.bound.enclose(_BITS)[0] for row in _score_rows(query)]
    return nearest_double(min(slacks) / query.models[0].ensemble.average)
