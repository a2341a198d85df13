"""Finds constraints and alternatives that contradict another constraint on the same sum of values or of scores.

`changes(a, b) = 3` and `changes(a, b) != 3` contradict each other, but a search over cells does not detect this: two points in
one cell with several values may be equal or differ, so cells satisfy both constraints.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from treesens.compiler.query.query import AllOf, AnyOf, Constraint, Query
from treesens.compiler.query.values import ValueSum
from treesens.values.objective_ranges import factors_of, stated_relations
from treesens.values.score_clashes import Score, ScoreEnds, equal_scores, narrowed

NEVER = AnyOf(())
"""A constraint that no inputs satisfy."""


@dataclass
class _Sum:
    """A sum of values with the stated bounds, each with a flag for strictness."""

    factors: dict[object, Fraction]
    low: tuple[Fraction, bool] | None = None
    high: tuple[Fraction, bool] | None = None

    def ratio(self, other: dict[object, Fraction]) -> Fraction | None:
        """The factor between this sum and another sum; None unless one sum is a multiple of the other."""
        if other.keys() != self.factors.keys():
            return None
        ratios = {other[key] / self.factors[key] for key in other}
        return ratios.pop() if len(ratios) == 1 else None

    def narrowed(self, ratio: Fraction, relation: ValueSum) -> _Sum:
        """The sum with the additional constraint `ratio * sum <= limit`."""
        end = (relation.limit / ratio, relation.strict)
        if ratio > 0:
            return replace(self, high=end if self.high is None else min(self.high, end, key=lambda e: (e[0], not e[1])))
        return replace(self, low=end if self.low is None else max(self.low, end))

    @property
    def empty(self) -> bool:
        if self.low is None or self.high is None:
            return False
        return self.low[0] > self.high[0] or (self.low[0] == self.high[0] and (self.low[1] or self.high[1]))


def without_clashes(query: Query, *, across: bool = True) -> Query:
    """The question without impossible alternatives; a contradictory question receives NEVER as an additional constraint.

    Scores that two points share count as one score, unless `across` is False.
    """
    constraints = query.constraints
    equal = equal_scores(query) if across else {}
    if not any(_has_choice(constraint) for constraint in constraints):
        return query if narrowed({}, constraints, equal) is not None else replace(query, constraints=(NEVER,))
    while True:
        known = _with(_Known([], {}, equal), constraints)
        if known is None:
            return replace(query, constraints=(NEVER,))
        fewer = tuple(_reduced(constraint, known) for constraint in constraints)
        if all(new is old for new, old in zip(fewer, constraints, strict=True)):
            return query if constraints is query.constraints else replace(query, constraints=constraints)
        constraints = fewer


def _has_choice(constraint: Constraint) -> bool:
    return isinstance(constraint, AnyOf) or (
        isinstance(constraint, AllOf) and any(_has_choice(part) for part in constraint.parts)
    )


@dataclass(frozen=True, eq=False)
class _Known:
    """The stated bounds of sums of values and of sums of scores."""

    sums: list[_Sum]
    scores: ScoreEnds
    equal: Mapping[Score, Score]


def _with(known: _Known, constraints: Sequence[Constraint]) -> _Known | None:
    """The bounds after adding constraints; None for contradictory constraints."""
    sums = _joined(known.sums, stated_relations(constraints))
    scores = narrowed(known.scores, constraints, known.equal)
    return None if sums is None or scores is None else replace(known, sums=sums, scores=scores)


def _reduced(constraint: Constraint, known: _Known) -> Constraint:
    match constraint:
        case AnyOf(parts):
            left = tuple(part for part in parts if _with(known, (part,)) is not None)
            return constraint if len(left) == len(parts) else left[0] if len(left) == 1 else AnyOf(left)
        case AllOf(parts):
            reduced = tuple(_reduced(part, known) for part in parts)
            same = all(new is old for new, old in zip(reduced, parts, strict=True))
            return constraint if same else AllOf(reduced)
    return constraint


def _joined(sums: list[_Sum], relations: Iterable[ValueSum]) -> list[_Sum] | None:
    """The bounds after adding relations; None for contradictory relations."""
    sums = list(sums)
    for relation in relations:
        factors = factors_of(relation.terms)
        if not factors:
            continue
        for place, one in enumerate(sums):
            ratio = one.ratio(factors)
            if ratio is not None:
                sums[place] = one.narrowed(ratio, relation)
                if sums[place].empty:
                    return None
                break
        else:
            sums.append(_Sum(factors).narrowed(Fraction(1), relation))
    return sums
