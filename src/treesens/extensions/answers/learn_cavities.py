"""Answers questions about all cavities from the known cavities; candidates in unknown cavities add boxes to these.

Any method can solve the weaker question, which avoids only the known cavities. If the weaker question has no answer, the
original question has none, too. A candidate in an unknown cavity adds the largest maximal boxes around it, and the search
continues. The number of boxes is finite.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from math import inf

import numpy as np

from treesens.builtin import service
from treesens.compiler.base.arrays import Int32Array
from treesens.compiler.base.budget import LEAST, Budget, OutOfTime, working_within
from treesens.compiler.query.evaluate import holds, inputs_of, objective_form_value
from treesens.compiler.query.known_cavities import all_cavities_in, with_known
from treesens.compiler.query.query import AvoidCavities, CellCost, LinearForm, Objective, Query
from treesens.compiler.result import Attempt, ObjectiveValue, Region, Result, Sense, Verdict
from treesens.data.cavities import learn_at
from treesens.extensions.answers.regions import RegionFinder
from treesens.solve.bounds import CLOSE, left_open
from treesens.solve.conclude import conclude_found, shown_objective
from treesens.solve.method import OpenQuestion
from treesens.values.verify import Witness, verify_cells, verify_values

_SHARE = 0.5
"""Share of the remaining time for one optimising search; its bound is valid even if its candidate is rejected."""
_EVERY = 4
"""Every `_EVERY`-th search looks for a candidate whose cells contain many rows."""
_BRIEF = 0.5
"""Seconds for a search that looks for a candidate whose cells contain many rows."""


@dataclass
class _Learning:
    question: OpenQuestion
    budget: Budget
    learnt: int = 0
    known: Witness | None = None
    attempts: list[Attempt] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)

    def decide(self, query: Query) -> Result:
        """The answer to a question without an objective."""
        for number in count(1):
            weaker = with_known(query)
            result = self._candidate(query, weaker, among_rows=number % _EVERY == 0)
            candidate = result.witness
            if candidate is None:
                return result
            found = self._verified(query, candidate) or self._beside_rows(query, weaker, candidate)
            if found is not None:
                return replace(result, witness=found)
            if not self._learn(query, candidate) or self.budget.over:
                return self._open(result)
        raise AssertionError("counting does not end")

    def _candidate(self, query: Query, weaker: Query, *, among_rows: bool) -> Result:
        """The answer to the weaker question: any answer or, with `among_rows`, an answer whose cells contain many rows."""
        if among_rows:
            result = self._ask(replace(weaker, objective=density(query)), self.budget.within(_BRIEF))
            if result.verdict is not Verdict.UNKNOWN:
                return replace(result, objective=None)
        return self._ask(weaker, self.budget)

    def best(self, found: Result) -> Result:
        """The optimum, if time allows; otherwise the best known answer, at least as good as `found`, with the best bound."""
        query, goal = self.question.query, self.question.query.objective
        assert goal is not None
        self._keep(found.witness)
        bound = inf if goal.maximize else -inf
        result = found
        while self.budget.worthwhile:
            result = self._ask(with_known(query), self.budget.share(_SHARE).at_least(LEAST), better=True)
            if result.objective is not None and result.objective.bound is not None:
                bound = (min if goal.maximize else max)(bound, result.objective.bound)
            if result.witness is None:
                break
            clean = self._verified(query, result.witness)
            if clean is not None:
                self._keep(clean)
                if not left_open(result, CLOSE, self.question.options.closeness):
                    break
            elif not self._learn(query, result.witness):
                break
        if self.known is None:
            return self._open(result) if result.witness is not None else result
        shown = replace(self._value(self.known), bound=None if abs(bound) == inf else bound)
        return conclude_found(replace(result, witness=self.known, objective=shown))

    def done(self, result: Result) -> Result:
        """The result with the attempts of all searches."""
        note = f"{self.learnt} cavities were learnt"
        notes = (*result.notes, note) if self.learnt else result.notes
        return replace(result, attempts=tuple(self.attempts), seconds=self.seconds, notes=notes, refuted=())

    def _ask(self, query: Query, budget: Budget, *, better: bool = False) -> Result:
        told = (lambda w: self._keep(self._verified(self.question.query, w))) if better else None
        result = self.question.ask(query, self.question.options, budget.at_least(LEAST), on_better=told)
        self.attempts += result.attempts
        for phase, seconds in result.seconds.items():
            self.seconds[phase] = self.seconds.get(phase, 0.0) + seconds
        return result

    def _verified(self, query: Query, witness: Witness) -> Witness | None:
        verdict = verify_values(query, witness.values, library_predict=self.question.options.library_predict)
        return verdict if isinstance(verdict, Witness) else None

    def _open(self, result: Result) -> Result:
        reason = f"{self.budget.reason}: the last candidate is in a cavity"
        return replace(result, verdict=Verdict.UNKNOWN, reason=reason, witness=None, objective=None, proof=None)

    def _learn(self, query: Query, candidate: Witness) -> int:
        """Learns the cavities that contain a candidate; returns the number of new cavities."""
        x, new = inputs_of(query, candidate.values), 0
        try:
            with working_within(self.budget):
                for constraint in all_cavities_in(query.constraints):
                    if not holds(constraint, x):
                        new += learn_at(constraint.cavities, constraint.coarse_cells(x.cells[constraint.point]))
        except OutOfTime:
            pass
        self.learnt += new
        return new

    def _beside_rows(self, query: Query, weaker: Query, candidate: Witness) -> Witness | None:
        """An answer in the region of a candidate, with as many cells of one row as possible; None if the search fails."""
        region = RegionFinder(weaker).region(candidate.cells)
        avoided = list(all_cavities_in(query.constraints))
        for cells in () if region is None else towards_rows(region, candidate.cells, avoided[0]):
            if all(constraint.holds(cells[constraint.point]) for constraint in avoided):
                found = verify_cells(query, cells, library_predict=self.question.options.library_predict)
                if isinstance(found, Witness):
                    return found
        return None

    def _keep(self, witness: Witness | None) -> None:
        goal = self.question.query.objective
        if witness is None or goal is None:
            return
        if self.known is not None:
            new, old = self._value(witness).value, self._value(self.known).value
            if new <= old if goal.maximize else new >= old:
                return
        self.known = witness
        if self.question.on_better is not None:
            self.question.on_better(witness)

    def _value(self, witness: Witness) -> ObjectiveValue:
        query, goal = self.question.query, self.question.query.objective
        assert goal is not None
        if goal.nearest is not None:
            distance = service("answers").distance_of(query, goal.nearest, witness)
            return ObjectiveValue(distance, None, Sense.MINIMIZE, f"distance {goal.nearest.norm}")
        return shown_objective(goal, objective_form_value(goal, inputs_of(query, witness.values)), None)


def search_cavities(question: OpenQuestion, budget: Budget) -> Result:
    """The method named in `solve/methods/registry.py`."""
    learning = _Learning(question, budget)
    found = learning.decide(replace(question.query, objective=None))
    if question.query.objective is not None and found.verdict is Verdict.FOUND:
        found = learning.best(found)
    return learning.done(found)


_SHIFT = 16
"""Logarithms of row counts are multiples of 2**-16, because they only guide the search."""
_TRIED = 20
"""Number of rows whose cells are tried."""


def density(query: Query) -> Objective:
    """The objective to maximise the logarithms of the row counts of cells: points among many rows are in few cavities."""
    costs: list[CellCost] = []
    for constraint in query.constraints:
        if isinstance(constraint, AvoidCavities):
            cavities = constraint.cavities
            ends = np.append(constraint.start, len(constraint.coarse))
            for column, f in enumerate(cavities.features):
                present = cavities.rows[:, column]
                counts = np.bincount(present[present >= 0], minlength=int(cavities.n_cells[f]))
                logs = np.round(np.log(np.maximum(counts, 0.5)) * 2**_SHIFT).astype(np.int64)
                costs.append(CellCost(constraint.point, int(f), logs[constraint.coarse[ends[f] : ends[f + 1]]], _SHIFT))
    return Objective(LinearForm(costs=tuple(costs)), True, "log-likelihood")


def towards_rows(region: Region, cells: Int32Array, constraint: AvoidCavities) -> Iterator[Int32Array]:
    """Cells int32[points, features] of a region that agree with a row in the most features; the best rows come first."""
    cavities, point = constraint.cavities, constraint.point
    ends = np.append(constraint.start, len(constraint.coarse))
    choice: list[dict[int, int]] = []  # per feature, a cell of the region for each coarse cell
    reached = np.zeros(cavities.rows.shape, bool)
    for column, f in enumerate(cavities.features):
        owner = constraint.coarse[ends[f] : ends[f + 1]]
        inside = np.flatnonzero(region.boxes[point][f])
        own = int(owner[cells[point, f]])
        choice.append({int(owner[c]): int(c) for c in inside[::-1]} | {own: int(cells[point, f])})
        reached[:, column] = np.isin(cavities.rows[:, column], list(choice[-1]))
    order = np.argsort(-reached.sum(axis=1), kind="stable")[:_TRIED]
    for row in order:
        moved = cells.copy()
        for column, f in enumerate(cavities.features):
            if reached[row, column]:
                places = range(len(cells)) if int(f) in region.shared else (point,)
                for place in places:
                    moved[place, f] = choice[column][int(cavities.rows[row, column])]
        yield moved
