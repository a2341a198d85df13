"""Relations between two features (of two points or of one point): low <= p x - q y <= high, in terms of cells.

Two cells are compatible if the relation holds for some legal values in them. Since cells are ranges, the extremes of p x - q y
are monotone in y's cell. So compatibility is a staircase: for every cell of x, the compatible cells of y form a run, and the
ends of the runs are monotone. A staircase is a set of clauses over order predicates, two per cell.

The number of features in which two points differ is a sum of literals over cells. Values in different cells differ. Two values
in one cell may be equal, and may differ if the cell contains several values: for an upper bound they are treated as equal
(`Changes.most` is False), and for a lower bound as different.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from math import lcm

import numpy as np

from treesens.compiler.base.arrays import BoolArray, Int32Array, Int64Array, IntegerArray
from treesens.compiler.base.budget import steadily
from treesens.compiler.ir import TRUE
from treesens.compiler.lower.builder import Builder
from treesens.compiler.model.grid import FeatureGrid
from treesens.compiler.query import query as q
from treesens.compiler.query.bounds import LogRational
from treesens.compiler.query.domain import Domain, RealDomain, ValueDomain, cell_range
from treesens.compiler.query.query import Difference
from treesens.compiler.query.values import DistanceTerm, Term, ValueSum
from treesens.values.distance_costs import cell_reaches
from treesens.values.relations import merged_mask

_Range = tuple[Fraction, Fraction]


def cell_extremes(domain: Domain, grid: FeatureGrid, cell: int) -> tuple[Fraction, Fraction] | None:
    """The smallest and the largest legal value of a cell; None if the cell has no legal value."""
    if isinstance(domain, ValueDomain):
        inside = domain.values[grid.cell_of(domain.values) == cell]
        return (Fraction(float(inside[0])), Fraction(float(inside[-1]))) if len(inside) else None
    assert isinstance(domain, RealDomain)
    low, high = cell_range(domain, grid, cell)
    return (Fraction(low), Fraction(high)) if low <= high else None


def lower_difference(builder: Builder, relation: Difference, when: int) -> None:
    """Adds the clauses "x in cell i -> y in the run of cells compatible with i". A missing value satisfies no relation."""
    space = builder.query.space
    left_grid, right_grid = space.grid.features[relation.feature], space.grid.features[relation.other]
    left = [
        None if c == left_grid.missing_cell else cell_extremes(space.domains[relation.feature], left_grid, c)
        for c in range(left_grid.n_cells)
    ]
    right = [
        None if c == right_grid.missing_cell else cell_extremes(space.domains[relation.other], right_grid, c)
        for c in range(right_grid.n_cells)
    ]
    guard = [when ^ 1] if when != TRUE else []
    x, y = (relation.left, relation.feature), (relation.right, relation.other)
    runs: dict[int, tuple[int, int]] = {}
    legal = np.array([j for j, found in enumerate(right) if found is not None], np.int64)
    for i, fits in enumerate(compatible_cells(relation, left, right)):
        is_i = [builder.at_most(*x, i) ^ 1, builder.at_most(*x, i - 1)]
        if len(fits) == 0:
            builder.clause([*guard, *is_i])
            continue
        first, last = int(fits[0]), int(fits[-1])
        runs[i] = (first, last)
        # Cells without a legal value are already excluded; with integers, every second cell may be such a cell.
        inside = legal[legal.searchsorted(first) : legal.searchsorted(last)]
        for j in np.setdiff1d(inside, fits).tolist() if len(inside) >= len(fits) else ():
            builder.clause([*guard, *is_i, builder.at_most(*y, j) ^ 1, builder.at_most(*y, j - 1)])
    for end, above in ((0, True), (1, False)):
        _staircase(builder, guard, x, y, {i: run[end] for i, run in runs.items()}, above=above)


def _staircase(
    builder: Builder,
    guard: list[int],
    x: tuple[int, int],
    y: tuple[int, int],
    ends: dict[int, int],
    *,
    above: bool,
) -> None:
    """Adds for all cells i: x in cell i -> y at or above (or at or below) ends[i].

    If the ends are monotone, a clause has two predicates: "x >= i -> y >= end" for rising ends, "x <= i -> y >= end" for
    falling ends. Such a clause excludes a box of cells; a clause with "x = i" excludes no box; the solutions are the same.
    """
    values = list(ends.values())
    rising = all(a <= b for a, b in pairwise(values))
    falling = all(a >= b for a, b in pairwise(values))
    for i, end in ends.items():
        conclusion = builder.at_most(*y, end - 1) ^ 1 if above else builder.at_most(*y, end)
        before, after = builder.at_most(*x, i - 1), builder.at_most(*x, i) ^ 1
        # Rising lower ends and falling upper ends hold from cell i on, other ends up to cell i.
        premise = [before if rising == above else after] if rising or falling else [before, after]
        builder.clause([*guard, *premise, conclusion])


def compatible_cells(
    relation: Difference, left: Sequence[_Range | None], right: Sequence[_Range | None]
) -> list[Int64Array]:
    """For every cell of x (given by its smallest and largest legal value), the compatible cells of y.

    Exact up to the spacing of floats for ranges of reals: p x - q y is extreme at ends of the ranges (x high and y low for
    positive factors), and takes every value between the extremes up to one float. The values themselves are chosen, and checked
    exactly, when the answer is built. All numbers are scaled to integers by one denominator, since integers compare fast.
    """
    p, q = relation.left_factor, relation.right_factor
    xs = [sorted((p * r[0], p * r[1])) if r is not None else None for r in left]
    ys = {j: sorted((q * r[0], q * r[1])) for j, r in enumerate(right) if r is not None}
    bounds = [b for b in (relation.low, relation.high) if b is not None]
    numbers = [n for r in (*xs, *ys.values()) if r is not None for n in r]
    scale = lcm(*(n.denominator for n in (*numbers, *bounds)))
    cells = np.array(list(ys), np.int64)
    y_low, y_high = (np.array([int(r[end] * scale) for r in ys.values()], object) for end in (0, 1))
    result = []
    for ends in steadily(xs):
        fits = np.full(len(cells), ends is not None)
        if ends is not None and relation.low is not None:
            greatest, low = int(ends[1] * scale) - y_low, int(relation.low * scale)
            fits &= (greatest > low if relation.low_strict else greatest >= low).astype(bool)
        if ends is not None and relation.high is not None:
            smallest, high = int(ends[0] * scale) - y_high, int(relation.high * scale)
            fits &= (smallest < high if relation.high_strict else smallest <= high).astype(bool)
        result.append(cells[fits])
    return result


Part = tuple[Int32Array, IntegerArray, int]
"""Variables, their coefficients, and the shift of the coefficients' unit."""


