"""Constraints on the number of features in which a question's two points differ."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from treesens.compiler.base.arrays import BoolArray
from treesens.compiler.query.query import AllOf, AnyOf, AtLeast, CellSet, Constraint, Difference, Objective, Query
from treesens.compiler.query.values import DistanceTerm, LinearTerm, ValueSum

Least = tuple[frozenset[int], int]
"""Some features of two points, and the minimum number of these features in which the points differ."""


@dataclass(frozen=True, eq=False)
class ChangesWanted:
    """A question for two points that differ in few of `features`: in at most `most` or, if `most` is None, as few as possible.

    `others` are the remaining constraints.
    """

    features: frozenset[int]
    most: int | None
    others: tuple[Constraint, ...]


def changes_wanted(query: Query) -> ChangesWanted | None:
    """The question's limit on the number of changes, or its minimisation; None for a question with rows or another goal."""
    if query.rows is not None:
        return None
    if query.objective is not None:
        counted = _features_counted(query.objective)
        return None if counted is None else ChangesWanted(counted, None, query.constraints)
    limits = [
        (limit[1], number) for number, c in enumerate(query.constraints) if (limit := counted_changes(c)) is not None
    ]
    if not limits:
        return None
    most, number = min(limits)
    limited = counted_changes(query.constraints[number])
    assert limited is not None
    return ChangesWanted(limited[0], most, (*query.constraints[:number], *query.constraints[number + 1 :]))


def _features_counted(goal: Objective) -> frozenset[int] | None:
    """The features whose changes between points 0 and 1 an objective minimises; None for other objectives."""
    if goal.maximize or not goal.counts or goal.unit != 1 or goal.offset or goal.nearest is not None:
        return None
    form = goal.form
    if form.scores or form.costs or form.pairs or len(form.levels) or form.forests or len(form.changes) != 1:
        return None
    counted = form.changes[0]
    if counted.coefficient != 1 or {counted.left, counted.right} != {0, 1}:
        return None
    single = all(
        isinstance(term, DistanceTerm) and term.unordered and term.factor == 1 and {term.point, term.other} == {0, 1}
        for term in goal.values
    )
    named = [term.feature for term in goal.values]
    if not single or len(set(named)) < len(named) or not set(named) <= set(counted.features):
        return None
    return frozenset(counted.features)


def implied_changes(constraints: Iterable[Constraint]) -> Iterator[Least]:
    """Yields what a conjunction of constraints implies about changes; alternatives yield only their common implications."""
    given = tuple(constraints)
    yield from _apart_by_cells(given)
    for constraint in given:
        match constraint:
            case AllOf():
                yield from implied_changes(constraint.parts)
            case AnyOf():
                parts = [list(implied_changes([part])) for part in constraint.parts]
                if parts and all(parts):
                    chosen = [max(found, key=lambda known: known[1]) for found in parts]
                    yield frozenset().union(*(features for features, _ in chosen)), min(least for _, least in chosen)
            case _:
                if (known := least_changes(constraint)) is not None and known[1] > 0:
                    yield known


def _apart_by_cells(constraints: Iterable[Constraint]) -> Iterator[Least]:
    """Yields features for which the allowed cells of two points are disjoint."""
    masks: dict[tuple[int, int], BoolArray] = {}
    for constraint in constraints:
        if isinstance(constraint, CellSet):
            place = (constraint.point, constraint.feature)
            masks[place] = constraint.mask & masks.get(place, constraint.mask)
    for point, feature in masks:
        if point == 0 and (1, feature) in masks and not (masks[0, feature] & masks[1, feature]).any():
            yield frozenset({feature}), 1


def counted_changes(constraint: Constraint) -> tuple[frozenset[int], int] | None:
    """Some features of two points, and the maximum number of them that differ; None if a constraint states anything else."""
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
    """Some features of two points, and the minimum number of them that differ, as a constraint states or implies."""
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
    """Features such that two points differ in at least one of them, if a bound on a sum of distances requires this.

    If the points agreed on all of these features, the sum would exceed its limit, because no other term is negative.
    """
    lowering = [term for term in relation.terms if term.factor < 0]
    between = all(isinstance(term, DistanceTerm) and {term.point, term.other} == {0, 1} for term in lowering)
    if not lowering or not between or not _is_above(-relation.limit, strict=relation.strict):
        return None
    return frozenset(term.feature for term in lowering), 1


def _is_above(low: Fraction | None, *, strict: bool) -> bool:
    """True if a sum with this lower bound (strict or not) is greater than 0."""
    return low is not None and (low > 0 or (low == 0 and strict))


def _whole(most: Fraction, *, strict: bool) -> int:
    """The greatest integer that is at most a limit or, if strict, below the limit."""
    return math.ceil(most) - 1 if strict else math.floor(most)
