"""Groups of the rows of a table, by the values of some columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from treesens.compiler.base.arrays import Int64Array
from treesens.compiler.base.diagnostics import did_you_mean
from treesens.data.tables import Table
from treesens.errors import UsageError

_MOST_GROUPS = 200


@dataclass(frozen=True)
class Group:
    """The rows int64[..] of a table that have the same values in some columns."""

    by: tuple[str, ...]
    values: tuple[Any, ...]
    rows: Int64Array


def groups_of_rows(table: Table, by: Sequence[str]) -> list[Group]:
    """The groups of some columns, in the order of their values; missing values are a group. UsageError for an unknown column,
    and for more groups than a table of them can be read.
    """
    for name in by:
        if name not in table.columns:
            raise UsageError(f"the table has no column `{name}`", remedy=did_you_mean(name, list(table.columns)))
    columns = [[_plain(value) for value in table.columns[name].tolist()] for name in by]
    places: dict[tuple[Any, ...], list[int]] = {}
    for number, values in enumerate(zip(*columns, strict=True)):
        places.setdefault(values, []).append(number)
    if len(places) > _MOST_GROUPS:
        raise UsageError(
            f"{' and '.join(f'`{name}`' for name in by)} makes {len(places)} groups",
            remedy="name columns of few values; put ages or amounts into classes first",
        )
    ordered = sorted(places, key=lambda values: [(value is None, str(type(value)), value or 0) for value in values])
    return [Group(tuple(by), values, np.array(places[values], dtype=np.int64)) for values in ordered]


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return None if math.isnan(value) else int(value) if value.is_integer() else value
    return value