def counts_changes(terms: tuple[Term, ...]) -> bool:
    """True if a sum of terms is only a count of the features in which two points differ."""
    return bool(terms) and all(isinstance(t, DistanceTerm) and t.unordered and t.other is not None for t in terms)


def row_of_changes(relation: ValueSum, terms: tuple[Term, ...]) -> q.AtLeast:
    """The row over cells for (sum of changes) <= limit, written as -(least sum) >= -limit; see `counts_changes`."""
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
    """Adds a literal per feature to `parts`, true iff the feature counts; returns the cost of features that always count."""
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
    """Marks the cells of a feature that contain more than one legal value, bool[n_cells]."""
    space = builder.query.space
    if feature not in builder.several:
        ranges = cell_reaches(space, feature)
        builder.several[feature] = np.array([r is not None and not r.single for r in ranges], bool)
    return np.asarray(builder.several[feature] & merged_mask(builder.query, point, feature))


def _counts(builder: Builder, change: q.Changes, feature: int, several: BoolArray) -> int | None:
    """A literal that is true iff the two cells differ or are in `several`; None if there is only one cell."""
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
        # Different cells are separated by some predicate: one fresh literal per predicate.
        apart = builder.reified()
        builder.clause([apart ^ 1, int(a) * 2, int(b) * 2])
        builder.clause([apart ^ 1, int(a) * 2 + 1, int(b) * 2 + 1])
        some.append(apart)
    builder.clause(some)
    return literal
