"""Questions about a model in which a number has steps: proofs hold for all values of a step, answers for exact values.

A coefficient times a real number has no table. Over an interval it is a table of steps, and the model's band bounds the
distance of a value from its step (`tables.py`). Three questions about such a model are solved: one relaxed by the band, whose
`none` is final, the question itself, and one tightened by the band. Candidates of the last two are checked by the question
about their own values, for which the model has an exact table. If only the steps decide, they are refined until the time limit.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from treesens.binder.file import InSteps, ResolvedQuestion
from treesens.compiler.base.arrays import FloatArray
from treesens.compiler.base.budget import Budget
from treesens.compiler.base.tolerance import Closeness
from treesens.compiler.model import Ensemble
from treesens.compiler.model.numbers import LEVELS
from treesens.compiler.query.domain import RealDomain, cell_range
from treesens.compiler.query.evaluate import inputs_of, objective_form_value
from treesens.compiler.query.predicted_classes import CLASS_ROW
from treesens.compiler.query.query import AtLeast, LinearForm, Query
from treesens.compiler.query.rounding import harden, loosen, objective_band
from treesens.compiler.result import Attempt, Certified, ObjectiveValue, Proof, Result, Verdict
from treesens.solve.bounds import ContradictoryBound, consistent, shown_value
from treesens.solve.conclude import conclude_found, conclude_none, leave_open, shown_objective
from treesens.solve.options import Options
from treesens.values.verify import Witness, verify_values

_SHARE = 0.4
"""Part of the remaining time for one search."""
_FINER = 2
"""Finer steps need this multiple of the time of the last ones: the question is bound and compiled anew."""
MOST_SUMS = 64
"""Maximum of sums of two rows added to a question, and of step ends tried for an answer."""
NO_CERTIFICATE = "a number of the model has steps, but a certificate needs a single table"

Ask = Callable[[Query, Options, Budget], Result]


@dataclass(frozen=True, eq=False)
class _Answer:
    """Values that answer the question itself, with the value of its objective."""

    witness: Witness
    value: Fraction | None
    question: ResolvedQuestion


@dataclass
class _Search:
    """Results so far for one question."""

    options: Options
    ask: Ask
    best: _Answer | None = None
    bound: float | None = None
    attempts: list[Attempt] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)

    def run(self, question: ResolvedQuestion, budget: Budget) -> Result:
        goal, steps = question.query.objective, _steps(question)
        reason, took = "time", 0.0
        for count in (steps.steps, *(level for level in LEVELS if level > steps.steps)):
            start = time.monotonic()
            if budget.over or budget.left() < _FINER * took:
                reason = "time"
                break
            asked = question if count == steps.steps else steps.again(count, {})
            none = self._level(asked, budget)
            took = time.monotonic() - start
            if none is not None:
                return none
            if self.best is not None and (goal is None or self._closed()):
                break
            reason = f"only the steps of {_listed(asked)} decide"
        if self.best is None:
            return leave_open(question.name, budget.reason if budget.over else reason, backend=self.options.backend)
        found = leave_open(question.name, backend="native", witness=self.best.witness, objective=self._objective())
        return conclude_found(found)

    def _level(self, asked: ResolvedQuestion, budget: Budget) -> Result | None:
        """Solves at one fineness; `none` if that is proved."""
        query = asked.query
        easier = self._answer(loosen(with_sums(query)), budget)
        if easier.verdict is Verdict.NONE and easier.proof is not Proof.LIBRARY:
            open_still = leave_open(query.name, backend=easier.backend, proof_dependencies=easier.proof_dependencies)
            return conclude_none(
                open_still, f"{easier.reason}, in steps of {_listed(asked)}", easier.proof or Proof.EXACT
            )
        self._bounded(query, easier)
        self._offer(asked, easier, budget)
        for harder in (query, harden(query)):
            if self._satisfied(query) or budget.over:
                break
            self._offer(asked, self._answer(harder, budget), budget)
        return None

    def _answer(self, query: Query, budget: Budget) -> Result:
        # The library has no steps: it checks the candidate's values.
        plain = replace(self.options.uncertified, library_predict=None, hints=None, regions=False)
        result = self.ask(query, plain, budget.share(_SHARE))
        self.attempts += result.attempts
        for name, spent in result.seconds.items():
            self.seconds[name] = self.seconds.get(name, 0.0) + spent
        return result

    def _bounded(self, query: Query, easier: Result) -> None:
        """The bound of the relaxed question, widened by the objective's band."""
        goal, known = query.objective, easier.objective
        if goal is None or known is None or known.bound is None:
            return
        apart, bound = objective_band(query), known.bound
        if apart:
            # The addition is rounded up by far more than float errors.
            moved = float(apart) * (1 + 2**-40) + 2**-48 * abs(bound)
            bound += moved if goal.maximize else -moved
        if self.bound is None or (bound < self.bound if goal.maximize else bound > self.bound):
            self.bound = bound

    def _offer(self, asked: ResolvedQuestion, result: Result, budget: Budget) -> None:
        """Keeps values that answer the question itself better than earlier ones. The first are checked whatever the time."""
        if result.witness is None:
            return
        for values in _candidates(asked, result.witness.values):
            self._judge(asked, values)
            if self._satisfied(asked.query) or budget.over:
                return

    def _judge(self, asked: ResolvedQuestion, values: FloatArray) -> None:
        question = at_values(asked, values)
        judged = verify_values(question.query, values, library_predict=self.options.library_predict)
        if not isinstance(judged, Witness):
            return
        goal = question.query.objective
        value = None if goal is None else objective_form_value(goal, inputs_of(question.query, values))
        before = None if self.best is None else self.best.value
        if goal is None or value is None or before is None or (value > before if goal.maximize else value < before):
            self.best = _Answer(judged, value, question)

    def _satisfied(self, query: Query) -> bool:
        return self.best is not None and (query.objective is None or self._closed())

    def _objective(self) -> ObjectiveValue | None:
        best = self.best
        if best is None or best.value is None or best.question.query.objective is None:
            return None
        goal = best.question.query.objective
        shown, bound = shown_objective(goal, best.value, None), self.bound
        if bound is not None and goal.probability is not None:
            ends = [part.ends for part in goal.probability.terms]
            limit = shown_value(goal, float(sum(e[1 if goal.maximize else 0] for e in ends)))
            bound = min(bound, limit) if goal.maximize else max(bound, limit)
        if bound is not None:
            bound = consistent(bound, shown.value, maximize=goal.maximize, exact=True, who="the easier question")
        return replace(shown, bound=bound, tolerance=self.options.closeness)

    def _closed(self) -> bool:
        objective = self._objective()
        return objective is not None and objective.bound is not None and objective.status is not Closeness.OPEN


