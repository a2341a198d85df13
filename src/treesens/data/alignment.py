"""Whether a table is one that a model can read: its columns, and the range of their numbers."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from treesens.compiler.base.arrays import FloatArray
from treesens.compiler.base.diagnostics import did_you_mean
from treesens.compiler.base.floats import NumberType
from treesens.data.tables import Table, with_zeros
from treesens.errors import DataError
from treesens.frontends.base import LoadedModel


def align_table(model: LoadedModel, table: Table) -> Table:
    """The table with zeros for features that the model names and no tree asks about.

    DataError where others are missing, hold text, or numbers past the range of those that the model reads.
    """
    ensemble = model.ensemble
    table, _ = as_named(table, blanks_replaced(model))
    used = set(ensemble.used_features)
    absent = [name for name in ensemble.feature_names if name not in table]
    needed = [name for name in absent if name in used]
    if needed:
        listed = ", ".join(f"`{name}`" for name in needed[:8]) + (", …" if len(needed) > 8 else "")
        raise DataError(
            f"the table lacks columns that the model asks about: {listed}",
            place=table.name,
            remedy=did_you_mean(needed[0], table.inputs) or "rename the columns as the model names its features",
        )
    for feature in ensemble.features:
        # Texts may be names of categories from a declaration; others are refused when the column is read.
        if feature.name in used and not feature.labels and table.columns[feature.name].dtype != object:
            check_range(table, feature.name, table.numbers(feature.name), ensemble.number_type)
    return with_zeros(table, absent)


def blanks_replaced(model: LoadedModel) -> Collection[str]:
    """The features whose names may have had blanks: LightGBM writes `_` for each, in files and in live models."""
    if not model.frontend.startswith("lightgbm"):
        return ()
    return tuple(name for name in model.ensemble.feature_names if "_" in name)


def as_named(table: Table, features: Collection[str]) -> tuple[Table, dict[str, str]]:
    """The table with columns under the names in which `_` stands for each blank, and what was renamed to what.

    A column that has the feature's very name goes first, and of two that would get one name neither does.
    """
    sought = set(features) - set(table.columns)
    spelled: dict[str, list[str]] = {}
    for column in table.inputs:
        if " " in column and (name := column.replace(" ", "_")) in sought:
            spelled.setdefault(name, []).append(column)
    renamed = {columns[0]: name for name, columns in spelled.items() if len(columns) == 1}
    if not renamed:
        return table, {}
    return replace(table, columns={renamed.get(c, c): values for c, values in table.columns.items()}), renamed


def check_range(table: Table, name: str, values: FloatArray, number_type: NumberType) -> None:
    """DataError where a column, as stored numbers float64[rows], has one that is infinite to a model of this number type."""
    with np.errstate(over="ignore"):
        beyond = np.flatnonzero(np.isinf(number_type.cast(values)))
    if len(beyond):
        raise DataError(
            f"column `{name}` holds infinite values, or ones past the range of {number_type.value}, in "
            f"{len(beyond)} of {table.rows} rows",
            place=f"{table.name}, row {int(beyond[0])}, column `{name}`",
            remedy="leave fields empty where the value is missing, or give the largest value that can be meant",
        )


def distinct(table: Table, name: str) -> int:
    """How many different values a column has."""
    column = table.columns[name]
    return len(set(column)) if column.dtype == object else len(np.unique(column))
