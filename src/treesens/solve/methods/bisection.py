"""Finds the best largest distance (linf) by decisions of the native engine: is a given value reachable?

A largest distance is not a sum, and the maximisation of a ladder of levels proves little until it ends. Decisions are fast, and
a dozen of them enclose the best value. Without relations, the best value is the best distance of a cell or a pair of cells, so
each decision tests such a distance; with relations and few values, each decision tests a distance between values.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

from treesens.compiler.query.evaluate import inputs_of, objective_form_value
from treesens.compiler.query.query import Objective, Query
from treesens.compiler.result import Proof, Result, Verdict
from treesens.solve.conclude import shown_objective
from treesens.solve.options import Options
from treesens.values.distance_costs import distances_of_values, distances_reached
from treesens.values.objective_ranges import objective_range
from treesens.values.relations import relates_values
from treesens.values.verify import Witness, verify_cells

MOST_PAIRS = 20_000
"""Maximum number of values or cells, and of pairs of these, whose distances are listed; beyond it, the interval is halved."""

_SHARE = 0.5
_LEAST = 1.0
"""The share of the remaining time for one decision, and the minimum time of a decision in seconds."""


@dataclass
class Bisection:
    """Objective values: `reached` is the best value found, and no value reaches `ceiling`.

    For a minimised distance all signs are flipped, so that more is always better.
    """

    query: Query
    options: Options
    close: Fraction
    ask: Callable[[Query, float], Result]
    left: Callable[[], float]

    def __post_init__(self) -> None:
        assert self.query.objective is not None
        self.goal: Objective = self.query.objective
        self.sign = 1 if self.goal.maximize else -1
        space, terms = self.query.space, self.goal.distances
        if relates_values(self.query):
            # Relations may prevent the best values of the cells: the best distance may be that of any two values.
            found = distances_of_values(space, terms, MOST_PAIRS)
        else:
            found = distances_reached(space, terms, self.goal.maximize, MOST_PAIRS)
        self.marks = None if found is None else sorted(self.sign * v for v in found)
        self.best: Result | None = None
        self.reached = Fraction(0)
        self.granted: Fraction | None = None
        """The best mark reached by the cells of an answer; the values of the answer may be worse than this mark."""
        self.proofs: list[Result] = []
        self.ceiling: Fraction | None = None

    def run(self) -> Result:
        """The answer with value and bound; the verdict `none` or `unknown` applies to the question without its objective."""
        first = self.ask(replace(self.query, objective=None), self.left())
        if first.verdict is not Verdict.FOUND:
            return first
        self._keep(first, None)
        while self.left() > 0 and (mark := self._next()) is not None:
            if not self._decide(mark):
                break
        return self._result()

    def _next(self) -> Fraction | None:
        """The next mark to decide; None if nothing lies between the reached value and the ceiling."""
        at_least = self.reached if self.granted is None else max(self.reached, self.granted)
        if self.marks is not None:
            low = bisect_right(self.marks, at_least)
            high = len(self.marks) if self.ceiling is None else bisect_left(self.marks, self.ceiling)
            return self.marks[(low + high) // 2] if low < high else None
        ceiling = self._top() if self.ceiling is None else self.ceiling
        return None if ceiling - at_least <= self.close else (at_least + ceiling) / 2

    def _top(self) -> Fraction:
        """An upper bound on the distance: a row may be outside the domain by more than the domain's width."""
        low, high = objective_range(self.query)
        assert low is not None
        assert high is not None
        return -low if self.sign < 0 else high

    def _decide(self, mark: Fraction) -> bool:
        """Decides whether `mark` is reached; False for an open decision."""
        assert self.goal.reaching is not None
        wanted = (*self.query.constraints, self.goal.reaching(self.sign * mark))
        seconds = max(_LEAST, _SHARE * self.left())
        found = self.ask(replace(self.query, objective=None, constraints=wanted), min(seconds, self.left()))
        if found.verdict is Verdict.NONE:
            self.ceiling = mark
            self.proofs.append(found)
        elif found.verdict is Verdict.FOUND:
            self._keep(found, mark)
        return found.verdict is not Verdict.UNKNOWN

    def _keep(self, found: Result, mark: Fraction | None) -> None:
        """Keeps the better of two answers, with the best values that the answer's cells allow."""
        assert found.witness is not None
        again = verify_cells(
            self.query, found.witness.cells, near=self.options.near, library_predict=self.options.library_predict
        )
        for witness in (found.witness, again):
            if not isinstance(witness, Witness):
                continue
            value = self.sign * objective_form_value(self.goal, inputs_of(self.query, witness.values))
            if self.best is None or value > self.reached:
                self.best, self.reached = replace(found, witness=witness), value
        if mark is not None and (self.granted is None or mark > self.granted):
            self.granted = mark

    def _bound(self) -> Fraction:
        """The best value that is not ruled out."""
        at_least = self.reached if self.granted is None else max(self.reached, self.granted)
        if self.marks is None:
            return self._top() if self.ceiling is None else max(at_least, self.ceiling)
        high = len(self.marks) if self.ceiling is None else bisect_left(self.marks, self.ceiling)
        return max(at_least, self.marks[high - 1]) if high else at_least

    def _result(self) -> Result:
        assert self.best is not None
        proof_dependencies = tuple(dict.fromkeys(part for proof in self.proofs for part in proof.proof_dependencies))
        if any(proof.proof is not Proof.EXACT for proof in self.proofs):
            proof_dependencies = (
                *proof_dependencies,
                *{f"infeasible by {p.backend} ({p.proof})" for p in self.proofs if p.proof is not Proof.EXACT},
            )
        return replace(
            self.best,
            objective=shown_objective(self.goal, self.sign * self.reached, self.sign * self._bound()),
            proof_dependencies=proof_dependencies,
        )
