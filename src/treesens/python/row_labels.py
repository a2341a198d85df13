"""Rows as callers name them: by their number from 0, by a label of the index of a pandas frame, or by a mask."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from treesens.compiler.base.diagnostics import did_you_mean
from treesens.errors import UsageError
from treesens.python.settings import MOST_SEED, check_whole


def rows_of(rows: Any, data: Any = None) -> list[int]:
    """Numbers of rows from 0. Whole numbers are such numbers; texts are labels of the index of `data`, and so are the items of
    another index; a mask chooses. UsageError for what is none.
    """
    index = getattr(data, "index", None)
    index = None if callable(index) or not hasattr(index, "get_indexer_for") else index
    labels = hasattr(rows, "get_indexer_for")  # an index itself: `frame.index[:3]`, `frame[frame.x > 1].index`
    mask = rows if isinstance(rows, np.ndarray) else getattr(rows, "values", None)
    if isinstance(mask, np.ndarray) and mask.dtype == bool:
        return _chosen(mask, data)
    given = [rows] if isinstance(rows, str) or not isinstance(rows, Iterable) else list(rows)
    return [_number(row, index, label=labels or isinstance(row, str)) for row in given]


def _chosen(mask: np.ndarray[Any, Any], data: Any) -> list[int]:
    if data is not None and hasattr(data, "__len__") and not isinstance(data, str) and len(mask) != len(data):
        raise UsageError(f"`rows` is a mask of {len(mask)} rows, and the data has {len(data)}")
    return np.flatnonzero(mask).tolist()


def _number(row: Any, index: Any, *, label: bool) -> int:
    if not label:
        check_whole("rows", row, 0, MOST_SEED)
        return int(row)
    if index is None:
        raise UsageError(f"`rows` holds {row!r:.60}, and the data has no index", remedy="give numbers of rows, from 0")
    places: list[int] = index.get_indexer_for([row]).tolist()
    if places == [-1] or not places:
        near = did_you_mean(row, map(str, index[:1000])) if isinstance(row, str) else ""
        raise UsageError(f"no row is called {row!r:.60}", remedy=near or "give labels of the index, or numbers of rows")
    if len(places) > 1:
        raise UsageError(f"{len(places)} rows are called {row!r:.60}", remedy="give their numbers, from 0")
    return places[0]
