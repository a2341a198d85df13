"""Arrays of numpy as tables: their columns have the names of the model's features, in its order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from treesens.data.columns import column_of_array
from treesens.data.tables import Table, table_of_columns
from treesens.errors import DataError
from treesens.frontends.base import LoadedModel

_PLACE = "the array"


def table_of_array(array: np.ndarray[Any, Any], models: Iterable[LoadedModel], label: str | None) -> Table:
    """The table of an array [rows, features], with the names of the first model that has as many features.

    DataError for an array of another shape, and for a label, which an array cannot name.
    """
    remedy = "give the columns in the order of training, or a data frame that names them"
    if array.ndim != 2 or array.dtype.names is not None:
        shape = " x ".join(map(str, array.shape)) or "a single value"
        raise DataError(f"an array of shape {shape} is no table", place=_PLACE, remedy="give an array [rows, features]")
    if label is not None:
        raise DataError(
            f"an array has no column `{label}`", place=_PLACE, remedy="leave `label` out, or give a data frame"
        )
    known = [model.ensemble.feature_names for model in models]
    names = next((one for one in known if len(one) == array.shape[1]), None)
    if names is None:
        wanted = f"the model has {len(known[0])} features" if known else "no model names them"
        raise DataError(f"the array has {array.shape[1]} columns, and {wanted}", place=_PLACE, remedy=remedy)
    return table_of_columns({name: column_of_array(array[:, f]) for f, name in enumerate(names)}, _PLACE)
