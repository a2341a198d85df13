"""Read-only numpy arrays inside frozen dataclasses, and the ragged (CSR) helpers that every floor needs."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

BoolArray = NDArray[np.bool_]
ByteArray = NDArray[np.uint8]
Int32Array = NDArray[np.int32]
Int64Array = NDArray[np.int64]
FloatArray = NDArray[np.float64]
IntegerArray = NDArray[Any]
"""int64, or object holding Python integers where int64 would not be exact."""


def frozen(array: Any, dtype: Any = None) -> NDArray[Any]:
    """A read-only array; the caller gives up ownership of what it passes in."""
    result = np.ascontiguousarray(array, dtype=dtype)
    if result.flags.writeable:
        result = result.view()
        result.flags.writeable = False
    return result


class ArrayRecord:
    """Mix-in for frozen dataclasses with array fields: equality and hash by content."""

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(_same(getattr(self, f.name), getattr(other, f.name)) for f in fields(self))  # type: ignore[arg-type]

    def __hash__(self) -> int:
        return hash(tuple(_key(getattr(self, f.name)) for f in fields(self)))  # type: ignore[arg-type]


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
        return (
            isinstance(left, np.ndarray)
            and isinstance(right, np.ndarray)
            and left.shape == right.shape
            and np.array_equal(left, right, equal_nan=left.dtype.kind == right.dtype.kind == "f")
        )
    return bool(left == right)


def _key(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return tuple(value.tolist()) if value.dtype == object else (value.shape, value.tobytes())
    return value


def concatenated_ranges(start: Any, count: Any) -> Int64Array:
    """Indices start[0] .. start[0]+count[0]-1, start[1] .. , … in one array."""
    start = np.asarray(start, np.int64)
    count = np.asarray(count, np.int64)
    total = int(count.sum())
    if total == 0:
        return np.zeros(0, np.int64)
    offset = np.concatenate(([0], np.cumsum(count)[:-1]))
    return np.repeat(start - offset, count) + np.arange(total, dtype=np.int64)


def indptr_of(counts: Any) -> Int64Array:
    """CSR row pointers of rows with these lengths."""
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(np.asarray(counts, np.int64))))


def row_of(indptr: Int64Array) -> Int64Array:
    """The row number of every entry of a CSR structure."""
    return np.repeat(np.arange(len(indptr) - 1, dtype=np.int64), np.diff(indptr))


def runs_of(mask: BoolArray) -> tuple[Int32Array, Int32Array]:
    """Maximal runs of true cells: first and last cell of each."""
    edges = np.diff(np.concatenate(([0], mask.astype(np.int8), [0])))
    return np.flatnonzero(edges == 1).astype(np.int32), (np.flatnonzero(edges == -1) - 1).astype(np.int32)
