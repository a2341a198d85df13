"""Values inside one combination of cells, decided exactly by z3 where the propagation of bounds leaves something open.

Real values are rationals to z3 and floats to a model. That there are none is therefore a proof; what z3 finds is rounded to
floats, and counts only if it satisfies the relations as it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isnan
from typing import Any, Literal

from treesens.compiler.base.arrays import FloatArray
from treesens.compiler.query.concretise import Alternatives
from treesens.compiler.query.propagation import Choice, Ranges
from treesens.compiler.query.query import Objective
from treesens.compiler.query.values import DistanceTerm, LinearTerm, Place, Term, ValueRange, ValueSum

MOST_SECONDS = 1.0
"""For one conjunction of relations."""
_CHOICES = 60
_LISTED = 64
"""Values that a variable is told one by one; of more it is told the range, which proves no less."""


@dataclass(frozen=True)
class Inside:
    """What is known of the values of one combination: `values` float64[points, features] satisfy all relations; `none` says
    that no values do. Neither where nothing is known. `bound` is what the objective of no values is better than.
    """

    values: FloatArray | None = None
    none: bool = False
    bound: Fraction | None = None


def decide_values(alternatives: Alternatives, left: Callable[[], float]) -> Inside:
    """Some values, or the proof that there are none."""
    open_case = not alternatives.complete
    for relations, ranges in alternatives.cases:
        system = _System(ranges, relations, left)
        found = system.values()
        if isinstance(found, dict):
            return Inside(values=alternatives.filled(found))
        open_case = open_case or found is None
    return Inside(none=not open_case)


def bound_objective(alternatives: Alternatives, goal: Objective, left: Callable[[], float]) -> Inside:
    """The best value that the objective can have (over rationals: floats may reach less), and values that come close to it.

    Nothing is known of squares, and where the time is up.
    """
    if not alternatives.complete or any(t.power != 1 for t in alternatives.goal if isinstance(t, DistanceTerm)):
        return Inside()
    best: Fraction | None = None
    values: FloatArray | None = None
    for relations, ranges in alternatives.cases:
        found = _System(ranges, relations, left).best(alternatives.goal, goal)
        if found is None:
            return Inside()
        if found is False or (best is not None and (found[0] <= best if goal.maximize else found[0] >= best)):
            continue
        best, chosen = found
        values = None if chosen is None else alternatives.filled(chosen)
    return Inside(values, best is None, best)


class _System:
    """One conjunction of relations over ranges of values, as z3 reads it."""

    def __init__(self, ranges: Ranges, relations: Sequence[ValueSum], left: Callable[[], float]) -> None:
        import z3

        self.z3: Any = z3
        self.ranges, self.relations = ranges, relations
        self.milliseconds = max(1, int(1000 * min(MOST_SECONDS, left())))
        self.variables = {place: self._variable(place, reach) for place, reach in ranges.items() if reach is not None}

    def values(self) -> dict[Place, float] | Literal[False] | None:
        """Floats that satisfy the relations; False where nothing does, None where that is not known."""
        solver = self.z3.Solver()
        solver.set("timeout", self.milliseconds)
        if not self._told(solver):
            return False
        state = solver.check()
        if state == self.z3.unsat:
            return False
        return self._rounded(solver.model()) if state == self.z3.sat else None

    def best(
        self, terms: Sequence[Term], goal: Objective
    ) -> tuple[Fraction, dict[Place, float] | None] | Literal[False] | None:
        """The best value of an objective, and floats close to where it is reached; False and None as above."""
        solver = self.z3.Optimize()
        solver.set("timeout", self.milliseconds)
        if not self._told(solver):
            return False
        parts = [self._term(term) for term in terms]
        if any(part is None for part in parts):
            return False
        total = self._largest(parts) if goal.largest else self.z3.Sum(parts) if parts else self.z3.RealVal(0)
        handle = (solver.maximize if goal.maximize else solver.minimize)(total)
        state = solver.check()
        if state != self.z3.sat:
            return False if state == self.z3.unsat else None
        # Multiples of infinity, of 1, and of what a strict limit keeps away.
        endless, limit, _ = solver.upper_values(handle) if goal.maximize else solver.lower_values(handle)
        if self._fraction(endless) != 0:
            return None
        return self._fraction(limit), self._rounded(solver.model())

    def _told(self, solver: Any) -> bool:
        """Tells z3 all ranges and relations; False where a relation cannot hold because a value is missing."""
        for place, reach in self.ranges.items():
            if reach is not None:
                solver.add(*self._legal(place, reach))
        for relation in self.relations:
            parts = [self._term(term) for term in relation.terms]
            if any(part is None for part in parts):
                return False
            total = self.z3.Sum(parts) if parts else self.z3.RealVal(0)
            limit = self._number(relation.limit)
            solver.add(total < limit if relation.strict else total <= limit)
        return True

    # --- what z3 reads ----------------------------------------------------------------------------------------------------

    def _number(self, value: Fraction) -> Any:
        return self.z3.RealVal(f"{value.numerator}/{value.denominator}")

    def _variable(self, place: Place, reach: ValueRange) -> Any:
        if reach.single:
            return self._number(Fraction(reach.low))
        name = f"x{place[0]}_{place[1]}"
        return self.z3.ToReal(self.z3.Int(name)) if reach.whole else self.z3.Real(name)

    def _legal(self, place: Place, reach: ValueRange) -> Iterator[Any]:
        if reach.single:
            return
        x = self.variables[place]
        yield self._number(Fraction(reach.low)) <= x
        yield x <= self._number(Fraction(reach.high))
        if reach.values is not None:
            inside = reach.values[(reach.values >= reach.low) & (reach.values <= reach.high)].tolist()
            if len(inside) <= _LISTED:
                yield self.z3.Or([x == self._number(Fraction(v)) for v in inside])

    def _term(self, term: Term) -> Any:
        """A term as an expression; None where it has no value."""
        values = [self.variables.get(place) for place in term.places]
        if isinstance(term, LinearTerm):
            return None if values[0] is None else self._number(term.factor) * values[0]
        left, right = values[0], values[1] if term.other is not None else self._row(term)
        if left is None or right is None:
            return self._number(term.factor * (0 if left is None and right is None else 1))
        if term.unordered:
            return self.z3.If(left == right, self._number(Fraction(0)), self._number(term.factor))
        if term.power != 1:
            return self._number(term.factor / term.width**2) * (left - right) * (left - right)
        away = self.z3.If(left >= right, left - right, right - left)
        return self._number(term.factor / term.width) * away

    def _row(self, term: DistanceTerm) -> Any:
        return None if isnan(term.row) else self._number(Fraction(term.row))

    def _largest(self, parts: Sequence[Any]) -> Any:
        most = self.z3.RealVal(0)
        for part in parts:
            most = self.z3.If(part >= most, part, most)
        return most

    # --- what z3 answers --------------------------------------------------------------------------------------------------

    def _fraction(self, value: Any) -> Fraction:
        if self.z3.is_int_value(value):
            return Fraction(value.as_long())
        exact = value if self.z3.is_rational_value(value) else value.approx(40)
        return Fraction(exact.numerator_as_long(), exact.denominator_as_long())

    def _rounded(self, model: Any) -> dict[Place, float] | None:
        """The legal floats nearest to a model, if they satisfy every relation."""
        found: dict[Place, float] = {}
        for place, reach in self.ranges.items():
            if reach is None:
                found[place] = float("nan")
            elif reach.single:
                found[place] = reach.low
            else:
                found[place] = reach.nearest(self._fraction(model.eval(self.variables[place], model_completion=True)))
        if all(relation.holds(found.__getitem__) for relation in self.relations):
            return found
        # Rounded one by one they miss: the others are chosen anew around each.
        return Choice(self.relations, (), found, _CHOICES).run(self.ranges)
