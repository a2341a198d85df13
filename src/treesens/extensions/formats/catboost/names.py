"""Finds the categories of each column of a CatBoost model, with their hashes and names."""

from __future__ import annotations

import re
from collections.abc import Mapping

from treesens.errors import ModelError
from treesens.extensions.formats.catboost.questions import combined, key_of, signed
from treesens.frontends.columns import MAX_CATEGORIES
from treesens.frontends.documents import Field

_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,15}")


class UnnamedError(ModelError):
    """The error for categories without names."""


def as_number(name: str) -> str | int:
    """The name as a number if it is written as an integer, because the library converts integers to text."""
    return int(name) if _WHOLE.fullmatch(name) else name


def names_of_categories(
    info: Field, tables: Field | None, coded: Mapping[int, int]
) -> dict[int, list[tuple[str, int]]]:
    """Names and 32-bit hashes per column, in the order of the names. `coded` maps categorical features to their columns.

    A name belongs to each column whose splits or single-feature tables contain its hash. A column without such a table also
    receives all other names, which take the same branch: other columns may have the same names. So do columns of combinations.
    """
    if not coded:
        return {}
    if "cat_features_hash" not in info:
        raise UnnamedError(
            "the model has the hashes of its categories, but not their names",
            place=info.place,
            remedy="save it with its rows and load that file: model.save_model('model.json', format='json', "
            "pool=catboost.Pool(X, cat_features=[..]))",
        )
    named: dict[int, str] = {}
    for entry in info["cat_features_hash"].items():
        value = entry["hash"].integer() & 0xFFFFFFFF
        if named.setdefault(value, entry["value"].text()) != entry["value"].text():
            raise entry.error("two categories have the same hash", "rename one of them and train again")
    if len(named) > MAX_CATEGORIES:
        raise info["cat_features_hash"].error(f"{len(named)} categories are too many")
    asked: dict[int, set[int]] = {column: set() for column in coded.values()}
    for field in info["categorical_features"].items():
        if "values" in field:
            asked[_column_of(field["feature_index"], coded)] |= {
                int(v) & 0xFFFFFFFF for v in field["values"].integers()
            }
    alone, together = _columns_of_tables(info, tables, coded)
    for column, keys in alone.items():
        asked[column] |= {value for value in named if combined([signed(value)]) in keys}
    for column in set(coded.values()) - set(alone):
        # The keys of combinations do not reveal the parts, so any category may be a part.
        asked[column] |= set(named) if column in together else _of_the_kind(asked[column], named)
    unnamed = set().union(*asked.values()) - set(named)
    if unnamed:
        raise info["cat_features_hash"].error(
            f"{len(unnamed)} categories have no name", "save the model with the rows that it was trained on"
        )
    return {column: sorted((named[value], value) for value in values) for column, values in asked.items()}


def _of_the_kind(values: set[int], named: Mapping[int, str]) -> set[int]:
    """The categories of the column's kind (numbers or text)."""
    kinds = {isinstance(as_number(named[value]), int) for value in values if value in named}
    return {value for value in named if len(kinds) != 1 or isinstance(as_number(named[value]), int) in kinds}


def _column_of(number: Field, coded: Mapping[int, int]) -> int:
    """The column of a categorical feature. Raises ModelError if the number is unknown."""
    if number.integer() not in coded:
        raise number.error(
            f"categorical feature {number.integer()} does not exist", "the file is damaged; save it again"
        )
    return coded[number.integer()]


def _columns_of_tables(
    info: Field, tables: Field | None, coded: Mapping[int, int]
) -> tuple[dict[int, set[int]], set[int]]:
    """The keys of single-feature tables, by column, and the columns that occur in tables of several features."""
    alone: dict[int, set[int]] = {}
    together: set[int] = set()
    for ctr in info["ctrs"].items() if "ctrs" in info else ():
        elements = list(ctr["elements"].items())
        columns = [_column_of(e["cat_feature_index"], coded) for e in elements if "cat_feature_index" in e]
        if len(elements) > 1:
            together |= set(columns)
        elif tables is not None and columns:
            table = tables[ctr["identifier"].text()]
            stride = max(1, table["hash_stride"].integer())
            entries = list(table["hash_map"].items())[::stride]
            alone.setdefault(columns[0], set()).update(key_of(entry) for entry in entries)
    return alone, together
