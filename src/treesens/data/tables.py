"""Tables of data: CSV files, Parquet files and data frames, as columns of float64 or of text.

A table contains model inputs: numbers in the model's own units, with NaN or an empty field for a missing value. Text is allowed
in columns whose category names are known (declared, or stored in the model); in other columns text is an error. A model can
read a table that has all columns that the model needs, with numbers in range.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import os
import re
import warnings
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from treesens.compiler.base.arrays import FloatArray
from treesens.compiler.base.diagnostics import did_you_mean
from treesens.compiler.base.files import near_file, open_regular
from treesens.compiler.base.floats import NumberType, float_of, is_decimal
from treesens.compiler.base.packages import imported
from treesens.compiler.model import Feature
from treesens.compiler.model.kinds import REST
from treesens.data.columns import (
    MISSING_MARKS,
    TRUTHS,
    Column,
    column_of_array,
    column_of_fields,
    column_of_series,
    is_absent,
)
from treesens.data.file_kinds import kind_of
from treesens.errors import DataError
from treesens.frontends.base import LoadedModel
from treesens.visible import declaration

_WRITTEN = re.compile(r"[-+]?\d{1,3}([.,' \u00a0\u202f]?\d{3})*([.,]\d+)?")
"""A number with a decimal comma or with separators."""
_SIGN = r"[%\u2030$\u00a2-\u00a5\u20a0-\u20bf]"
_WITH_UNIT = re.compile(rf"({_SIGN} ?|[A-Z]{{3}} )?{_WRITTEN.pattern}( ?(\u00b0?[A-Za-z\u00b5]{{1,3}}|{_SIGN}))?")
"""A number with a unit, currency code or currency sign. A number after a single letter is a code."""
_PERCENTAGE = re.compile(r"[-+]?\d+([.,]\d+)? ?%")
_DECIMAL_COMMA = re.compile(r"[-+]?(\d{1,3}(\.\d{3})+,\d+|\d+,(?!\d{3}$)\d+)")
_TOKENS = frozenset(
    ("?", ".", "..", "-", "--", "\u2013", "\u2014", "*", "n.a.", "n.a", "n/a", "na", "none", "nil", "missing", "unknown", "#na",
     "#n/a n/a", "#value!", "#ref!", "#div/0!", "#null!", "#num!", "<na>", "(null)", "\\n")
)  # fmt: skip
"""Common marks for a missing number: `?` in the UCI archive, `.` in SAS and Stata, `\\N` in MySQL."""
_DELIMITERS = ",;\t|"
_PARQUET = b"PAR1"
_HEAD_BYTES = 1 << 16
_MOST_UNPACKED = 1 << 30


class TextError(DataError):
    """Raised if a column contains text where the model expects another kind of value, described by `what`."""

    table: str
    column: str
    text: str
    what: str


@dataclass(frozen=True)
class Categories:
    """A column's notation for categories: stored values by text (`names`) and by number (`numbers`).

    If there are `numbers`, every number in the column is the label of a category, and never a stored value. `digits` is True if
    text such as "2" that is not a name may be a number, and False if only the model names the categories. `unsure` is True if a
    number may be a code or a name, so that numbers are refused. `mark` is the only mark of missing values, if known.
    """

    names: Mapping[str, float] = field(default_factory=dict)
    numbers: Mapping[Fraction, float] = field(default_factory=dict)
    digits: bool = True
    unsure: bool = False
    mark: str | None = None


@dataclass(frozen=True, eq=False)
class Table:
    """Columns by name, in the order of the source; `label` is the column that is not an input, or None if all are inputs.

    `sha256` is the digest of the file, or None for a data frame. `marks` holds the missing-value marks per column of a frame,
    and `narrow` the columns of a frame that are float32 or float16. `in_text` is true for a CSV file: fields have no type.
    """

    name: str
    columns: Mapping[str, Column]
    rows: int
    label: str | None = None
    sha256: str | None = None
    marks: Mapping[str, frozenset[str]] = field(default_factory=dict)
    narrow: frozenset[str] = frozenset()
    in_text: bool = False

    def __contains__(self, column: str) -> bool:
        return column in self.columns and column != self.label

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of all columns except the label."""
        return tuple(column for column in self.columns if column != self.label)

    def numbers(self, column: str, categories: Categories | None = None) -> FloatArray:
        """A column as stored values, float64[rows], read-only; category names become the values of the categories.

        Raises DataError, with row and column, for unknown categories, for text that is not a number, and for fields of a text
        file that may be missing or a category of this name, such as NA.
        """
        values, known = self.columns[column], categories or Categories()
        if known.unsure:
            raise DataError(
                f"column `{column}` may hold codes or names: the model does not say which column its category names belong to",
                place=f"{self.name}, column `{column}`",
                remedy=f"write the codes of training, and declare the feature, e.g. {declaration(column, 'integer in [0, 9]')}",
            )
        if known.mark is not None and (other := self.marks.get(column, frozenset()) - {known.mark}):
            raise DataError(
                f"column `{column}` contains {min(other)}, which the model treats as an unknown category",
                place=f"{self.name}, column `{column}`",
                remedy=f"write missing values as {known.mark}, as in training",
            )
        if self.in_text and (marks := MISSING_MARKS & known.names.keys()):
            gone = [v is None for v in values.tolist()] if values.dtype == object else np.isnan(values)
            if np.any(gone):
                raise DataError(
                    f"column `{column}` has empty cells, or cells with `{min(marks)}`, which a file marks missing values with, "
                    "and which is a category of the model",
                    place=f"{self.name}, row {int(np.flatnonzero(gone)[0])}, column `{column}`",
                    remedy="pass a data frame, e.g. pandas.read_csv(FILE, keep_default_na=False), or leave such rows out",
                )
        if values.dtype != object:
            if (truths := _codes_of_truths(values, known.names)) is not None:
                return truths
            return self._codes(column, values, known) if known.numbers or REST in known.names else values
        result = np.full(len(values), np.nan)
        for text in dict.fromkeys(v for v in values if v is not None):
            stored = _stored(text, known)
            if stored is None:
                raise self._unknown_text(column, values, text, known)
            result[values == text] = stored
        result.flags.writeable = False
        return result

    def _codes(self, column: str, values: FloatArray, known: Categories) -> FloatArray:
        """Stored values of numeric labels."""
        labels = {float(label): code for label, code in known.numbers.items()}
        present = np.unique(values[~np.isnan(values)])
        lost = [v for v in present.tolist() if v not in labels]
        rest = known.names.get(REST)
        if lost and rest is None:
            row = int(np.flatnonzero(values == lost[0])[0])
            raise DataError(
                f"column `{column}` contains {lost[0]:g} in row {row}, which is no category of the model",
                place=f"{self.name}, row {row}, column `{column}`",
                remedy=f"the model calls its categories {_listed(known)}: write these, not codes, or leave such rows out",
            )
        result = np.where(np.isnan(values), np.nan, np.nan if rest is None else rest)
        for label, code in labels.items():
            result[values == label] = code
        result.flags.writeable = False
        return result

    def _unknown_text(self, column: str, values: Column, text: str, known: Categories) -> TextError:
        row = int(np.flatnonzero(values == text)[0])
        others = sum(v is not None and _stored(v, known) is None for v in values) - 1
        more = f" (and text in {others} more row{'s' if others > 1 else ''})" if others else ""
        what = "which is no category of the model" if known.names else "where the model reads a number"
        error = TextError(
            f"column `{column}` contains the text `{text[:40]}` in row {row}{more}, {what}",
            place=f"{self.name}, row {row}, column `{column}`",
            remedy=_text_remedy(text, column, values, known.names),
        )
        error.table, error.column, error.text, error.what = self.name, column, text, what
        return error

    def matrix(self, columns: Sequence[str], categories: Mapping[str, Categories] | None = None) -> FloatArray:
        """The named columns as float64[rows, columns]. Raises DataError, which lists missing columns."""
        absent = [column for column in columns if column not in self]
        if absent:
            listed = ", ".join(f"`{column}`" for column in absent[:8]) + (", …" if len(absent) > 8 else "")
            raise DataError(
                f"the table lacks {'the column' if len(absent) == 1 else f'{len(absent)} columns:'} {listed}",
                place=self.name,
                remedy=did_you_mean(absent[0], self.inputs),
            )
        names = categories or {}
        return np.stack([self.numbers(column, names.get(column)) for column in columns], axis=1)


