"""Relations between two features (of two points or of one): low <= p x - q y <= high, on cells.

Two cells are compatible where some legal values in them satisfy the relation. Since cells are ranges, the extremes of
p x - q y move in one direction with the cell of y, so that compatibility is a staircase: for every cell of x the cells
of y that are left form one run, whose ends move in one direction. A staircase is a set of clauses over order predicates, two
per cell.
"""

from __future__ import annotations

from fractions import Fraction

from treesens.compiler.ir import TRUE
from treesens.compiler.lower.builder import Builder
from treesens.compiler.model.grid import FeatureGrid
from treesens.compiler.query.domain import Domain, RealDomain, ValueDomain, cell_range
from treesens.compiler.query.query import Difference


def cell_extremes(domain: Domain, grid: FeatureGrid, cell: int) -> tuple[Fraction, Fraction] | None:
    """Smallest and largest legal value of a cell; None where it has none."""
    if isinstance(domain, ValueDomain):
        inside = domain.values[grid.cell_of(domain.values) == cell]
        return (Fraction(float(inside[0])), Fraction(float(inside[-1]))) if len(inside) else None
    assert isinstance(domain, RealDomain)
    low, high = cell_range(domain, grid, cell)
    return (Fraction(low), Fraction(high)) if low <= high else None


def lower_difference(builder: Builder, relation: Difference, when: int) -> None:
    """Clauses "x in cell i -> y in the run of cells compatible with i". The missing cell satisfies no relation."""
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
    for i, extremes in enumerate(left):
        is_i = [builder.at_most(*x, i) ^ 1, builder.at_most(*x, i - 1)]
        if extremes is None:
            builder.clause([*guard, *is_i])
            continue
        fits = [j for j, other in enumerate(right) if other is not None and compatible(relation, extremes, other)]
        if not fits:
            builder.clause([*guard, *is_i])
            continue
        builder.clause([*guard, *is_i, builder.at_most(*y, fits[-1])])
        builder.clause([*guard, *is_i, builder.at_most(*y, fits[0] - 1) ^ 1])
        for j in range(fits[0], fits[-1]):
            if j not in fits:
                builder.clause([*guard, *is_i, builder.at_most(*y, j) ^ 1, builder.at_most(*y, j - 1)])


def compatible(relation: Difference, x: tuple[Fraction, Fraction], y: tuple[Fraction, Fraction]) -> bool:
    """Whether the ranges of two cells allow the relation.

    Exact for ranges of reals up to the spacing of floats: p x - q y is extreme at ends of the ranges (x high and y low for
    positive factors), and every value between them is reached within one float; the value pair itself is chosen (and checked
    exactly) when the answer is built.
    """
    corners = [relation.value(left, right) for left in x for right in y]
    greatest, smallest = max(corners), min(corners)
    if relation.low is not None and (greatest < relation.low or (relation.low_strict and greatest == relation.low)):
        return False
    return not (
        relation.high is not None and (smallest > relation.high or (relation.high_strict and smallest == relation.high))
    )