def with_sums(query: Query) -> Query:
    """The question with the sum of every two rows about scores of two points: a number equal at both adds to one row what it
    subtracts from the other, so the sum has a tighter band.
    """
    rows = [c for c in query.constraints if isinstance(c, AtLeast) and _is_score(c.form)]
    pairs = [(one, other) for i, one in enumerate(rows) for other in rows[:i]][:MOST_SUMS]
    sums = [
        AtLeast(
            LinearForm((*one.form.scores, *other.form.scores)),
            one.bound + other.bound,
            one.strict or other.strict,
            f"{one.name}.and.{other.name}".replace(CLASS_ROW, "of."),
        )
        for one, other in pairs
        if {t.point for t in one.form.scores}.isdisjoint(t.point for t in other.form.scores)
    ]
    return replace(query, constraints=(*query.constraints, *sums))


def _is_score(form: LinearForm) -> bool:
    return bool(form.scores) and not (form.costs or form.changes or form.pairs or len(form.levels) or form.forests)


def _candidates(question: ResolvedQuestion, values: FloatArray) -> Iterator[FloatArray]:
    """Values float64[points, features] of an answer in steps, and others in the same steps: at their ends, where a score of
    each point, or the lead of one class, is extreme. A number shared by points stays shared.
    """
    yield values
    query = question.query
    leads = [_leads(query.models[point.model].ensemble) for point in query.points]
    chosen = itertools.islice(itertools.product(*(range(2 * len(own)) for own in leads)), MOST_SUMS)
    for choice in chosen if all(leads) else ():
        moved = values.copy()
        for point in range(len(query.points)):
            for name in leads[point][0]:
                f = query.space.names.index(name)
                alike = np.flatnonzero(values[:, f] == values[point, f])
                first = int(alike[0]) if len(alike) else point
                lead = leads[first][choice[first] // 2]
                up = (lead.get(name, Fraction(0)) > 0) is (choice[first] % 2 == 0)
                moved[point, f] = _end_of_cell(query, f, float(values[point, f]), up=up)
        if not np.array_equal(moved, values, equal_nan=True):
            yield moved


def _leads(ensemble: Ensemble) -> list[dict[str, Fraction]]:
    """A score's slope in each number with steps; for several scores, those of each lead over a later one. None if unknown."""
    gains: list[dict[str, Fraction]] = [{} for _ in range(ensemble.n_outputs if ensemble.steps else 0)]
    for number in ensemble.steps:
        own = gains[number.output]
        own[number.feature] = own.get(number.feature, Fraction(0)) + number.weight
    if len(gains) == 1:
        return gains
    return [
        {name: gain - other.get(name, Fraction(0)) for name, gain in one.items()}
        for one, other in itertools.combinations(gains, 2)
    ]


def _end_of_cell(query: Query, feature: int, value: float, *, up: bool) -> float:
    """The last legal value of the cell of a value, or the first one; a missing value stays missing."""
    domain, grid = query.space.domains[feature], query.space.grid[feature]
    if np.isnan(value) or not isinstance(domain, RealDomain):
        return value
    low, high = cell_range(domain, grid, int(grid.cell_of(np.array([value]))[0]))
    return high if up else low


def at_values(question: ResolvedQuestion, values: FloatArray) -> ResolvedQuestion:
    """The question about values float64[points, features] of numbers with steps. DiagnosticsError for illegal values."""
    steps, names = _steps(question), question.query.space.names
    columns = {name: values[:, names.index(name)] for name in steps.names}
    chosen = {name: np.unique(column[~np.isnan(column)]) for name, column in columns.items()}
    return steps.again(0, {name: own if len(own) else np.zeros(1) for name, own in chosen.items()})


def _steps(question: ResolvedQuestion) -> InSteps:
    assert question.in_steps is not None
    return question.in_steps


def _listed(question: ResolvedQuestion) -> str:
    names = _steps(question).names
    return ", ".join(f"`{name}`" for name in names[:3]) + (", …" if len(names) > 3 else "")


def answer_in_steps(question: ResolvedQuestion, options: Options, ask: Ask, budget: Budget) -> Result:
    """The answer to a question about a model in which a number has steps; `ask` solves one about cells."""
    search = _Search(options, ask)
    try:
        result = search.run(question, budget)
    except ContradictoryBound as error:
        result = leave_open(question.name, error.reason, backend=options.backend)
    notes = (*result.notes, *(("an answer in steps is not confirmed",) if options.confirm is not None else ()))
    result = replace(result, attempts=tuple(search.attempts), seconds=search.seconds, notes=notes)
    if options.certificates is None:
        return result
    claims = [*(["none"] if result.verdict is Verdict.NONE else ["found"] if result.witness is not None else [])]
    claims += ["bound"] if result.objective is not None and result.objective.bound is not None else []
    return replace(result, certificates=tuple(Certified(claim, reason=NO_CERTIFICATE) for claim in claims))