def with_zeros(table: Table, columns: Iterable[str]) -> Table:
    """The table with columns of zeros added for features that a model lists but does not use."""
    zeros = np.zeros(table.rows)
    zeros.flags.writeable = False
    added = {column: zeros for column in columns if column not in table}
    return replace(table, columns={**table.columns, **added}) if added else table


_MOST_DIGITS = 400
"""Maximum digits before or after the point in a category name that is a number: an exact value needs all its digits."""


def decimal_of(text: str) -> Fraction | None:
    """The exact number that a text represents; None if the text is not a number, not finite, or too long for a name."""
    if not is_decimal(text) or len(text) > _MOST_DIGITS:
        return None
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return Fraction(number) if number.is_finite() and abs(number.adjusted()) <= _MOST_DIGITS else None


def _codes_of_truths(values: FloatArray, names: Mapping[str, float]) -> FloatArray | None:
    """Stored values of truth values, which are 1 and 0 in columns, if texts such as `True` name categories; None otherwise."""
    codes = {TRUTHS[text]: code for text, code in names.items() if text in TRUTHS}
    if not codes or not set(values[~np.isnan(values)].tolist()) <= codes.keys():
        return None
    result = np.full(len(values), np.nan)
    for truth, code in codes.items():
        result[values == truth] = code
    result.flags.writeable = False
    return result


