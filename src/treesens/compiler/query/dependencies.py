"""The points and the scores that a constraint depends on."""

from __future__ import annotations

from typing import assert_never

from treesens.compiler.query.query import (
    AllOf,
    AnyOf,
    AtLeast,
    AvoidBoxes,
    AvoidCavities,
    CellSet,
    Constraint,
    Difference,
    OneHot,
    ProbabilitySum,
    SameExcept,
)
from treesens.compiler.query.values import ValueSum


def points_in(constraint: Constraint) -> frozenset[int]:
    """The points that a constraint depends on."""
    match constraint:
        case SameExcept() | Difference():
            return frozenset((constraint.left, constraint.right))
        case CellSet() | AvoidBoxes() | AvoidCavities() | OneHot():
            return frozenset((constraint.point,))
        case AtLeast(form=form):
            read = {t.point for t in form.scores} | {c.point for c in form.costs} | {t.point for t in form.forests}
            read |= {point for pair in form.pairs for point, _ in (pair.left, pair.right)}
            steps = [points_in(s) for level in form.levels for s in (level.below, level.above) if s is not None]
            return frozenset(read.union(*({c.left, c.right} for c in form.changes), *steps))
        case ProbabilitySum(terms=terms):
            return frozenset(t.point for term in terms for t in term.reads())
        case ValueSum():
            return frozenset(point for point, _ in constraint.places)
        case AllOf() | AnyOf():
            return frozenset[int]().union(*(points_in(part) for part in constraint.parts))
        case _:
            assert_never(constraint)


def decided_by_cells(constraint: Constraint) -> bool:
    """True if cells alone decide a constraint, whatever the values in these cells."""
    match constraint:
        case AllOf() | AnyOf():
            return all(map(decided_by_cells, constraint.parts))
        case AtLeast(form=form):
            steps = [s for level in form.levels for s in (level.below, level.above) if s is not None]
            return not (form.changes or constraint.values) and all(map(decided_by_cells, steps))
        case CellSet() | ProbabilitySum() | OneHot() | AvoidBoxes() | AvoidCavities():
            return True
        case SameExcept() | Difference() | ValueSum():
            return False
        case _:
            assert_never(constraint)
