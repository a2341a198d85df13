"""The linf distance as an objective: a ladder of levels; each level is reached or not.

For a distance to a row, the levels are the distances of all cells, so the ladder is exact. For two points, the levels are
evenly spaced, and each level is a constraint on pairs of cells; `zoom` refines the steps until they enclose the optimum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache, cached_property
from typing import overload

import numpy as np

from treesens.binder.distances import near_points
from treesens.binder.scope import Scope
from treesens.compiler.base.arrays import BoolArray, frozen, runs_of
from treesens.compiler.base.diagnostics import Span
from treesens.compiler.query import query as q
from treesens.compiler.query.values import DistanceTerm
from treesens.values.distance_costs import UNARY_SHIFT, distances_of_cells
from treesens.values.row_costs import best_of_cells

MOST_LEVELS = 512
STEPS = 12
"""Number of levels of one ladder for two points."""


class Ladder(Sequence[q.Level]):
    """The levels of a ladder, created on first access, because a search over radii never uses them."""

    def __init__(self, make: Callable[[], tuple[q.Level, ...]]) -> None:
        self._make = make

    @cached_property
    def _levels(self) -> tuple[q.Level, ...]:
        return self._make()

    def __len__(self) -> int:
        return len(self._levels)

    @overload
    def __getitem__(self, index: int) -> q.Level: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[q.Level, ...]: ...
    def __getitem__(self, index: int | slice) -> q.Level | tuple[q.Level, ...]:
        return self._levels[index]

    def __eq__(self, other: object) -> bool:
        return self._levels == (other._levels if isinstance(other, Ladder) else other)

    def __hash__(self) -> int:
        return hash(self._levels)


def objective_to_row(space: q.Space, terms: tuple[DistanceTerm, ...], upwards: bool) -> q.Objective:
    """The objective "largest distance to a row in any feature"."""

    @cache
    def distances() -> list[list[Fraction | None]]:
        return [distances_of_cells(space, term, upwards) for term in terms]

    def reaching(value: Fraction) -> q.Constraint:
        best = distances()
        if upwards:
            sides = [
                q.CellSet(t.point, t.feature, frozen(_reached(costs, value), bool))
                for t, costs in zip(terms, best, strict=True)
            ]
            return q.AnyOf(tuple(side for side in sides if side.mask.any()))
        beyond = [np.array([v is not None and v > value for v in costs], bool) for costs in best]
        return q.AllOf(tuple(side for t, mask in zip(terms, beyond, strict=True) for side in _runs(t, ~mask)))

    form = q.LinearForm(levels=Ladder(lambda: levels_to_row(terms, distances(), upwards)))
    return q.Objective(form, upwards, "distance linf", values=terms, largest=True, reaching=reaching)


def distance_to_row(space: q.Space, nearest: q.NearestRows, row: int) -> q.Objective:
    """The distance to a single row of `nearest` as an objective, optimised over values."""
    terms = tuple(
        DistanceTerm(
            nearest.point,
            f,
            None,
            float(nearest.values[row, column]),
            Fraction(float(nearest.widths[column])),
            2 if nearest.norm == "l2" else 1,
            nearest.norm == "l0" or bool(nearest.same_or_not[column]),
        )
        for column, f in enumerate(nearest.features)
    )
    if nearest.norm == "linf":
        return objective_to_row(space, terms, False)
    return q.Objective(best_of_cells(space, terms, False), False, f"distance {nearest.norm}", values=terms)


def levels_to_row(
    terms: tuple[DistanceTerm, ...], best: list[list[Fraction | None]], upwards: bool
) -> tuple[q.Level, ...]:
    """One level for each cell's least distance from the row; the distance is the greatest level that is reached."""
    found = sorted({v for costs in best for v in costs if v is not None and v > 0})
    if len(found) > MOST_LEVELS:
        kept = np.linspace(0, len(found) - 1, MOST_LEVELS).astype(int)
        found = [found[i] for i in kept]
    values = found
    if upwards and found:
        # A distance between two levels counts as the upper level.
        tops = {v: v for v in found}
        everything = sorted({v for costs in best for v in costs if v is not None and v > 0})
        for low, high in zip(found, [*found[1:], everything[-1]], strict=True):
            tops[low] = max([low, *(v for v in everything if low <= v < high)])
        values = [tops[v] for v in found]
    levels = []
    before = 0
    for level, value in zip(found, values, strict=True):
        reached = (
            (value * (1 << UNARY_SHIFT)).__floor__() if not upwards else -((-value * (1 << UNARY_SHIFT)).__floor__())
        )
        if upwards:
            sides = tuple(
                q.CellSet(t.point, t.feature, frozen(_reached(costs, level), bool))
                for t, costs in zip(terms, best, strict=True)
            )
            above = q.AnyOf(tuple(side for side in sides if side.mask.any()))
            levels.append(q.Level(reached - before, UNARY_SHIFT, above=above))
        else:
            parts = [side for t, costs in zip(terms, best, strict=True) for side in _runs(t, ~_reached(costs, level))]
            levels.append(q.Level(reached - before, UNARY_SHIFT, below=q.AllOf(tuple(parts))))
        before = reached
    return tuple(levels)


def _reached(costs: list[Fraction | None], level: Fraction) -> BoolArray:
    """Marks cells whose distance is at least a level, bool[n_cells]; arbitrary for cells without values."""
    return np.array([v is not None and v >= level for v in costs], bool)


def _runs(term: DistanceTerm, mask: BoolArray) -> list[q.CellSet]:
    """A run of cells as two sets; each set is one literal."""
    if mask.all():
        return []
    low, high = runs_of(mask)
    if len(low) != 1:
        return [q.CellSet(term.point, term.feature, frozen(mask, bool))]
    cells = np.arange(len(mask))
    sides = [cells >= low[0], cells <= high[0]]
    return [q.CellSet(term.point, term.feature, frozen(side, bool)) for side in sides if not side.all()]


def ladder_of_points(
    scope: Scope, terms: tuple[DistanceTerm, ...], upwards: bool, span: Span
) -> Callable[[q.Space], q.Objective]:
    """The objective "largest distance between two points in any feature", in steps from 0 to 1 width."""
    left, right = terms[0].point, terms[0].other
    assert right is not None
    features = [t.feature for t in terms]

    def between(space: q.Space, low: Fraction, high: Fraction) -> q.Objective:
        marks = [low + (high - low) * i / STEPS for i in range(STEPS + 1)]
        levels: list[q.Level] = []
        counted = 0
        for i, mark in enumerate(marks):
            if upwards:
                # Distances from this mark to the next one count as the next one.
                top = marks[i + 1] if i < STEPS else max(high, Fraction(1))
                worth = -((-top * (1 << UNARY_SHIFT)).__floor__())
                reached = near_points(scope, left, right, features, mark, False, False, span)(space)
                above = q.AllOf(()) if i == 0 else reached
                levels.append(q.Level(worth - counted, UNARY_SHIFT, above=above))
            else:
                worth = (mark * (1 << UNARY_SHIFT)).__floor__()
                if worth == counted:
                    continue
                below = near_points(scope, left, right, features, mark, False, True, span)(space)
                levels.append(q.Level(worth - counted, UNARY_SHIFT, below=below))
            counted = worth
        return q.Objective(
            q.LinearForm(levels=tuple(levels)),
            upwards,
            "distance linf",
            values=terms,
            largest=True,
            zoom=lambda least, most: between(space, least, most),
            reaching=lambda value: near_points(scope, left, right, features, value, not upwards, not upwards, span)(
                space
            ),
        )

    return lambda space: between(space, Fraction(0), Fraction(1))
