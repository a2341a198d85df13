"""What a constraint is about: the points and the scores that it reads."""

from __future__ import annotations

from typing import assert_never

from treesens.compiler.query.query import (
    AllOf,
    AnyOf,
    AtLeast,
    AvoidBoxes,
    CellSet,
    Constraint,
    Difference,
    OneHot,
    SameExcept,
)


def points_in(constraint: Constraint) -> frozenset[int]:
    """The points that a constraint reads."""
    match constraint:
        case SameExcept() | Difference():
            return frozenset((constraint.left, constraint.right))
        case CellSet() | AvoidBoxes() | OneHot():
            return frozenset((constraint.point,))
        case AtLeast(form=form):
            read = {t.point for t in form.scores} | {c.point for c in form.costs}
            return frozenset(read.union(*({c.left, c.right} for c in form.changes)))
        case AllOf() | AnyOf():
            return frozenset[int]().union(*(points_in(part) for part in constraint.parts))
        case _:
            assert_never(constraint)
