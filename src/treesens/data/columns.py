"""Converts values of any library to a column: numbers to float64, other values to text, with one mark for a missing value.

All conversions are made here: fields in CSV are text, and frames and arrays contain objects of their libraries, with many marks
for a missing value (None, NaN, `pandas.NA`, `pandas.NaT`, a separate mask).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.base.floats import float_of

Column = NDArray[Any]
"""float64[rows] with NaN for a missing value, or object[rows] of str with None for a missing value."""

MISSING_MARKS = frozenset(("", "#N/A", "NA", "N/A", "NaN", "nan", "null", "NULL"))
"""Fields in a text file that mean a missing value; spreadsheets write `#N/A`."""

TRUTHS = {"True": 1.0, "False": 0.0, "true": 1.0, "false": 0.0, "TRUE": 1.0, "FALSE": 0.0}
"""Truth values as spelt by pandas and R; models read them as numbers."""


def column_of_fields(fields: Sequence[str]) -> Column:
    """Numbers if every field is a number or missing, 1 and 0 if every field is a truth value or missing, otherwise text."""
    if set(fields) <= TRUTHS.keys() | MISSING_MARKS and not set(fields) <= MISSING_MARKS:
        return np.array([TRUTHS.get(f, np.nan) for f in fields], dtype=np.float64)
    stripped = [f.strip() for f in fields]
    numbers = [np.nan if f in MISSING_MARKS else float_of(f) for f in stripped]
    if None in numbers:
        return _texts(None if f in MISSING_MARKS else f for f in stripped)
    return np.array(numbers, dtype=np.float64)


def column_of_series(series: Any) -> Column:
    """A column of a data frame, wrapped by narwhals.

    Numbers are rounded to the nearest float64, as in the libraries; categories are converted to their names.
    """
    import narwhals as nw

    if (array := _as_array(series)) is not None:
        return array.astype(np.float64)
    gone = series.is_null().to_list()
    values = [None if lost else value for lost, value in zip(gone, series.to_list(), strict=True)]
    if series.dtype in (nw.Categorical, nw.Enum):
        return _texts(None if is_absent(value) else str(value) for value in values)
    return column_of_values(values)


def column_of_array(values: NDArray[Any]) -> Column:
    """A column of a numpy array of any kind."""
    if values.dtype.kind in "buif":
        return values.astype(np.float64)
    if values.dtype.kind in "MmSU":
        # As Python objects, times would become integers, and bytes would be written with quotes.
        return column_of_values([None if text == "NaT" else text for text in values.astype(str).tolist()])
    return column_of_values(values.tolist())


def column_of_values(values: Sequence[object]) -> Column:
    """A column of objects, with None or NaN for missing: numbers if all objects are numbers or Booleans, otherwise texts."""
    present = [value for value in values if not is_absent(value)]
    if all(isinstance(value, _NUMBERS) for value in present):
        return np.array([np.nan if is_absent(value) else _float(value) for value in values], dtype=np.float64)
    return _texts(None if is_absent(value) else str(value) for value in values)


_NUMBERS = (Real, Decimal, np.bool_)


def _float(value: Any) -> float:
    """The nearest float64; infinite for integers beyond the range of floats, which Python refuses to convert."""
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def is_absent(value: object) -> bool:
    """True if an object marks a missing value: None, NaN of any kind, `pandas.NaT`, or `pandas.NA` (comparisons with NA return
    NA).
    """
    if value is None:
        return True
    equal: object = value == value  # noqa: PLR0124 - marks differ from themselves
    return not equal if isinstance(equal, bool | np.bool_) else equal is value


def _as_array(series: Any) -> NDArray[Any] | None:
    """The numbers in a series as a numpy array, with NaN for missing; None if the conversion would lose information."""
    if not series.dtype.is_numeric() or series.dtype.is_decimal():
        return None
    if not series.dtype.is_float() and series.is_null().any():
        return None
    array = np.asarray(series.to_numpy())
    return array if array.dtype.kind in "iuf" else None


def _texts(values: Iterable[str | None]) -> Column:
    listed = list(values)
    result = np.empty(len(listed), dtype=object)
    result[:] = listed
    return result
