"""Stronger questions: a distance between two points becomes bounds on single features, which searches find their way in.

A sum over all features ties every feature to every other one, so that a local search can hardly move; bounds on single
features with the same consequence leave each one free in its own range. Whatever answers a stronger question answers the
question; that none answers it says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from treesens.compiler.query.query import AllOf, AnyOf, Constraint, Difference, Query, SameExcept
from treesens.compiler.query.values import DistanceTerm, ValueSum
from treesens.values.propagation import root_below


def stronger_questions(query: Query) -> Iterator[Query]:
    """The question with its distances between two points bounded feature by feature: evenly, then by one feature alone.

    Without distances of that kind there is nothing to make stronger, and none comes.
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
    """The terms of a bound on a distance between two points; none where the relation is of another kind."""
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
    """The points agree on what the distance counts, but for the features that move: each has an equal share of the limit."""
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
