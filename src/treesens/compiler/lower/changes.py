"""How many features two points differ in, as a sum of literals over cells.

Values in different cells differ. Values in one cell may be equal, and may differ if the cell has several: a bound from above
counts the first (`Changes.most` is False), a bound from below the second.
"""

from __future__ import annotations

from fractions import Fraction
from math import lcm

import numpy as np

from treesens.compiler.base.arrays import BoolArray, Int32Array, IntegerArray
from treesens.compiler.lower.builder import Builder
from treesens.compiler.query import query as q
from treesens.compiler.query.bounds import LogRational
from treesens.compiler.query.values import DistanceTerm, Term, ValueSum
from treesens.values.distance_costs import cell_reaches
from treesens.values.relations import merged_mask

Part = tuple[Int32Array, IntegerArray, int]
"""Variables, coefficients and the shift of their unit."""


def counts_changes(terms: tuple[Term, ...]) -> bool:
    """Whether a sum does nothing but count features in which two points differ."""
    return bool(terms) and all(isinstance(t, DistanceTerm) and t.unordered and t.other is not None for t in terms)


def row_of_changes(relation: ValueSum, terms: tuple[Term, ...]) -> q.AtLeast:
    """What cells say of a sum of such terms <= limit: minus the least sum is at least minus the limit."""
    scale = lcm(*(t.factor.denominator for t in terms))
    groups: dict[tuple[int, int, Fraction], list[int]] = {}
    for term in terms:
        assert isinstance(term, DistanceTerm)
        assert term.other is not None
        groups.setdefault((term.point, term.other, term.factor), []).append(term.feature)
    changes = tuple(
        q.Changes(left, right, tuple(features), -int(factor * scale), most=factor < 0)
        for (left, right, factor), features in groups.items()
    )
    return q.AtLeast(
        q.LinearForm(changes=changes), LogRational(-relation.limit * scale), relation.strict, relation.name
    )


def lower_changes(builder: Builder, change: q.Changes, multiplier: int, parts: list[Part]) -> Fraction:
    """A literal per feature that is true exactly if it counts, in `parts`; returns the constant of features that always do."""
    literals: list[int] = []
    always = 0
    for feature in change.features:
        several = _several_values(builder, change.left, feature) if change.most else np.zeros(0, bool)
        if change.most and several[merged_mask(builder.query, change.left, feature)].all():
            always += 1
        elif (literal := _counts(builder, change, feature, several)) is not None:
            literals.append(literal >> 1)
    weight = change.coefficient * multiplier
    parts.append((np.array(literals, np.int32), np.full(len(literals), weight, np.int64), 0))
    return Fraction(always * weight)


def _several_values(builder: Builder, point: int, feature: int) -> BoolArray:
    """The cells of a feature that hold more than one legal value, bool[n_cells]."""
    space = builder.query.space
    if feature not in builder.several:
        ranges = cell_reaches(space, feature)
        builder.several[feature] = np.array([r is not None and not r.single for r in ranges], bool)
    return np.asarray(builder.several[feature] & merged_mask(builder.query, point, feature))


def _counts(builder: Builder, change: q.Changes, feature: int, several: BoolArray) -> int | None:
    """A literal that is true exactly if the cells differ, or lie in `several`; None if there is one cell only."""
    left = builder.order(feature, change.left).variables
    right = builder.order(feature, change.right).variables
    if len(left) == 0:
        return None
    literal = builder.reified()
    some = [literal ^ 1]
    if several.any():
        inside = builder.inside(change.left, feature, several)
        builder.clause([literal, inside ^ 1])
        some.append(inside)
    for a, b in zip(left, right, strict=True):
        builder.clause([literal, int(a) * 2, int(b) * 2 + 1])
        builder.clause([literal, int(a) * 2 + 1, int(b) * 2])
        # "different" must have a predicate on which they part: one fresh literal per predicate and direction.
        apart = builder.reified()
        builder.clause([apart ^ 1, int(a) * 2, int(b) * 2])
        builder.clause([apart ^ 1, int(a) * 2 + 1, int(b) * 2 + 1])
        some.append(apart)
    builder.clause(some)
    return literal
