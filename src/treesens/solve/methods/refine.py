"""Refinement: excludes cells without values that satisfy the relations, and refines step objectives, until all is proved.

A search over cells enforces a relation between values only as far as cells decide the relation. If the cells of a point contain
no values that satisfy all relations at once, these cells are excluded, with all other cells that the proof covers, and the
search is repeated. For a ladder objective, the steps are refined towards the best answer.

Stronger questions turn a distance between two points into bounds on single features. A sum over all features couples these
features, so that a local search can hardly move; bounds on single features that imply the same limit leave each feature free in
its range. Any answer to a stronger question is an answer to the question; a stronger question without an answer proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from math import inf

import numpy as np

from treesens.compiler.base.budget import LEAST, Budget
from treesens.compiler.query.evaluate import inputs_of, objective_form_value
from treesens.compiler.query.query import AllOf, AnyOf, Constraint, Difference, Objective, Query, SameExcept
from treesens.compiler.query.values import DistanceTerm, ValueSum
from treesens.compiler.result import Attempt, ObjectiveValue, Result, Verdict
from treesens.solve.bounds import CLOSE, ContradictoryBound, consistent, shown_value, within_range
from treesens.solve.combine import combine
from treesens.solve.conclude import leave_open, shown_objective
from treesens.solve.fits import by_engine
from treesens.solve.method import OpenQuestion
from treesens.solve.methods.bisection import Bisection
from treesens.solve.options import Options
from treesens.solve.question import search_cells
from treesens.values.objective_ranges import objective_range, stated_ranges
from treesens.values.propagation import root_below
from treesens.values.relations import better_than
from treesens.values.verify import Witness, verify_values

_SHARE = 0.25
"""Share of the remaining time for stronger questions."""
_LIMITS = (1e-6, 1e-3, 0.01, 0.1, 0.5)
"""Distances, in widths, to try first: thresholds are crossed between adjacent floats, or features have few values."""
_NOTE = "found through a stronger question: features bounded one by one"
_VALUES = ("changes", "features", "margins and features", "distance l0", "distance l1", "distance l2", "distance linf")


@dataclass
class _Refinement:
    query: Query
    options: Options
    budget: Budget
    on_better: Callable[[Witness], None] | None
    cuts: list[Constraint] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    proved: bool = True

    def run(self) -> Result:
        own = by_engine(self.options)
        result = self._seeded() if own else None
        goal = self.query.objective
        if result is None and own and goal is not None and goal.reaching is not None:
            alone = partial(self._search, keep=False)
            result = Bisection(self.query, self.options, Fraction(CLOSE) / 2, alone, self.budget.left).run()
        if result is None:
            result = self._search(self.query)
        try:
            result = self._within_range(self._closer(result))
        except ContradictoryBound as error:
            result = leave_open(self.query.name, error.reason, backend=result.backend)
        note = f"{len(self.cuts)} combinations of cells without fitting values were ruled out"
        notes = (*result.notes, note) if self.cuts else result.notes
        return replace(result, attempts=tuple(self.attempts), seconds=self.seconds, notes=notes, refuted=())

    def _within_range(self, result: Result) -> Result:
        """The result with a bound that is possible for the objective. Raises ContradictoryBound if the value contradicts it.

        The objective's a-priori range is a bound that needs no search.
        """
        goal, shown = self.query.objective, result.objective
        if goal is None or shown is None or result.verdict is not Verdict.FOUND:
            return result
        assert result.witness is not None
        best = inf if goal.maximize else -inf
        bound = best if shown.bound is None else shown.bound
        reached = float(objective_form_value(goal, inputs_of(self.query, result.witness.values)))
        value = shown_value(goal, reached)
        bound = consistent(bound, value, maximize=goal.maximize, exact=False, who=result.backend)
        least = within_range(self.query, best)
        if least is not None and abs(least) < inf:
            limit = shown_value(goal, least)
            bound = min(bound, limit) if goal.maximize else max(bound, limit)
        return replace(result, objective=replace(shown, bound=None if abs(bound) == inf else bound))

    def _seeded(self) -> Result | None:
        """An answer through a stronger question, improved if there is an objective; None if no stronger question has an answer.

        For a minimised distance, the limits of `_LIMITS` are tried in increasing order.
        """
        goal = self.query.objective
        if goal is None:
            return self._by_stronger(self.query)
        if goal.counts or goal.kind == "features":
            return self._at_limit(goal)
        if goal.maximize or goal.largest or not goal.distances:
            return None
        for limit in _LIMITS:
            bounded = better_than(goal, Fraction(limit) ** (2 if goal.kind == "distance l2" else 1))
            found = self._by_stronger(replace(self.query, constraints=(*self.query.constraints, bounded)))
            if found is None:
                continue
            assert found.witness is not None
            reached = objective_form_value(goal, inputs_of(self.query, found.witness.values))
            found = replace(found, objective=shown_objective(goal, reached, None))
            return self._improved(goal, found) or found
        return None

    def _at_limit(self, goal: Objective) -> Result | None:
        """An optimal answer, at the limit that constraints or domains set for the objective, or None. Domains also limit a sum
        over features; a limit that values approach but do not reach also counts as a limit.
        """
        limit, within = objective_range(self.query)[goal.maximize], [Fraction(0), Fraction(CLOSE) / 2]
        if goal.counts:
            limits = [end for pair in stated_ranges(self.query, goal) if (end := pair[goal.maximize]) is not None]
            limit, within = (min if goal.maximize else max)(limits, default=None), within[:1]
        if limit is None:
            return None
        for short in within:
            wanted = better_than(goal, limit - short if goal.maximize else limit + short)
            at_limit = replace(self.query, objective=None, constraints=(*self.query.constraints, wanted))
            found = self._search(at_limit, self.budget.left() * _SHARE, keep=False)
            if found.witness is not None:
                break
        else:
            return None
        reached = objective_form_value(goal, inputs_of(self.query, found.witness.values))
        return replace(found, objective=shown_objective(goal, reached, limit))

    def _by_stronger(self, query: Query) -> Result | None:
        """A verified answer found through stronger questions, within a share of the time, or None."""
        part = self.budget.share(_SHARE)
        for stronger in stronger_questions(query):
            if not part.worthwhile:
                return None
            found = answer_refined(stronger, self.options, part)
            self.attempts += found.attempts
            self._count(found)
            if found.witness is None:
                continue
            witness = verify_values(query, found.witness.values, library_predict=self.options.library_predict)
            if isinstance(witness, Witness):
                return replace(found, witness=witness, notes=(*found.notes, _NOTE))
        return None

    def _count(self, result: Result) -> None:
        for phase, seconds in result.seconds.items():
            self.seconds[phase] = self.seconds.get(phase, 0.0) + seconds

    def _search(self, query: Query, seconds: float = inf, *, keep: bool = True) -> Result:
        """The answer after all cells without values have been excluded.

        Without `keep`, cells are excluded only in this search, since exclusions may depend on its additional constraints. A
        search for answers better than a known one may keep exclusions, since later searches only seek still better answers.
        """
        part = self.budget.within(seconds)
        cuts, proved = list(self.cuts), self.proved
        while True:
            with_cuts = replace(query, constraints=(*query.constraints, *cuts))
            result = search_cells(with_cuts, self.options, part.at_least(LEAST), on_better=self.on_better)
            self.attempts += result.attempts
            self._count(result)
            if result.verdict is not Verdict.UNKNOWN or not result.refuted:
                return self._honest(result, proved)
            cuts += [found.cut for found in result.refuted]
            proved = proved and all(found.proved for found in result.refuted)
            if keep:
                self.cuts, self.proved = cuts, proved
            if part.over:
                return self._honest(replace(result, reason=f"time: {result.reason}"), proved)

    @staticmethod
    def _honest(result: Result, proved: bool) -> Result:
        """The result without claims that depend on cells excluded without a proof."""
        if proved:
            return result
        if result.verdict is Verdict.NONE:
            reason = "no values were found in some combinations of cells, but it was not proved that none exist"
            return replace(result, verdict=Verdict.UNKNOWN, reason=reason, proof=None)
        if result.objective is not None:
            return replace(result, objective=replace(result.objective, bound=None))
        return result

    def _closer(self, result: Result) -> Result:
        """Approaches the best answer: finer ladders, then questions for still better values."""
        goal = self.query.objective
        while goal is not None and self.budget.worthwhile and (objective := _open(goal, result)) is not None:
            if goal.zoom is not None:
                finer = replace(
                    self.query, objective=goal.zoom(*sorted(map(Fraction, (objective.value, objective.bound or 0))))
                )
                result = _joined(result, self._search(finer))
                after = _open(goal, result)
                if after is None or (after.gap or 0) < (objective.gap or 0) * 0.9:
                    continue
            if not goal.values:
                return result
            improved = self._improved(goal, result)
            if improved is None:
                return result
            result = improved
        return result

    def _improved(self, goal: Objective, result: Result) -> Result | None:
        """A clearly better answer, or a bound that excludes better answers; None if neither is known."""
        assert result.witness is not None
        assert result.objective is not None
        reached = objective_form_value(goal, inputs_of(self.query, result.witness.values))
        wanted = reached + (1 if goal.maximize else -1) * Fraction(CLOSE) / 2
        if wanted < 0 and not goal.maximize and all(isinstance(t, DistanceTerm) and t.factor > 0 for t in goal.values):
            return replace(result, objective=replace(result.objective, bound=0.0))  # no distance is negative
        better = better_than(goal, wanted)
        found = self._search(replace(self.query, constraints=(*self.query.constraints, better)))
        if found.verdict is Verdict.NONE:
            # A count that no half step improves is optimal.
            bound = shown_value(goal, float(reached if goal.counts else wanted))
            return replace(result, objective=replace(result.objective, bound=bound))
        if found.verdict is not Verdict.FOUND or found.objective is None:
            return None
        # The best of the better answers is the optimum.
        joined = _joined(result, found)
        return None if joined.objective == result.objective else joined


def _open(goal: Objective, result: Result) -> ObjectiveValue | None:
    """The objective of an answer whose value and bound are not yet close in units of the form, or None."""
    objective = result.objective
    if result.verdict is not Verdict.FOUND or objective is None or objective.bound is None:
        return None
    if objective.kind not in _VALUES:
        return None
    close = float(goal.unit) * CLOSE
    close = close if objective.kind != "distance l2" else close / max(CLOSE, abs(objective.value))
    return objective if abs(objective.value - objective.bound) > close else None


def _joined(one: Result, other: Result) -> Result:
    """Both answers combined, or the first alone if the second lacks a bound, which refinement needs."""
    first, second = one.objective, other.objective
    if other.verdict is not Verdict.FOUND or first is None or second is None or second.bound is None:
        return one
    return combine(one, other)


def answer_refined(
    query: Query,
    options: Options,
    budget: Budget,
    *,
    on_better: Callable[[Witness], None] | None = None,
) -> Result:
    """The answer to a question about values, or with a ladder; one time limit covers all searches."""
    return _Refinement(query, options, budget, on_better).run()


def search_refined(question: OpenQuestion, budget: Budget) -> Result:
    """Entry point named in `solve/methods/registry.py`. Starts from a known answer."""
    options, known = question.options, question.known
    if known is not None and known.witness is not None:
        cells = known.witness.cells[None]
        hints = cells if options.hints is None else np.concatenate([cells, options.hints])
        options = replace(options, hints=hints)
    return answer_refined(question.query, options, budget, on_better=question.on_better)


def stronger_questions(query: Query) -> Iterator[Query]:
    """Stronger questions that split a bound on the distance of two points over its features: evenly, then on one feature alone.

    Yields nothing if the question has no distance of that kind.
    """
    sums = [found for constraint in query.constraints for found in _distances(constraint)]
    if not sums:
        return
    counted = sorted({term.feature for found in sums for term in _apart(found)})
    ordered = [f for f in counted if not any(t.unordered for found in sums for t in _apart(found) if t.feature == f)]
    choices = [frozenset(ordered), *(frozenset((f,)) for f in counted if len(ordered) != 1 or f not in ordered)]
    for moving in choices:
        constraints = tuple(_stronger(query, c, moving) for c in query.constraints)
        if moving and AnyOf(()) not in constraints:
            yield replace(query, constraints=constraints, objective=None)


def _distances(constraint: Constraint) -> Iterator[ValueSum]:
    match constraint:
        case ValueSum() if any(not term.unordered for term in _apart(constraint)):
            yield constraint
        case AllOf() | AnyOf():
            for part in constraint.parts:
                yield from _distances(part)


def _apart(relation: ValueSum) -> list[DistanceTerm]:
    """The terms of a bound on a distance between two points; empty for other relations."""
    terms = [t for t in relation.terms if isinstance(t, DistanceTerm) and t.other is not None and t.factor > 0]
    same = {(t.point, t.other) for t in terms}
    return terms if len(terms) == len(relation.terms) and len(same) == 1 else []


def _stronger(query: Query, constraint: Constraint, moving: frozenset[int]) -> Constraint:
    match constraint:
        case ValueSum() if any(not term.unordered for term in _apart(constraint)):
            return _bounds(query, constraint, _apart(constraint), moving)
        case AllOf() | AnyOf():
            return replace(constraint, parts=tuple(_stronger(query, part, moving) for part in constraint.parts))
        case _:
            return constraint


def _bounds(query: Query, relation: ValueSum, terms: Sequence[DistanceTerm], moving: frozenset[int]) -> Constraint:
    """The points agree on the distance's features, except that each of the `moving` features has an equal share."""
    counted = {term.feature for term in terms}
    moving_terms = [term for term in terms if term.feature in moving]
    if not moving_terms or relation.limit < 0:
        return AnyOf(())
    other = terms[0].other
    assert other is not None
    free = frozenset(range(len(query.space.names))) - counted
    parts: list[Constraint] = [SameExcept(terms[0].point, other, free | {term.feature for term in moving_terms})]
    for term in moving_terms:
        share = relation.limit / len(moving_terms) / term.factor
        strict = relation.strict
        if term.unordered:
            if share > 1 or (share == 1 and not strict):
                continue
            return AnyOf(())
        reach = root_below(share, term.power) * term.width
        if reach == 0 and strict:
            return AnyOf(())
        parts.append(Difference(term.point, term.feature, other, term.feature, -reach, reach, strict, strict))
    return AllOf(tuple(parts))