def _stored(text: str, known: Categories) -> float | None:
    """The stored value of a text, or None. A number is its own stored value unless categories have numbers or names."""
    if text in known.names:
        return known.names[text]
    number = float_of(text)
    rest = known.names.get(REST)
    if number is None or not (known.digits or known.numbers):
        return rest
    if known.numbers:
        exact = decimal_of(text)
        return rest if exact is None else known.numbers.get(exact, rest)
    return number


def _listed(known: Categories) -> str:
    shown = [f"{float(label):g}" for label in list(known.numbers)[:8]]
    return ", ".join(shown) + (", …" if len(known.numbers) > 8 else "")


def _looks_like_a_number(text: str) -> bool:
    """True if a text is a number in a notation that tables do not use: `35,6`, `1.234,5`, `1_000`, digits of other scripts."""
    if _WRITTEN.fullmatch(text.strip()):
        return True
    try:
        float(text)
    except ValueError:
        return False
    return True


def _text_remedy(text: str, column: str, values: Column, known: Mapping[str, float]) -> str:
    if known:
        return did_you_mean(text, known)
    present = [v for v in values if v is not None]
    numbers = sum(float_of(v) is not None for v in present)
    if text.lower() in _TOKENS and numbers:
        return f"`{text}` looks like a missing value: leave such cells empty, e.g. pandas.read_csv(.., na_values=[{text!r}])"
    if _PERCENTAGE.fullmatch(text):
        return f"`{text}` is a percentage: write the number of training, e.g. frame[{column!r}].str.rstrip('% ').astype(float)"
    if _DECIMAL_COMMA.fullmatch(text):
        return f"`{text}` has a decimal comma: pandas.read_csv(.., decimal=',', thousands='.') reads such a file"
    if _looks_like_a_number(text):
        return "write a number in the digits 0 to 9, with a decimal point and without separators: 35.6, 1000 or 1e3"
    if all(_WITH_UNIT.fullmatch(v) or float_of(v) is not None or v.lower() in _TOKENS for v in present):
        return f"`{text[:40]}` looks like a number with a unit: write the number alone, in the unit of training"
    if numbers > len(present) / 2:
        return f"the other rows contain numbers: correct `{text[:40]}`, or leave the cell empty"
    named = declaration(column, "category {NAME = code, ..}")
    return (
        f"declare its categories in a `.sens` file, {named} (studies like audit read it with --domain), or encode it "
        "as for training"
    )


def read_table(source: object, *, label: str | None = None, rows: int | None = None, name: str = "") -> Table:
    """A table from a CSV or Parquet file (a path) or from a data frame of any library supported by narwhals.

    `label` names the column that is not an input; only the first `rows` are kept. Raises DataError, with location and remedy.
    """
    digest, in_text = None, False
    if isinstance(source, (str, os.PathLike)):
        path = Path(source)
        place = name or str(path)
        columns = _read_file(path, place)
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            file.seek(0)
            in_text = file.read(len(_PARQUET)) != _PARQUET
    else:
        place = name or "the data frame"
        columns = _read_frame(source, place)
    if rows is not None:
        columns = {key: values[:rows] for key, values in columns.items()}
    table = table_of_columns(columns, place, label, digest)
    return (
        replace(table, in_text=in_text)
        if digest is not None
        else _with_types(table, _arrays_of_frame(source, table.rows))
    )


