"""Finds the best sum of scores on a small domain from one table per point, without listing pairs.

A sum of scores has one part per point. Two points choose their cells independently, except in shared features and in related
features. For fixed cells of the shared and the related features, the best pair therefore consists of the best cells of each
point: n cells of a varied feature yield n**2 pairs, but only n sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import lcm
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.base.arrays import BoolArray, Int32Array, Int64Array
from treesens.compiler.base.dyadic import exact_product, largest_magnitude
from treesens.compiler.query.dependencies import points_in
from treesens.compiler.query.query import AllOf, Constraint, Query, SameExcept
from treesens.extensions.methods.combinations import Combinations, Exact
from treesens.values.relations import places_named

MOST_WALKS: Final = 20_000_000
"""Maximum number of tree evaluations: trees times combinations of cells of a point."""
MOST_SUMS: Final = 20_000_000
"""Maximum number of sums: combinations of cells of the shared features, times pairs of combinations of the related features."""

_ROOM = 1 << 59
"""If sums are below this limit, int64 has room for the marker of a missing sum."""


@dataclass(frozen=True, eq=False)
class BestCells:
    """The `cells` int32[points, features] for which the form of an objective has its best value; None if no cells satisfy the
    constraints. `count` is the number of combinations of cells for which sums were computed.
    """

    count: int
    cells: Int32Array | None = None
    value: Fraction = Fraction(0)


def best_cells(query: Query, most: int) -> BestCells | None:
    """The best cells for an objective that is a sum of scores. None if a point has more than `most` combinations of cells, if
    the number of sums exceeds this module's limit, or if constraints relate the points in other ways than by shared features
    and by relations between features that are not shared.

    The value is exact, or a bound over the values in the cells: constraints are relaxed in the same way as in `Combinations`.
    """
    if len(query.points) > 2:
        return None
    trees = max(query.models[point.model].n_trees for point in query.points)
    alone = Combinations.of_points(query, min(most, MOST_WALKS // max(1, trees)))
    if alone is None:
        return None
    relations = _relations(query, _shared(alone[0]))
    if relations is None:
        return None
    count = sum(part.count for part in alone)
    if not all(part.count for part in alone):
        return BestCells(count)
    sums, unit = _sums(query, alone)
    if len(alone) == 1:
        best = int(np.argmax(sums[0]))
        return BestCells(count, alone[0].cells[best], int(sums[0][best]) * unit)
    return _best_pair(count, alone, relations, sums, unit)


def _relations(query: Query, shared: set[int]) -> list[Constraint] | None:
    """The relations between features that are not shared by the points; None if other constraints relate the points."""
    found: list[Constraint] = []
    open_parts = list[Constraint](query.constraints)
    while open_parts:
        part = open_parts.pop()
        match part:
            case AllOf(parts):
                open_parts += parts
            case SameExcept():
                pass
            case _ if len(points_in(part)) <= 1:
                pass
            case _ if (named := places_named(part)) is not None and not {f for _, f in named} & shared:
                found.append(part)
            case _:
                return None
    return found


def _shared(of: Combinations) -> set[int]:
    features = range(len(of.slots))
    return {f for f in features if len(of.query.points) == 2 and of.roots[0, f] == of.roots[1, f]}


def _sums(query: Query, alone: Sequence[Combinations]) -> tuple[list[Exact], Fraction]:
    """The contribution of every point to the form, as an integer multiple of a unit; greater multiples are better."""
    assert query.objective is not None
    form, upwards = query.objective.form, query.objective.maximize
    parts = [
        part.best_of_form(replace(form, scores=tuple(s for s in form.scores if s.point == p)), upwards=upwards)
        for p, part in enumerate(alone)
    ]
    common, sign = lcm(*(denominator for _, denominator in parts)), 1 if upwards else -1
    return [exact_product(values, sign * (common // own)) for values, own in parts], Fraction(sign, common)


def _best_pair(
    count: int,
    alone: Sequence[Combinations],
    relations: Sequence[Constraint],
    sums: list[Exact],
    unit: Fraction,
) -> BestCells | None:
    size = max(map(largest_magnitude, sums))
    sums = [values.astype(np.int64 if size < _ROOM else object) for values in sums]
    related = sorted({f for r in relations for _, f in places_named(r) or ()})
    shared = sorted(_shared(alone[0]))
    groups = _numbered(alone, shared)
    choices = _numbered(alone, related)
    n_groups, n_choices = (int(max(a.max(), b.max())) + 1 for a, b in (groups, choices))
    if n_groups * n_choices**2 > MOST_SUMS:
        return None
    nowhere = -4 * size - 1
    tables = [
        _maxima(values, group * n_choices + choice, n_groups * n_choices, nowhere).reshape(n_groups, n_choices)
        for values, group, choice in zip(sums, groups, choices, strict=True)
    ]
    allowed = _allowed(alone, relations, related, choices, n_choices)
    best: tuple[int, int, int] | None = None  # the value, the group, and the choice of the second point
    for other in range(n_choices):
        if not allowed[:, other].any():
            continue
        total = tables[0][:, allowed[:, other]].max(axis=1) + tables[1][:, other]
        group = int(np.argmax(total))
        if int(total[group]) >= -2 * size and (best is None or int(total[group]) > best[0]):
            best = int(total[group]), group, other
    if best is None:
        return BestCells(count)
    value, group, other = best
    rest = value - int(tables[1][group, other])
    first = np.flatnonzero((groups[0] == group) & allowed[choices[0], other] & (sums[0] == rest))[0]
    second = np.flatnonzero((groups[1] == group) & (choices[1] == other) & (sums[1] == value - rest))[0]
    return BestCells(count, np.stack([alone[0].cells[first, 0], alone[1].cells[second, 1]]), value * unit)


def _numbered(alone: Sequence[Combinations], features: Sequence[int]) -> tuple[Int64Array, Int64Array]:
    """Numbers of the combinations of cells of some features; the numbering is the same for both points."""
    numbers = np.zeros(sum(part.count for part in alone), np.int64)
    for f in features:
        column = np.concatenate([part.chosen[:, p, f] for p, part in enumerate(alone)])
        numbers = np.unique(numbers * len(alone[0].slots[f].cells) + column, return_inverse=True)[1].reshape(-1)
    return numbers[: alone[0].count], numbers[alone[0].count :]


def _maxima(values: Exact, place: Int64Array, places: int, nowhere: int) -> NDArray[Any]:
    """The greatest value at each place; `nowhere` at places without values."""
    found = np.full(places, nowhere, values.dtype)
    order = np.argsort(place, kind="stable")
    starts = np.flatnonzero(np.diff(place[order], prepend=-1))
    found[place[order][starts]] = np.maximum.reduceat(values[order], starts)
    return found


def _allowed(
    alone: Sequence[Combinations],
    relations: Sequence[Constraint],
    related: Sequence[int],
    choices: tuple[Int64Array, Int64Array],
    n_choices: int,
) -> BoolArray:
    """True for compatible choices of the related features of two points, bool[choices, choices]."""
    chosen = np.zeros((n_choices, n_choices, 2, len(alone[0].slots)), np.int32)
    for f in related:
        slot = np.zeros(n_choices, np.int32)
        for p, part in enumerate(alone):
            slot[choices[p]] = part.chosen[:, p, f]
        chosen[:, :, 0, f], chosen[:, :, 1, f] = slot[:, None], slot[None, :]
    pairs = Combinations(alone[0].query, alone[0].roots, alone[0].slots, chosen.reshape(-1, *chosen.shape[2:]))
    return pairs.all_of(relations).reshape(n_choices, n_choices)
