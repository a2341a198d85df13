"""Measures that need no table: uniform on the domain, and all cells alike."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import lcm

import numpy as np

from treesens.compiler.base.arrays import Int64Array
from treesens.compiler.model.grid import FeatureGrid
from treesens.compiler.query.domain import Domain, RealDomain, ValueDomain, whole_range
from treesens.compiler.query.query import Space
from treesens.data.measure import Measure, product
from treesens.errors import UsageError
from treesens.extensions.measure.groups import Groups

_UNITS = 1 << 61
"""Lengths become whole parts of so many."""


def uniform(space: Space, groups: Groups) -> Measure:
    """Features are independent: real ones have the length of a cell within the domain, integers and categories the number
    of values, and groups the number of their members. Missing values have no share, unless a feature can be nothing else.

    UsageError for a real feature whose domain has no ends.
    """
    counts = groups.counts
    parts = [
        (np.ones(counts[f], np.int64), True) if f in counts else _weights(name, domain, grid)
        for f, (name, domain, grid) in enumerate(zip(space.names, space.domains, space.grid, strict=True))
    ]
    # Every cell is at most one unit off, and so are the units of all: shares of boxes by no more than the sum.
    error = sum(2.0 * len(weights) / (_UNITS - len(weights)) for weights, exact in parts if not exact)
    return product("uniform", [weights for weights, _ in parts], error=error)


def all_cells(space: Space, groups: Groups) -> Measure:
    """Every cell that holds a legal value counts the same, missing too; of a group every member."""
    counts = groups.counts
    weights = [
        np.ones(counts[f], np.int64) if f in counts else legal.astype(np.int64) for f, legal in enumerate(space.legal)
    ]
    return product("cells", weights)


def _weights(name: str, domain: Domain, grid: FeatureGrid) -> tuple[Int64Array, bool]:
    """The weight of every cell, and whether weights are exact."""
    if isinstance(domain, ValueDomain):
        weights, exact = _by_value(domain, grid), True
    else:
        _check_ends(name, domain, grid)
        sizes = _counts(domain, grid) if domain.whole else _lengths(domain, grid)
        weights, exact = _scaled(sizes)
    if not weights.any() and grid.missing:
        weights[grid.missing_cell] = 1
    return weights, exact


def _by_value(domain: ValueDomain, grid: FeatureGrid) -> Int64Array:
    """Every label counts one, shared by the values that it stands for."""
    labels = Counter(domain.labels)
    whole = lcm(*labels.values()) if labels else 1
    weights = np.zeros(grid.n_cells, np.int64)
    for cell, label in zip(grid.cell_of(domain.values).tolist(), domain.labels, strict=True):
        weights[cell] += whole // labels[label]
    return weights


def _check_ends(name: str, domain: RealDomain, grid: FeatureGrid) -> None:
    if max(abs(domain.low), abs(domain.high)) >= grid.number_type.max:
        raise UsageError(
            f"the domain of `{name}` has no ends, so that nothing is uniform on it",
            remedy="give --data (ranges of its columns), --domain (a file with `feature` lines), or --measure cells",
        )


def _lengths(domain: RealDomain, grid: FeatureGrid) -> list[Fraction]:
    """The length of every cell within the domain; a domain of one value is in one cell."""
    sizes = [Fraction(0)] * grid.n_cells
    if domain.low == domain.high:
        sizes[int(grid.cell_of(np.array([domain.low]))[0])] = Fraction(1)
        return sizes
    ends = [Fraction(domain.low), *(Fraction(c) for c in grid.cuts.tolist()), Fraction(domain.high)]
    least, most = ends[0], ends[-1]
    inside = [min(max(end, least), most) for end in ends]
    for cell in range(grid.present_cells):
        sizes[cell] = inside[cell + 1] - inside[cell]
    return sizes


def _counts(domain: RealDomain, grid: FeatureGrid) -> list[Fraction]:
    """How many whole numbers of the domain lie in each cell."""
    sizes = [Fraction(0)] * grid.n_cells
    for cell in range(grid.present_cells):
        low, high = grid.interval(cell)
        first, last = whole_range(max(low, domain.low), min(high, domain.high))
        sizes[cell] = Fraction(max(0, last - first + 1))
    return sizes


def _scaled(sizes: list[Fraction]) -> tuple[Int64Array, bool]:
    total = sum(sizes, Fraction(0))
    if total == 0:
        return np.zeros(len(sizes), np.int64), True
    if total < _UNITS and all(size.denominator == 1 for size in sizes):
        return np.array([int(size) for size in sizes], np.int64), True
    return np.array([int(size * _UNITS / total) for size in sizes], np.int64), False
