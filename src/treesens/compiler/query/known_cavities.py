"""Restricts questions about all cavities to known cavities, which gives weaker questions that every method supports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from treesens.compiler.base.arrays import frozen, indptr_of
from treesens.compiler.query.query import AllOf, AnyOf, AvoidBoxes, AvoidCavities, Constraint, Query, parts_in


def all_cavities_in(constraints: Sequence[Constraint]) -> Iterator[AvoidCavities]:
    """Every constraint that a point avoids all cavities, including constraints inside formulas."""
    return (part for part in parts_in(constraints) if isinstance(part, AvoidCavities))


def with_known(query: Query) -> Query:
    """The question restricted to known cavities; every answer to the original question also answers the new question."""
    return replace(query, constraints=tuple(map(_with_known, query.constraints)))


def _with_known(constraint: Constraint) -> Constraint:
    match constraint:
        case AvoidCavities():
            return known_boxes(constraint)
        case AllOf(parts):
            return AllOf(tuple(map(_with_known, parts)))
        case AnyOf(parts):
            return AnyOf(tuple(map(_with_known, parts)))
        case _:
            return constraint


def known_boxes(constraint: AvoidCavities) -> AvoidBoxes:
    """The constraint that a point is outside all known boxes, over the question's cells."""
    boxes = list(constraint.cavities.known)
    ends = np.append(constraint.start, len(constraint.coarse))
    low, high = list[int](), list[int]()
    for box in boxes:
        for feature, first, last in box:
            owner = constraint.coarse[ends[feature] : ends[feature + 1]]
            low.append(int(np.searchsorted(owner, first)))
            high.append(int(np.searchsorted(owner, last, side="right")) - 1)
    return AvoidBoxes(
        constraint.point,
        frozen(indptr_of([len(box) for box in boxes])),
        frozen(np.array([feature for box in boxes for feature, _, _ in box], np.int32)),
        frozen(np.array(low, np.int32)),
        frozen(np.array(high, np.int32)),
    )
