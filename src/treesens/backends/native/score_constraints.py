"""The part of a question about scores only: its constraints by kind, and integer bounds on sums of scores."""

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
"""Maximum number of low bits of leaf values to round away: sums of trees also need some of the remaining 60."""


@dataclass(frozen=True, eq=False)
class ScoreConstraints:
    """The constraints of a question by kind; `same` states that two points agree except in some features, or is None."""

    rows: list[AtLeast]
    sets: list[CellSet]
    avoided: list[AvoidBoxes]
    same: SameExcept | None


def score_constraints_of(query: Query, *, optimises: bool = False) -> ScoreConstraints | None:
    """The constraints by kind; None for other kinds of parts, or if constraints and objective have no scores."""
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
    """An integer bound on a sum of scores: the leaves' terms by point, and the methods that build the bound.

    If leaf values were `rounded`, the exact sum exceeds the rounded sum by at most `slack`: a point that the row excludes
    violates the exact bound, but a point that the row allows must be checked. (No slack is needed if the exact sum is smaller.)
    """

    values: dict[int, Int64Array]
    base: int
    shift: int
    scale: int
    slack: int
    rounded: bool

    def bound(self, row: AtLeast) -> int:
        """The required sum of the leaves."""
        return (row.bound * Fraction(self.scale)).ceil(self.shift, strict=row.strict) - self.base - self.slack

    def most(self, level: int) -> Fraction:
        """The maximum exact sum if the sum of the leaves is at most `level`."""
        return (level + self.base + self.slack) * self.unit

    @property
    def unit(self) -> Fraction:
        """The value of one integer unit."""
        return Unit(self.shift).size / self.scale


def row_of(query: Query, form: LinearForm, forests: Sequence[Forest]) -> IntegerRow | None:
    """A bound in integers, with leaf values rounded down as far as needed to fit; None if too few bits would remain."""
    terms = _terms_of(query, form)
    finest = max(leaf_values(trees, output)[1] for _, trees, output, _, _ in terms)
    tried = (_row_at(query, form, forests, finest - drop) for drop in range(_MOST_DROPPED + 1))
    return next((made for made in tried if made is not None), None)


def _row_at(query: Query, form: LinearForm, forests: Sequence[Forest], shift: int) -> IntegerRow | None:
    """The row in units of 2**-shift; None if the integers would be too long."""
    scale = lcm(*(t.coefficient.denominator for t in form.scores))
    parts: list[tuple[int, Forest | None, Int64Array, int]] = []
    base, most, short, rounded = 0, 0, 0, False
    for point, trees, output, coefficient, forest in _terms_of(query, form):
        leaves, own, slack = leaf_values(trees, output)
        if own > shift:
            leaves, slack = leaves >> (own - shift), trees.n_trees + 1
        factor = int(coefficient * scale) << max(0, shift - own)
        most += abs(factor) * (int(np.abs(leaves).max(initial=0)) * trees.n_trees + 1)
        # Terms are rounded down, so a subtracted value is rounded up.
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
    """The terms of every leaf of a point's trees: first the trees of the point's model, then the trees of all forests."""
    counts = [query.models[query.points[p].model].n_leaves for p in range(len(query.points))]
    starts = np.cumsum([0, *(forest.ensemble.n_leaves for forest in forests)])
    values: dict[int, Int64Array] = {}
    for point, forest, leaves, factor in parts:
        leaf_sums = values.setdefault(point, np.zeros(counts[point] + int(starts[-1]), np.int64))
        first = 0 if forest is None else counts[point] + int(starts[forests.index(forest)])
        leaf_sums[first : first + len(leaves)] += leaves * factor
    return values


def _terms_of(query: Query, form: LinearForm) -> list[tuple[int, CellEnsemble, int, Fraction, Forest | None]]:
    """The terms of a sum, first scores, then forests: point, trees, output, coefficient, and the forest."""
    models = [query.models[p.model] for p in query.points]
    scores = [(t.point, models[t.point], t.output, t.coefficient, None) for t in form.scores]
    return [*scores, *((t.point, t.trees, 0, Fraction(t.coefficient), t.forest) for t in form.forests)]


def forests_of(rows: Sequence[AtLeast]) -> list[Forest]:
    """The forests that the rows use, each listed once, in order."""
    return list(dict.fromkeys(term.forest for row in rows for term in row.form.forests))


def is_sum_of_scores(goal: Objective) -> bool:
    """True if the objective depends on the trees alone."""
    form = goal.form
    others = form.costs or form.changes or form.pairs or form.levels or form.forests
    return bool(form.scores) and not others and goal.nearest is None and not goal.values


def upwards_of(goal: Objective) -> LinearForm:
    """The maximised quantity: the sum of scores, or its negative."""
    sign = 1 if goal.maximize else -1
    return replace(goal.form, scores=tuple(replace(t, coefficient=sign * t.coefficient) for t in goal.form.scores))