def _arrays_of_frame(frame: Any, rows: int) -> dict[str, np.ndarray[Any, Any]]:
    """The columns as scikit-learn converts them; none for pyarrow tables, which scikit-learn does not accept."""
    import narwhals as nw

    data = nw.from_native(frame, eager_only=True)
    if data.implementation.is_pyarrow():
        return {}
    return {str(series.name): series.to_numpy()[:rows] for series in data.iter_columns()}


def _with_types(table: Table, arrays: Mapping[str, np.ndarray[Any, Any]]) -> Table:
    """The table with its marks of missing values and its narrow columns, from the arrays of a frame."""
    narrow = frozenset(name for name, array in arrays.items() if array.dtype in (np.float16, np.float32))
    return replace(table, marks={name: _marks(array) for name, array in arrays.items()}, narrow=narrow)


def _marks(values: np.ndarray[Any, Any]) -> frozenset[str]:
    """The distinct marks of missing values in a column: None, NaN, or another mark such as `<NA>` in pandas."""
    if values.dtype.kind == "f":
        return frozenset(["NaN"] if np.isnan(values).any() else [])
    absent = [v for v in values.tolist() if is_absent(v)] if values.dtype == object else []
    return frozenset("NaN" if isinstance(v, Real) else str(v) for v in absent)


def table_of_columns(
    columns: dict[str, Column], place: str, label: str | None = None, digest: str | None = None
) -> Table:
    """The table with these columns, which become read-only. Raises DataError for no rows or an unknown label column."""
    count = len(next(iter(columns.values()))) if columns else 0
    if count == 0:
        raise DataError("the table has no rows", place=place, remedy="pass a table with at least one row")
    if label is not None and label not in columns:
        raise DataError(f"the table has no column `{label}`", place=place, remedy=did_you_mean(label, columns))
    for values in columns.values():
        values.flags.writeable = False
    return Table(place, columns, count, label, digest)


def _read_file(path: Path, place: str) -> dict[str, Column]:
    try:
        with open_regular(path) as file:
            head = file.read(_HEAD_BYTES)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise DataError(
            f"the data file cannot be read: {reason}",
            place=place,
            remedy=near_file(place) or "check the path and its permissions",
        ) from None
    if not head:
        raise DataError("the data file is empty", place=place)
    if head.startswith(_PARQUET):
        return _read_parquet(path, place)
    unpacked = _unpacked(path, place) if head.startswith(b"\x1f\x8b") else None
    if (kind := kind_of(head if unpacked is None else unpacked[:_HEAD_BYTES], path.name)) is not None:
        inside = "" if unpacked is None else "gzip with "
        raise DataError(
            f"the data file is {inside}{kind[0]}, which is neither CSV nor Parquet", place=place, remedy=kind[1]
        )
    return _read_csv(path if unpacked is None else io.BytesIO(unpacked), place)


def _unpacked(path: Path, place: str) -> bytes:
    """The content of a gzip file. Raises DataError for a damaged file, and above the limit."""
    try:
        with gzip.open(path) as file:
            content = file.read(_MOST_UNPACKED + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"the gzip file is damaged: {error}", place=place, remedy="copy or save it again") from None
    if len(content) > _MOST_UNPACKED:
        raise DataError(
            f"the gzip file unpacks to more than {_MOST_UNPACKED} bytes",
            place=place,
            remedy=f"unpack it: gunzip {path.name}",
        )
    return content


def _read_parquet(path: Path, place: str) -> dict[str, Column]:
    parquet = imported("pyarrow.parquet", "Parquet files are read with pyarrow", place=place)
    ArrowException = imported("pyarrow", "Parquet files are read with pyarrow").ArrowException
    try:
        return _read_frame(parquet.read_table(path), place)
    except (OSError, ValueError, TypeError, LookupError, NotImplementedError, ArrowException) as error:
        raise DataError(f"the Parquet file cannot be read: {str(error)[:200]}", place=place) from None


