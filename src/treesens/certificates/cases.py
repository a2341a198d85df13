"""Questions that no statement can say, as several that each can be said: every input of the question answers one of them.

A disjunction is one case per part. At most k changes between two points are one case per set of k features that may vary.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

from treesens.compiler.query.query import AllOf, AnyOf, AtLeast, CellSet, Constraint, Difference, Query, SameExcept
from treesens.compiler.query.values import DistanceTerm, LinearTerm, ValueSum

MOST = 64
"""Cases of one question: each is proved by itself."""


def cases_of(query: Query, extra: tuple[AtLeast, ...] = ()) -> list[tuple[Query, tuple[AtLeast, ...]]] | None:
    """The cases of a question with `extra` rows; None if it is one case itself, or would be too many.

    A case in which the points have to differ in more features than may vary is left out.
    """
    bare, rest = without_objective(query, extra)
    found: list[Query] = []
    waiting = [bare]
    while waiting:
        one = waiting.pop()
        parts = parted(one)
        if parts is None:
            found += [] if agree_too_much(one) else [one]
        else:
            waiting += parts
        if len(found) + len(waiting) > MOST:
            return None
    return None if found == [bare] else [(one, rest) for one in reversed(found)]


def without_objective(query: Query, extra: tuple[AtLeast, ...]) -> tuple[Query, tuple[AtLeast, ...]]:
    """The question with limits of changes among `extra` rows and no conjunctions, and the other rows."""
    limits = (row for row in extra if row.form.changes)
    bare = replace(query, objective=None, constraints=tuple(flat((*query.constraints, *limits))))
    return bare, tuple(row for row in extra if not row.form.changes)


def flat(constraints: Iterable[Constraint]) -> Iterator[Constraint]:
    """Constraints, with the parts of conjunctions in their place, and what the two ways of a distance are in place of it."""
    for constraint in constraints:
        yield from flat(constraint.parts) if isinstance(constraint, AllOf) else (constraint,)


def parted(query: Query) -> list[Query] | None:
    """The question by the parts of its first constraint that has some; None if there is none."""
    for place, constraint in enumerate(query.constraints):
        others = (*query.constraints[:place], *query.constraints[place + 1 :])
        if isinstance(constraint, AnyOf) and not all(isinstance(part, CellSet) for part in constraint.parts):
            return [replace(query, constraints=tuple(flat((*others, part)))) for part in constraint.parts]
        counted = counted_changes(constraint)
        if counted is not None:
            parts = _by_changes(query, others, *counted)
            if parts is not None:
                return parts
    return None


def counted_changes(constraint: Constraint) -> tuple[frozenset[int], int] | None:
    """Features of two points, and in how many of them the points differ at most, if a constraint says so and nothing else."""
    if isinstance(constraint, ValueSum):
        return _counted_sum(constraint)
    if not isinstance(constraint, AtLeast):
        return None
    form, bound = constraint.form, constraint.bound
    others = form.scores or form.costs or form.pairs or len(form.levels) or form.forests
    if others or len(form.changes) != 1 or form.changes[0].coefficient >= 0 or bound.logs:
        return None
    counted = form.changes[0]
    if {counted.left, counted.right} != {0, 1}:
        return None
    return frozenset(counted.features), _whole(bound.rational / counted.coefficient, strict=constraint.strict)


def _counted_sum(relation: ValueSum) -> tuple[frozenset[int], int] | None:
    features = set()
    for term in relation.terms:
        if not isinstance(term, DistanceTerm) or not term.unordered or {term.point, term.other} != {0, 1}:
            return None
        if term.factor != 1 or term.feature in features:
            return None
        features.add(term.feature)
    return frozenset(features), _whole(relation.limit, strict=relation.strict)


def least_changes(constraint: Constraint) -> tuple[frozenset[int], int] | None:
    """Features of two points, and in how many of them the points differ at least, if a constraint says or implies so."""
    if isinstance(constraint, AtLeast):
        form, bound = constraint.form, constraint.bound
        others = form.scores or form.costs or form.pairs or len(form.levels) or form.forests
        if others or len(form.changes) != 1 or form.changes[0].coefficient <= 0 or bound.logs:
            return None
        counted = form.changes[0]
        if {counted.left, counted.right} != {0, 1}:
            return None
        return frozenset(counted.features), -_whole(-bound.rational / counted.coefficient, strict=constraint.strict)
    if isinstance(constraint, Difference):
        apart = _is_above(constraint.low, strict=constraint.low_strict) or _is_above(
            None if constraint.high is None else -constraint.high, strict=constraint.high_strict
        )
        same = constraint.feature == constraint.other and constraint.left_factor == constraint.right_factor
        return (frozenset({constraint.feature}), 1) if apart and same and constraint.left != constraint.right else None
    return _least_of_sum(constraint) if isinstance(constraint, ValueSum) else None


def _least_of_sum(relation: ValueSum) -> tuple[frozenset[int], int] | None:
    terms = relation.terms
    if all(isinstance(term, DistanceTerm) for term in terms):
        turned = tuple(replace(term, factor=-term.factor) for term in terms if isinstance(term, DistanceTerm))
        counted = _counted_sum(replace(relation, terms=turned))
        return _apart_at_all(relation) if counted is None else (counted[0], -counted[1])
    if len(terms) != 2 or not _is_above(-relation.limit, strict=relation.strict):
        return None
    one, other = terms
    if not isinstance(one, LinearTerm) or not isinstance(other, LinearTerm):
        return None
    same = one.feature == other.feature and one.factor + other.factor == 0 and one.point != other.point
    return (frozenset({one.feature}), 1) if same else None


def _apart_at_all(relation: ValueSum) -> tuple[frozenset[int], int] | None:
    """Features in one of which two points differ, if a sum of distances says that theirs is above 0.

    Points that agree on these have a distance of 0, and all other terms are at least 0, which is above the limit.
    """
    lowering = [term for term in relation.terms if term.factor < 0]
    between = all(isinstance(term, DistanceTerm) and {term.point, term.other} == {0, 1} for term in lowering)
    if not lowering or not between or not _is_above(-relation.limit, strict=relation.strict):
        return None
    return frozenset(term.feature for term in lowering), 1


def _is_above(low: Fraction | None, *, strict: bool) -> bool:
    """Whether what is at least (more than) this is more than 0."""
    return low is not None and (low > 0 or (low == 0 and strict))


def agree_too_much(query: Query) -> bool:
    """Whether the points have to differ in more features than may vary."""
    free = frozenset(range(len(query.space.names)))
    for link in query.constraints:
        if isinstance(link, SameExcept):
            free &= link.varied
    known = filter(None, map(least_changes, query.constraints))
    return any(len(counted & free) < least for counted, least in known)


def _whole(most: Fraction, *, strict: bool) -> int:
    """The greatest whole number that is at most, or below, a limit."""
    return math.ceil(most) - 1 if strict else math.floor(most)


def _by_changes(query: Query, others: tuple[Constraint, ...], counted: frozenset[int], most: int) -> list[Query] | None:
    """One case per set of features that may differ; what is not counted may differ as before. None if these are too many."""
    free = frozenset(range(len(query.space.names)))
    for link in others:
        if isinstance(link, SameExcept):
            free &= link.varied
    mine = sorted(free & counted)
    kept = tuple(c for c in others if not isinstance(c, SameExcept))
    if most < 0:
        return []
    if math.comb(len(mine), min(most, len(mine))) > MOST:
        return None
    uncounted = free - frozenset(mine)
    return [
        replace(query, constraints=(SameExcept(0, 1, uncounted | frozenset(chosen)), *kept))
        for chosen in combinations(mine, min(most, len(mine)))
    ]
