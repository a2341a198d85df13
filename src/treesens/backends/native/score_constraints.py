"""The part of a question that is about scores alone: its constraints by kind, and bounds on sums of scores in whole numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import lcm

import numpy as np

from treesens._engine import SCORE_BITS
from treesens.compiler.base.arrays import Int64Array
from treesens.compiler.base.dyadic import Unit
from treesens.compiler.model.cells import CellEnsemble
from treesens.compiler.model.scores import base_units, leaf_values
from treesens.compiler.query.forest import Forest
from treesens.compiler.query.query import (
    AllOf,
    AtLeast,
    AvoidBoxes,
    CellSet,
    Constraint,
    LinearForm,
    Objective,
    Query,
    SameExcept,
)

_MOST_DROPPED = 20
"""Bits of leaf values that may be rounded away: of the 60 that are left, sums of trees need some, too."""


@dataclass(frozen=True, eq=False)
class ScoreConstraints:
    """The constraints of a question by kind; `same` is the one pair of points that agree outside of some features."""

    rows: list[AtLeast]
    sets: list[CellSet]
    avoided: list[AvoidBoxes]
    same: SameExcept | None


def score_constraints_of(query: Query, *, optimises: bool = False) -> ScoreConstraints | None:
    """None if the question has parts of another kind, or neither bounds on scores nor a score that it optimises."""
    parts = ScoreConstraints([], [], [], None)
    same: list[SameExcept] = []

    def sort(constraints: tuple[Constraint, ...]) -> bool:
        for constraint in constraints:
            match constraint:
                case AllOf():
                    if not sort(constraint.parts):
                        return False
                case SameExcept():
                    same.append(constraint)
                case CellSet():
                    parts.sets.append(constraint)
                case AvoidBoxes():
                    parts.avoided.append(constraint)
                case AtLeast(form=form) if (form.scores or form.forests) and not (
                    form.costs or form.changes or form.pairs or form.levels
                ):
                    parts.rows.append(constraint)
                case _:
                    return False
        return True

    if not sort(query.constraints) or len(same) > 1 or len(query.points) > 2 or not (parts.rows or optimises):
        return None
    return ScoreConstraints(parts.rows, parts.sets, parts.avoided, same[0] if same else None)


@dataclass(frozen=True, eq=False)
class IntegerRow:
    """A bound on a sum of scores in whole numbers: what each leaf adds, by point, and how the bound is made.

    Where leaf values had to be `rounded`, the exact sum is greater by no more than `slack`: what the row excludes is excluded,
    but a point that it allows has to be looked at. (It may be less: then there is no slack.)
    """

    values: dict[int, Int64Array]
    base: int
    shift: int
    scale: int
    slack: int
    rounded: bool

    def bound(self, row: AtLeast) -> int:
        """What the leaves have to sum to."""
        return (row.bound * Fraction(self.scale)).ceil(self.shift, strict=row.strict) - self.base - self.slack

    def most(self, level: int) -> Fraction:
        """What the exact sum is at most where the leaves sum to no more than `level`."""
        return (level + self.base + self.slack) * self.unit

    @property
    def unit(self) -> Fraction:
        """What one of the whole numbers is."""
        return Unit(self.shift).size / self.scale


def row_of(query: Query, form: LinearForm, forests: Sequence[Forest]) -> IntegerRow | None:
    """Leaf values are rounded down as far as whole numbers would be too long; None if too little would be left."""
    terms = _terms_of(query, form)
    finest = max(leaf_values(trees, output)[1] for _, trees, output, _, _ in terms)
    tried = (_row_at(query, form, forests, finest - drop) for drop in range(_MOST_DROPPED + 1))
    return next((made for made in tried if made is not None), None)


def _row_at(query: Query, form: LinearForm, forests: Sequence[Forest], shift: int) -> IntegerRow | None:
    """In units of 2**-shift; None if whole numbers would be too long."""
    scale = lcm(*(t.coefficient.denominator for t in form.scores))
    parts: list[tuple[int, Forest | None, Int64Array, int]] = []
    base, most, short, rounded = 0, 0, 0, False
    for point, trees, output, coefficient, forest in _terms_of(query, form):
        leaves, own, slack = leaf_values(trees, output)
        if own > shift:
            leaves, slack = leaves >> (own - shift), trees.n_trees + 1
        factor = int(coefficient * scale) << max(0, shift - own)
        most += abs(factor) * (int(np.abs(leaves).max(initial=0)) * trees.n_trees + 1)
        # Values are rounded down: what is subtracted is rounded up by that.
        short += max(factor, 0) * slack
        rounded = rounded or slack > 0
        base += factor * base_units(trees, output, min(own, shift))
        parts.append((point, forest, leaves, factor))
    if (most + short).bit_length() > SCORE_BITS:
        return None
    return IntegerRow(_values_by_point(query, forests, parts), base, shift, scale, short, rounded)


def _values_by_point(
    query: Query, forests: Sequence[Forest], parts: Sequence[tuple[int, Forest | None, Int64Array, int]]
) -> dict[int, Int64Array]:
    """What every leaf of a point's trees adds: those of its model, and after them those of all forests."""
    counts = [query.models[query.points[p].model].n_leaves for p in range(len(query.points))]
    starts = np.cumsum([0, *(forest.ensemble.n_leaves for forest in forests)])
    values: dict[int, Int64Array] = {}
    for point, forest, leaves, factor in parts:
        leaf_sums = values.setdefault(point, np.zeros(counts[point] + int(starts[-1]), np.int64))
        first = 0 if forest is None else counts[point] + int(starts[forests.index(forest)])
        leaf_sums[first : first + len(leaves)] += leaves * factor
    return values


def _terms_of(query: Query, form: LinearForm) -> list[tuple[int, CellEnsemble, int, Fraction, Forest | None]]:
    """Scores and forests of a sum: point, trees, output, coefficient, and the forest that the trees are of."""
    models = [query.models[p.model] for p in query.points]
    scores = [(t.point, models[t.point], t.output, t.coefficient, None) for t in form.scores]
    return [*scores, *((t.point, t.trees, 0, Fraction(t.coefficient), t.forest) for t in form.forests)]


def forests_of(rows: Sequence[AtLeast]) -> list[Forest]:
    """The forests that rows name, each once, in their order."""
    return list(dict.fromkeys(term.forest for row in rows for term in row.form.forests))


def is_sum_of_scores(goal: Objective) -> bool:
    """True if the trees alone say what is optimised."""
    form = goal.form
    others = form.costs or form.changes or form.pairs or form.levels or form.forests
    return bool(form.scores) and not others and goal.nearest is None and not goal.values


def upwards_of(goal: Objective) -> LinearForm:
    """What is maximised: the sum of scores, or its negative."""
    sign = 1 if goal.maximize else -1
    return replace(goal.form, scores=tuple(replace(t, coefficient=sign * t.coefficient) for t in goal.form.scores))