def _read_frame(frame: Any, place: str) -> dict[str, Column]:
    import narwhals as nw

    try:
        data = nw.from_native(frame, eager_only=True)
    except TypeError:
        kind = f"{type(frame).__module__}.{type(frame).__qualname__}"
        remedy = "pass a DataFrame of pandas or polars, a pyarrow table, or a path"
        if isinstance(frame, np.ndarray):
            remedy = "an array has no column names: pandas.DataFrame(array, columns=[..]) adds them"
        raise DataError(f"an object of type {kind} is not a data frame", remedy=remedy) from None
    names = [str(column) for column in data.columns]
    _refuse_duplicates(names, place)
    return {name: column_of_series(series) for name, series in zip(names, data.iter_columns(), strict=True)}


def _read_csv(source: Path | io.BytesIO, place: str) -> dict[str, Column]:
    try:
        with io.TextIOWrapper(
            source.open("rb") if isinstance(source, Path) else source, encoding="utf-8-sig", newline=""
        ) as file:
            delimiter = max(_DELIMITERS, key=lambda one: len(_header_of(file, one)))
            names = [field.strip() for field in _header_of(file, delimiter)]
            begin = file.tell()
            _refuse_duplicates(names, place)
            numbers = _all_numbers(file, delimiter, len(names))
            if numbers is not None:
                return {name: numbers[:, i].copy() for i, name in enumerate(names)}
            file.seek(begin)
            return _columns_of(list(csv.reader(file, delimiter=delimiter)), names, place)
    except UnicodeDecodeError:
        raise DataError(
            "the data file is not UTF-8", place=place, remedy="save it as UTF-8 (`iconv -f windows-1252 -t utf-8`)"
        ) from None
    except csv.Error as error:
        raise DataError(f"the data file is not CSV: {error}", place=place) from None


def _header_of(file: io.TextIOBase, delimiter: str) -> list[str]:
    """The first record of a file, which is read to the end of that record: a quoted name may contain line breaks."""
    file.seek(0)
    return next(csv.reader(iter(file.readline, ""), delimiter=delimiter), [])


def _refuse_duplicates(names: list[str], place: str) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise DataError(f"the column `{twice[0]}` occurs twice", place=place, remedy="rename or drop one of the two")


