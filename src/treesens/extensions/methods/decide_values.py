"""Decides values inside cells exactly if propagation leaves them undecided: few values by enumeration, many values with z3.

In z3, values are rationals; in a model, they are floats. Therefore `unsat` is a proof, but a solution found by z3 is rounded to
floats, and counts only if the floats satisfy the relations.

z3 is fast for linear arithmetic and slow for squares. Therefore each square becomes a variable; if a proposed point
contradicts a square, lemmas are added: tangents below, secants above (incremental linearization: Cimatti et al., TACAS 2017).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import isnan, log2
from typing import Any, Literal

from treesens.compiler.base.arrays import FloatArray
from treesens.compiler.base.dyadic import Unit
from treesens.compiler.base.floats import NumberType
from treesens.compiler.base.packages import imported
from treesens.compiler.query.query import Objective
from treesens.compiler.query.values import DistanceTerm, LinearTerm, Place, Term, ValueRange, ValueSum, sum_of
from treesens.extensions.methods.listed_values import values_listed
from treesens.values.concretise import Alternatives
from treesens.values.propagation import Choice, Ranges

Z3 = "z3"
MOST_SECONDS = 1.0
"""Maximum number of seconds that z3 may spend on one conjunction of relations."""
CLOSE = Fraction(1, 20_000)
"""The distance from the bound, in units of the objective, at which a value still counts as optimal."""
_CHOICES = 60
_LISTED = 64
"""Maximum number of values listed per variable; larger sets become ranges, which is a sound relaxation."""
_FINE = 30
"""Tangents touch the parabola, and secants meet, at multiples of 2**-_FINE."""


@dataclass(frozen=True)
class Inside:
    """A result about the values in some cells. `values`, float64[points, features], satisfies all relations; `none` is True if
    no such values exist; if neither is set, the result is undecided. No values have an objective better than `bound`.
    """

    values: FloatArray | None = None
    none: bool = False
    bound: Fraction | None = None
    by_z3: bool = False
    """True if `none` or `bound` relies on z3."""


def decide_values(alternatives: Alternatives, left: Callable[[], float]) -> Inside:
    """Searches for values that satisfy one of the alternatives, or proves that no such values exist."""
    open_case, by_z3 = not alternatives.complete, False
    for relations, ranges in alternatives.cases:
        found = values_listed(ranges, relations)
        if found is None:
            by_z3 = True
            found = _System(ranges, relations, left).values()
        if isinstance(found, dict):
            return Inside(values=alternatives.filled(found))
        open_case = open_case or found is None
    return Inside(none=not open_case, by_z3=by_z3)


def bound_objective(alternatives: Alternatives, goal: Objective, left: Callable[[], float]) -> Inside:
    """A bound on the objective over rationals, which floats may not attain, and values close to the bound."""
    if not alternatives.complete:
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
    return Inside(values, best is None, best, by_z3=True)


_Floats = dict[Place, float]


class _System:
    """A single conjunction of relations over ranges of values, as input for z3."""

    def __init__(self, ranges: Ranges, relations: Sequence[ValueSum], left: Callable[[], float]) -> None:
        self.z3: Any = imported(Z3, "relations between real values are decided with z3")
        self.ranges, self.relations = ranges, relations
        self.deadline = time.monotonic() + min(MOST_SECONDS, left())
        self.squares: dict[Any, _Square] = {}
        self.variables = {place: self._variable(place, reach) for place, reach in ranges.items() if reach is not None}

    def values(self) -> _Floats | Literal[False] | None:
        """Floats that satisfy the relations; False if no such floats exist, None if the search is inconclusive."""
        solver = self.z3.Solver()
        if not self._told(solver):
            return False
        found = self._searched(solver)
        if found is not None:
            return found
        # z3 prefers rationals that are not floats; multiples of a power of two are floats.
        for place, reach in self.ranges.items():
            if reach is not None and not (reach.single or reach.whole):
                step = self.z3.ToReal(self.z3.Int(f"k{place[0]}_{place[1]}"))
                solver.add(self.variables[place] * _steps(reach) == step)
        return self._searched(solver) or None

    def _searched(self, solver: Any) -> _Floats | Literal[False] | None:
        while (model := self._checked(solver)) is not None:
            if model is False:
                return False
            found = self._rounded(model)
            if found is not None:
                return found
            lemmas = [lemma for square in self.squares.values() for lemma in square.refuting(model)]
            if not lemmas:
                return None
            solver.add(*lemmas)
        return None

    def best(self, terms: Sequence[Term], goal: Objective) -> tuple[Fraction, _Floats | None] | Literal[False] | None:
        """A close bound on an objective, with floats that nearly attain it or with None; False and None are as in `values`."""
        solver = self.z3.Optimize()
        parts = [self._term(term) for term in terms]
        if not self._told(solver) or any(part is None for part in parts):
            return False
        total = self._largest(parts) if goal.largest else self.z3.Sum(parts) if parts else self.z3.RealVal(0)
        handle = (solver.maximize if goal.maximize else solver.minimize)(total)
        best: tuple[Fraction, _Floats | None] | None = None
        while (model := self._checked(solver)) is not None:
            if model is False:
                return False
            # z3 returns the coefficients of infinity, of 1, and of the infinitesimal from strict limits.
            endless, limit, _ = solver.upper_values(handle) if goal.maximize else solver.lower_values(handle)
            if self._fraction(endless) != 0:
                return best
            found = self._rounded(model)
            best = self._fraction(limit), found if found is not None or best is None else best[1]
            lemmas = [lemma for square in self.squares.values() for lemma in square.refuting(model)]
            if not lemmas or (found is not None and abs(_value(terms, goal, found) - best[0]) <= CLOSE):
                break
            solver.add(*lemmas)
        return best

    def _checked(self, solver: Any) -> Any:
        """A model; False if no model exists, None if z3 does not decide this within the time limit."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            return None
        solver.set("timeout", max(1, int(1000 * left)))
        state = solver.check()
        if state == self.z3.unsat:
            return False
        return solver.model() if state == self.z3.sat else None

    # --- input of z3 ------------------------------------------------------------------------------------------------------

    def _told(self, solver: Any) -> bool:
        """Adds all ranges and relations to z3; returns False if a missing value violates a relation."""
        for place, reach in self.ranges.items():
            if reach is not None:
                solver.add(*self._legal(place, reach))
        for relation in self.relations:
            parts = [self._term(term) for term in relation.terms]
            if any(part is None for part in parts):
                return False
            total = self.z3.Sum(parts) if parts else self.z3.RealVal(0)
            limit = self.number(relation.limit)
            solver.add(total < limit if relation.strict else total <= limit)
        solver.add(*(lemma for square in self.squares.values() for lemma in square.outline()))
        return True

    def number(self, value: Fraction) -> Any:
        return self.z3.RealVal(f"{value.numerator}/{value.denominator}")

    def _variable(self, place: Place, reach: ValueRange) -> Any:
        if reach.single:
            return self.number(Fraction(reach.low))
        name = f"x{place[0]}_{place[1]}"
        return self.z3.ToReal(self.z3.Int(name)) if reach.whole else self.z3.Real(name)

    def _legal(self, place: Place, reach: ValueRange) -> Iterator[Any]:
        if reach.single:
            return
        x = self.variables[place]
        yield self.number(Fraction(reach.low)) <= x
        yield x <= self.number(Fraction(reach.high))
        if reach.values is not None:
            inside = reach.values[(reach.values >= reach.low) & (reach.values <= reach.high)].tolist()
            if len(inside) <= _LISTED:
                yield self.z3.Or([x == self.number(Fraction(v)) for v in inside])

    def _term(self, term: Term) -> Any:
        """A term as an expression of z3; None if the term has no value."""
        values = [self.variables.get(place) for place in term.places]
        if isinstance(term, LinearTerm):
            return None if values[0] is None else self.number(term.factor) * values[0]
        left, right = values[0], values[1] if term.other is not None else self._row(term)
        if left is None or right is None:
            return self.number(term.factor * (0 if left is None and right is None else 1))
        if term.unordered:
            return self.z3.If(left == right, self.number(Fraction(0)), self.number(term.factor))
        if term.power != 1:
            return self.number(term.factor / term.width**2) * self._square(term, left - right)
        away = self.z3.If(left >= right, left - right, right - left)
        return self.number(term.factor / term.width) * away

    def _row(self, term: DistanceTerm) -> Any:
        return None if isnan(term.row) else self.number(Fraction(term.row))

    def _square(self, term: DistanceTerm, away: Any) -> Any:
        """The variable for the square of a difference, created on first use."""
        key = (*term.places, None if term.other is not None else term.row)
        if key not in self.squares:
            row = ValueRange(term.row, term.row, NumberType.FLOAT64, whole=float(term.row).is_integer())
            ends = [self.ranges[p] or row for p in term.places] + ([row] if term.other is None else [])
            low = Fraction(ends[0].low) - Fraction(ends[1].high)
            high = Fraction(ends[0].high) - Fraction(ends[1].low)
            self.squares[key] = _Square(self, len(self.squares), away, low, high, all(e.whole for e in ends))
        return self.squares[key].value

    def _largest(self, parts: Sequence[Any]) -> Any:
        most = self.z3.RealVal(0)
        for part in parts:
            most = self.z3.If(part >= most, part, most)
        return most

    # --- answers of z3 ----------------------------------------------------------------------------------------------------

    def valued(self, model: Any, expression: Any) -> Fraction:
        return self._fraction(model.eval(expression, model_completion=True))

    def _fraction(self, value: Any) -> Fraction:
        if self.z3.is_int_value(value):
            return Fraction(value.as_long())
        exact = value if self.z3.is_rational_value(value) else value.approx(40)
        return Fraction(exact.numerator_as_long(), exact.denominator_as_long())

    def _rounded(self, model: Any) -> _Floats | None:
        """The legal floats nearest to z3's model, or other floats nearby, if they satisfy every relation; otherwise None."""
        found: _Floats = {}
        for place, reach in self.ranges.items():
            if reach is None:
                found[place] = float("nan")
            elif reach.single:
                found[place] = reach.low
            else:
                found[place] = reach.nearest(self.valued(model, self.variables[place]))
        if all(relation.holds(found.__getitem__) for relation in self.relations):
            return found
        if self.squares:
            return None  # the variables of squares may contradict this proposal
        return Choice(self.relations, (), found, _CHOICES).run(self.ranges)


