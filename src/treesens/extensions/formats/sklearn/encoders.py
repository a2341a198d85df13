"""Encoders of category_encoders and feature-engine that map each category of a column to one number.

The fitted encoder lists its categories, and its own `transform` gives their numbers.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesens.data.columns import is_absent
from treesens.errors import ModelError

_KNOWN = {
    "category_encoders": (
        *("CountEncoder", "JamesSteinEncoder", "MEstimateEncoder", "OrdinalEncoder", "TargetEncoder", "WOEEncoder"),
    ),
    "feature_engine": ("CountFrequencyEncoder", "MeanEncoder", "OrdinalEncoder", "WoEEncoder"),
}


def maps_categories(step: Any) -> bool:
    """True for a known encoder of these libraries."""
    kind = type(step)
    return kind.__name__ in _KNOWN.get(kind.__module__.partition(".")[0], ())


def encoded(step: Any, columns: Sequence[Any], place: str) -> list[Any]:
    """The columns after a fitted encoder. Raises ModelError if the encoder drops columns, or encodes a changed column."""
    names = [str(name) for name in step.feature_names_in_]
    tables = _categories(step)
    if getattr(step, "drop_invariant", False):
        raise ModelError("an encoder may drop columns", place=place, remedy="set drop_invariant=False")
    result = list(columns)
    for name, present in tables.items():
        column = columns[names.index(name)]
        if not column.raw or column.filled is not None:
            message = f"{type(step).__name__} encodes a column that another step has changed"
            raise ModelError(message, place=place, remedy="encode columns directly")
        known = _numbers(step, names, tables, name, present)
        if not np.isfinite(known).all():
            raise ModelError(f"a category of `{name}` has no number", place=place, remedy="fit the encoder again")
        unseen, missing = (_outside(step, names, tables, name, value) for value in (_unseen(present), None))
        result[names.index(name)] = replace(
            column, categories=tuple(present), images=np.append(known, unseen), missing=missing
        )
    return result


def _categories(step: Any) -> dict[str, list[Any]]:
    """The categories of each encoded column, without missing values."""
    if hasattr(step, "encoder_dict_"):
        found: Mapping[str, Any] = step.encoder_dict_
    elif isinstance(step.mapping, Mapping) and not hasattr(step, "ordinal_encoder"):
        found = {name: step.mapping[name].index for name in step.cols}
    else:
        listed = getattr(step, "ordinal_encoder", step).mapping
        found = {one["col"]: one["mapping"].index for one in listed}
    return {
        str(name): [v.item() if isinstance(v, np.generic) else v for v in values if not is_absent(v)]
        for name, values in found.items()
    }


def _unseen(present: Sequence[Any]) -> Any:
    if all(isinstance(v, int | float) for v in present):
        return max(map(abs, present), default=0) + 1
    return "unseen" + "_" * max(len(str(v)) for v in present)


def _numbers(
    step: Any, names: Sequence[str], tables: Mapping[str, list[Any]], name: str, values: Sequence[Any]
) -> NDArray[np.float64]:
    """The numbers of some values of a column; the other columns have their first category, or 0."""
    import pandas

    rows = {other: [tables[other][0] if other in tables else 0.0] * len(values) for other in names}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = step.transform(pandas.DataFrame({**rows, name: pandas.Series(list(values), dtype=object)}))
    return np.asarray(np.asarray(made)[:, names.index(name)], dtype=np.float64)


def _outside(step: Any, names: Sequence[str], tables: Mapping[str, list[Any]], name: str, value: Any) -> float:
    """The number of a value that is no category; 0 if the encoder refuses it or has no number, as for one-hot encoders."""
    try:
        found = float(_numbers(step, names, tables, name, [value])[0])
    except ValueError:
        return 0.0
    return found if np.isfinite(found) else 0.0