def _all_numbers(file: io.TextIOBase, delimiter: str, width: int) -> FloatArray | None:
    """The rest of the file, read by numpy's exact and fast C reader, if every field is a number; None otherwise."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # suppresses warnings about files without rows
        try:
            numbers = np.loadtxt(file, delimiter=delimiter, comments=None, quotechar='"', ndmin=2)
        except ValueError as error:
            if isinstance(error, UnicodeDecodeError):
                raise
            return None
    return numbers if numbers.shape[1] == width else None


def _columns_of(lines: list[list[str]], names: list[str], place: str) -> dict[str, Column]:
    body = [line for line in lines if line]
    for row, line in enumerate(body):
        if len(line) != len(names):
            raise DataError(
                f"row {row} has {len(line)} fields, the header has {len(names)}",
                place=f"{place}, row {row}",
                remedy="put fields that contain the separator in double quotes",
            )
    fields = zip(*body, strict=True) if body else ((),) * len(names)
    return {name: column_of_fields(column) for name, column in zip(names, fields, strict=True)}


_PLACE = "the array"


def table_of_array(array: np.ndarray[Any, Any], models: Iterable[LoadedModel], label: str | None) -> Table:
    """The table of an array [rows, features], with the feature names of the first model that has the same number of features.

    Raises DataError for an array of another shape, and for a label, because array columns have no names.
    """
    remedy = "pass the columns in the order of training, or a data frame that names them"
    if array.ndim != 2 or array.dtype.names is not None:
        shape = " x ".join(map(str, array.shape)) or "a single value"
        raise DataError(
            f"an array of shape {shape} is not a table", place=_PLACE, remedy="pass an array [rows, features]"
        )
    if label is not None:
        raise DataError(
            f"an array has no column `{label}`", place=_PLACE, remedy="leave `label` out, or pass a data frame"
        )
    known = [model.ensemble.feature_names for model in models]
    names = next((one for one in known if len(one) == array.shape[1]), None)
    if names is None:
        wanted = f"the model has {len(known[0])} features" if known else "no model names them"
        raise DataError(f"the array has {array.shape[1]} columns, but {wanted}", place=_PLACE, remedy=remedy)
    table = table_of_columns({name: column_of_array(array[:, f]) for f, name in enumerate(names)}, _PLACE)
    return _with_types(table, {name: array[:, f] for f, name in enumerate(names)})


def align_table(model: LoadedModel, table: Table) -> Table:
    """The table with zeros for features that the model lists, but on which no tree splits.

    Raises DataError if another feature is missing, or contains text or numbers outside the model's number type, or numbers of a
    type in which the model's steps calculate other results.
    """
    ensemble = model.ensemble
    table, _ = as_named(table, blanks_replaced(model))
    table = as_codes(table, ensemble.features)
    used = set(ensemble.used_features)
    absent = [name for name in ensemble.feature_names if name not in table]
    needed = [name for name in absent if name in used]
    if needed:
        listed = ", ".join(f"`{name}`" for name in needed[:8]) + (", …" if len(needed) > 8 else "")
        spare = [name for name in table.inputs if name not in ensemble.feature_names]
        remedy = did_you_mean(needed[0], spare) or f"add a column `{needed[0]}`"
        if len(needed) == len(used) and not remedy.startswith("did you mean"):
            remedy = f"rename the columns, in the order of training: {', '.join(ensemble.feature_names[:8])}"
        raise DataError(f"the table lacks columns that the model uses: {listed}", place=table.name, remedy=remedy)
    check_types(model, table)
    for feature in ensemble.features:
        # Texts may be declared category names; others are refused when the column is read.
        if feature.name in used and not feature.labels and table.columns[feature.name].dtype != object:
            check_range(table, feature.name, table.numbers(feature.name), ensemble.number_type)
    return with_zeros(table, absent)


def blanks_replaced(model: LoadedModel) -> Collection[str]:
    """Features whose names may have contained blanks: LightGBM replaces each blank by `_`, in files and in live models."""
    if not model.frontend.startswith("lightgbm"):
        return ()
    return tuple(name for name in model.ensemble.feature_names if "_" in name)


def as_named(table: Table, features: Collection[str]) -> tuple[Table, dict[str, str]]:
    """The table with columns renamed to feature names in which `_` replaces each blank, and the renamed columns.

    A column with the feature's exact name has priority, and if two columns map to one name, neither is renamed.
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


def as_codes(table: Table, features: Iterable[Feature]) -> Table:
    """The table with codes for the names of ordered categories, which a model reads as numbers; other texts stay."""
    coded: dict[str, Column] = {}
    for feature in features:
        if feature.levels and feature.name in table:
            column = table.columns[feature.name]
            codes = {level: float(code) for code, level in enumerate(feature.levels)}
            if column.dtype == object and all(text is None or text in codes for text in column):
                coded[feature.name] = np.array([np.nan if text is None else codes[text] for text in column])
                coded[feature.name].flags.writeable = False
    return replace(table, columns={**table.columns, **coded}) if coded else table


def check_types(model: LoadedModel, table: Table) -> None:
    """Raises DataError for a column of a type in which steps of the model calculate other results than in float64."""
    if calculated := set(getattr(model.inputs, "calculated", ())) & table.narrow:
        raise DataError(
            f"the numbers of `{min(calculated)}` are float32 or float16, in which the steps of the pipeline round differently",
            place=table.name,
            remedy="pass frame.astype('float64'), and let the model predict on float64, too",
        )


def check_range(table: Table, name: str, values: FloatArray, number_type: NumberType) -> None:
    """Raises DataError if `values`, the stored numbers of a column, float64[rows], contain an infinity in this number type."""
    with np.errstate(over="ignore"):
        beyond = np.flatnonzero(np.isinf(number_type.cast(values)))
    if len(beyond):
        raise DataError(
            f"column `{name}` contains infinite values, or values beyond the range of {number_type.value}, in "
            f"{len(beyond)} of {table.rows} rows",
            place=f"{table.name}, row {int(beyond[0])}, column `{name}`",
            remedy="leave the fields of missing values empty, or write the largest finite value instead",
        )


def distinct(table: Table, name: str) -> int:
    """The number of distinct values of a column."""
    column = table.columns[name]
    return len(set(column)) if column.dtype == object else len(np.unique(column))