@dataclass
class _Square:
    """A variable for the square of `away`, which is in [low, high] and is an integer if `whole`; secants meet at `cuts`."""

    system: _System
    number: int
    away: Any
    low: Fraction
    high: Fraction
    whole: bool
    cuts: list[Fraction] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.value = self.system.z3.Real(f"s{self.number}")
        self.cuts = [self.low, self.high]

    def outline(self) -> Iterator[Any]:
        """The tangents at both ends and at 0, and the secant between the ends."""
        yield self.value >= 0
        yield self._tangent(self.low)
        yield self._tangent(self.high)
        yield self._secant(self.low, self.high)

    def refuting(self, model: Any) -> Iterator[Any]:
        """Lemmas that exclude the value of the square in z3's model; none if this value is close enough."""
        x, given = self.system.valued(model, self.away), self.system.valued(model, self.value)
        close = (self.high - self.low + 1) ** 2 * Unit(_FINE).size
        at = x if self.whole else Fraction(round(x * (1 << _FINE)), 1 << _FINE)
        if given < x * x - (0 if self.whole else close):
            yield self._tangent(at)
            if self.whole:
                yield self._chord(at)
                yield self._chord(at - 1)
        elif given > x * x + (0 if self.whole else close) and at not in self.cuts:
            before = max(c for c in self.cuts if c <= max(at, self.low))
            after = min(c for c in self.cuts if c >= min(at, self.high))
            self.cuts.append(at)
            yield self._secant(before, at)
            yield self._secant(at, after)

    def _tangent(self, at: Fraction) -> Any:
        return self.value >= self.system.number(2 * at) * self.away - self.system.number(at * at)

    def _chord(self, at: Fraction) -> Any:
        """The chord between the integer `at` and the next integer; no integer is strictly between them."""
        return self.value >= self.system.number(2 * at + 1) * self.away - self.system.number(at * (at + 1))

    def _secant(self, low: Fraction, high: Fraction) -> Any:
        number, z3 = self.system.number, self.system.z3
        inside = z3.And(self.away >= number(low), self.away <= number(high))
        return z3.Implies(inside, self.value <= number(low + high) * self.away - number(low * high))


def _value(terms: Sequence[Term], goal: Objective, values: _Floats) -> Fraction:
    parts = [sum_of((term,), values.__getitem__) or Fraction(0) for term in terms]
    return max(parts, default=Fraction(0)) if goal.largest else sum(parts, Fraction(0))


def _steps(reach: ValueRange) -> int:
    """A power of two such that all multiples of its inverse within the range are floats of the type."""
    size = max(abs(reach.low), abs(reach.high), 1.0)
    return 1 << max(0, min(20, 22 - int(log2(size))))
