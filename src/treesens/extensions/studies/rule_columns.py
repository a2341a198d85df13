"""The columns of a table as rules speak of them: codes of few values, numbers, the domain of each, and one-hot groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Literal

import numpy as np

from treesens.compiler.base.arrays import BoolArray, FloatArray, Int64Array
from treesens.compiler.base.budget import check_in
from treesens.data.columns import Column
from treesens.data.tables import Table

FEW = 24
"""A column of at most so many distinct values is a set of values; implications and dependencies are about these."""

_MOST_STEPS = 10_000
_GROUP_STEPS = 20_000
"""Columns that the search for one group tries before it gives up."""


@dataclass(frozen=True, eq=False)
class FewValues:
    """A column of few values: `codes` int64[rows] number `values`; len(values) stands for missing."""

    name: str
    values: tuple[float | str, ...]
    codes: Int64Array

    @property
    def missing(self) -> bool:
        return bool((self.codes == len(self.values)).any())


@dataclass(frozen=True)
class ColumnDomain:
    """What a column holds: `values` of a category, `low` and `high` of numbers.

    Of the kind "steps" the numbers are low + k (high - low) / steps.
    """

    name: str
    kind: Literal["category", "integer", "real", "steps", "other"]
    missing: bool
    values: tuple[float | str, ...] = ()
    low: float = 0.0
    high: float = 0.0
    steps: int = 0


def absent(column: Column) -> BoolArray:
    """Which fields hold no value, bool[rows]."""
    if column.dtype == object:
        return np.array([v is None for v in column], dtype=bool)
    return np.isnan(column)


def few_values(table: Table) -> list[FewValues]:
    """The columns of at most FEW values, in the order of the table; those with infinite values are left out."""
    found = []
    for name in table.inputs:
        column = table.columns[name]
        gone = absent(column)
        distinct, codes = np.unique(column[~gone], return_inverse=True)
        if not 0 < len(distinct) <= FEW or not _tellable(distinct):
            continue
        every = np.full(len(column), len(distinct), np.int64)
        every[~gone] = codes
        found.append(FewValues(name, tuple(distinct.tolist()), every))
    return found


def _tellable(distinct: Column) -> bool:
    """True if the values can be written, and are different values for models that read float32, too."""
    if distinct.dtype == object:
        return all(v.isprintable() and '"' not in v for v in distinct)
    with np.errstate(over="ignore"):
        narrow = distinct.astype(np.float32)
    return bool(np.isfinite(narrow).all()) and len(np.unique(narrow)) == len(distinct)


_DECIMALS = 4
"""Digits after the point of amounts and rates that people write."""


def column_domains(table: Table, few: Sequence[FewValues], unscaled: frozenset[str]) -> list[ColumnDomain]:
    """The domain of every input column; those of `unscaled` keep the numbers of the table as their unit."""
    known = {column.name: column for column in few}
    return [_domain(name, table.columns[name], known.get(name), name not in unscaled) for name in table.inputs]


def _domain(name: str, column: Column, few: FewValues | None, scaled: bool) -> ColumnDomain:
    gone = absent(column)
    missing = bool(gone.any())
    present = column[~gone]
    if few is None and (present.dtype == object or not len(present) or not np.isfinite(present).all()):
        return ColumnDomain(name, "other", missing)
    distinct = np.unique(present)
    numbers = distinct.dtype != object
    whole = numbers and bool((distinct == np.trunc(distinct)).all())
    if few is not None and not (whole and distinct[-1] - distinct[0] == len(distinct) - 1):
        return ColumnDomain(name, "category", missing, few.values)
    low, high = float(distinct[0]), float(distinct[-1])
    if whole:
        return ColumnDomain(name, "integer", missing, low=low, high=high)
    steps = 0 if not scaled or _as_people_write(distinct) else _steps(distinct)
    return ColumnDomain(name, "steps" if steps else "real", missing, low=low, high=high, steps=steps)


def _as_people_write(distinct: FloatArray) -> bool:
    """True if numbers are amounts with a few decimals, such as 28.3, and no whole numbers that were scaled to an interval."""
    if distinct[-1] == 1 and distinct[0] in (0, -1):
        return False
    return all(Decimal(repr(float(v))).as_tuple().exponent >= -_DECIMALS for v in distinct)  # type: ignore[operator]


def _steps(distinct: FloatArray) -> int:
    """Into how many equal steps the numbers divide their range, each the float nearest to its step but for four floats; 0 if
    they do not.
    """
    span = distinct[-1] - distinct[0]
    count = span / np.diff(distinct).min()
    if not 2 <= count <= _MOST_STEPS:
        return 0
    steps = round(count)
    low, high = (Fraction(Decimal(repr(float(v)))) for v in (distinct[0], distinct[-1]))
    nearest = np.rint((distinct - distinct[0]) / span * steps).astype(np.int64).tolist()
    images = np.array([float(low + k * (high - low) / steps) for k in nearest])
    close = np.abs(images - distinct) <= 4 * np.spacing(np.maximum(np.abs(images), np.abs(distinct)))
    return steps if close.all() else 0


def one_hot_groups(few: Sequence[FewValues]) -> list[tuple[str, ...]]:
    """Disjoint groups of columns of 0 and 1 of which exactly one is 1 in every row.

    An exact cover of the rows by columns (Knuth's algorithm X, with a limit on its steps): columns that exclude each other and
    sum to the number of rows.
    """
    bits = [column for column in few if column.values == (0.0, 1.0) and not column.missing]
    if not bits:
        return []
    ones = np.stack([column.codes == 1 for column in bits])
    groups, free = [], np.ones(len(bits), dtype=bool)
    for first in range(len(bits)):
        check_in()
        if free[first]:
            free[first] = False
            group = _Cover(ones, [_GROUP_STEPS]).extend([first], ones[first], free & ~(ones & ones[first]).any(axis=1))
            if group:
                free[group] = False
                groups.append(tuple(bits[i].name for i in sorted(group)))
    return groups


@dataclass(frozen=True, eq=False)
class _Cover:
    ones: BoolArray
    left: list[int]

    def extend(self, chosen: list[int], covered: BoolArray, free: BoolArray) -> list[int]:
        """A cover that holds the chosen columns, by free ones; empty if there is none or the steps are used up."""
        if covered.all():
            return chosen
        row = int(np.argmin(covered))
        for column in np.flatnonzero(free & self.ones[:, row]).tolist():
            check_in()
            self.left[0] -= 1
            if self.left[0] < 0:
                break
            apart = free & ~(self.ones & self.ones[column]).any(axis=1)
            if found := self.extend([*chosen, column], covered | self.ones[column], apart):
                return found
        return []
