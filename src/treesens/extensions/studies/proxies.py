"""Which columns of a table carry another one: the part of its entropy that each of them tells (Theil's uncertainty coefficient,
Theil 1970), without what few rows and many values tell by chance (Miller and Madow 1955).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from treesens.compiler.base.arrays import Int64Array
from treesens.compiler.base.budget import check_in
from treesens.data.columns import Column
from treesens.data.tables import Table

BINS = 10
"""A column of more than twice as many numbers is cut into so many parts of equally many rows."""

LEAST = 0.02
"""A column that tells less than this part is no proxy."""

MOST = 5


@dataclass(frozen=True)
class Proxy:
    """A column `feature` that tells the part `told` of what there is to know of the column `of`: 0 nothing, 1 all."""

    of: str
    feature: str
    told: float


def proxies(table: Table, of: str) -> list[Proxy]:
    """The columns that carry a column, the strongest first: at most five, each with at least a fiftieth."""
    target = _codes(table.columns[of])
    found = []
    for name in table.inputs:
        if name != of and not _is_identifier(table.columns[name]):
            check_in()
            found.append(Proxy(of, name, uncertainty_coefficient(target, _codes(table.columns[name]))))
    return sorted((one for one in found if one.told >= LEAST), key=lambda one: -one.told)[:MOST]


def uncertainty_coefficient(target: Int64Array, column: Int64Array) -> float:
    """The part of the entropy of `target` that `column` tells, both int64[rows] codes from 0; in [0, 1]."""
    rows, width = len(target), int(column.max(initial=0)) + 1
    # Pairs that occur, and not all that could: two columns of many texts have billions of those.
    of_target, of_column, of_both = (
        np.unique(codes, return_counts=True)[1] for codes in (target, column, target * width + column)
    )
    h_target = _entropy(of_target)
    chance = (len(of_target) - 1) * (len(of_column) - 1) / (2 * rows)
    told = h_target + _entropy(of_column) - _entropy(of_both) - chance
    return float(np.clip(told / h_target, 0.0, 1.0)) if h_target > 0 else 0.0


def _is_identifier(column: Column) -> bool:
    """True if a column has a text for fewer than five rows each: too few to tell what is chance (Cochran 1954)."""
    return column.dtype == object and 5 * len(set(column.tolist())) > len(column)


def _entropy(counts: Int64Array) -> float:
    part = counts / counts.sum()
    return float(-(part * np.log(part)).sum())


def _codes(column: Column) -> Int64Array:
    """A column as codes from 0; numbers of many values in parts of equally many rows, missing by itself."""
    if column.dtype == object:
        names = {value: code for code, value in enumerate(dict.fromkeys(column.tolist()))}
        return np.array([names[value] for value in column.tolist()], np.int64)
    absent = np.isnan(column)
    values = np.unique(column[~absent])
    if len(values) > 2 * BINS:
        # Each end is a number of the column: between infinities there is none.
        ends = np.linspace(0, 1, BINS + 1)[:-1]
        values = np.unique(np.quantile(column[~absent], ends, method="inverted_cdf"))
    codes = np.searchsorted(values, column, side="right").astype(np.int64)
    codes[absent] = len(values) + 1
    return codes
