"""Traces the preprocessing of single columns of a table: monotone functions of numbers, and images of categories.

Every column that the model uses is computed from a single column of the table. Steps that combine columns, and functions that
are not monotone, are rejected, and the error states the cause.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.base.floats import largest_true
from treesens.compiler.model import Ensemble
from treesens.errors import ModelError
from treesens.extensions.formats.sklearn.encoders import encoded, maps_categories
from treesens.frontends.base import LoadedModel
from treesens.frontends.sklearn.rows import NAN_ALONE, RowMaker

Float64 = NDArray[np.float64]
Function = Callable[[Float64], Float64]


def _same(x: Float64) -> Float64:
    return x


@dataclass(frozen=True, eq=False)
class Column:
    """A column of a table, after the steps so far.

    `source` is the column's index in the table. `present` is a non-decreasing function of the column's numbers. `images`, [n +
    1], holds the codes of the `categories`, followed by the code of all other values; `missing` is the image of NaN. `filled`
    replaces missing raw values before they are encoded. If `present` has few values, `levels` lists them in ascending order;
    `picks` holds the values of the column at the levels if these values are not ascending, as for a one-hot bin.
    """

    source: int
    present: Function = _same
    missing: float = float("nan")
    categories: tuple[Any, ...] | None = None
    images: Float64 | None = None
    filled: Any = None
    levels: Float64 | None = None
    picks: Float64 | None = None
    mark: str | None = None
    """The missing value of the encoder, `None` or `NaN`; the encoder treats the other marker as an unknown category."""
    stored: Function | None = None
    """The numbers of the column at the step that made a sparse matrix, which leaves out the zeros; None in a dense matrix."""

    def mapped(self, function: Function) -> Column:
        """The column after an increasing function, which is also applied to NaN."""
        earlier = self.present
        return replace(
            self,
            present=earlier if self.picks is not None else (lambda x: function(earlier(x))),
            missing=float(function(np.array([self.missing]))[0]),
            images=None if self.images is None else function(self.images),
            levels=self.levels if self.levels is None or self.picks is not None else function(self.levels),
            picks=None if self.picks is None else function(self.picks),
        )

    @property
    def raw(self) -> bool:
        """True if no step has changed the column's values."""
        return self.present is _same and self.images is None


def thresholds_of(column: Column, goes: Callable[[Float64], NDArray[np.bool_]], count: int) -> Float64:
    """For each of `count` splits of the image, the greatest number in the source column that goes left according to `goes`."""
    return largest_true(lambda x: goes(column.present(x)), count)


def transform_columns(step: Any, columns: Sequence[Column], place: str) -> list[Column]:
    """The columns, transformed by a fitted transformer. Raises ModelError for unsupported steps."""
    if step is None or (isinstance(step, str) and step == "passthrough"):
        return list(columns)
    kind = type(step)
    follow = _STEPS.get(kind.__name__) if kind.__module__.startswith("sklearn.") else None
    follow = encoded if maps_categories(step) else follow
    if follow is None and kind.__name__ in _NO_STEPS:
        message, remedy = _NO_STEPS[kind.__name__]
        raise ModelError(f"the step {kind.__name__} cannot be traced back: {message}", place=place, remedy=remedy)
    if follow is None:
        raise ModelError(
            f"the step {kind.__name__} cannot be traced back to single columns",
            place=place,
            remedy=f"supported: {', '.join(sorted(_STEPS))}; or pass only the model that follows the step",
        )
    try:
        return follow(step, columns, place)
    except AttributeError as error:
        message = f"the step {kind.__name__} lacks `{error.name}`, which exists in scikit-learn 1.4 and later"
        raise ModelError(message, place=place, remedy="fit it again with the installed scikit-learn") from None


def _pipeline(step: Any, columns: Sequence[Column], place: str) -> list[Column]:
    for name, part in step.steps:
        columns = transform_columns(part, columns, f"{place}.{name}")
    return list(columns)


def _column_transformer(step: Any, columns: Sequence[Column], place: str) -> list[Column]:
    result = []
    indices = step._transformer_to_input_indices
    for name, part, _ in step.transformers_:
        if isinstance(part, str) and part == "drop":
            continue
        chosen = [columns[i] for i in indices[name]]
        if chosen:
            result += transform_columns(part, chosen, f"{place}.{name}")
    return [replace(column, stored=column.present if step.sparse_output_ else None) for column in result]


def _function(step: Any, columns: Sequence[Column], place: str) -> list[Column]:
    if step.func is not None:
        name = getattr(step.func, "__name__", "a function")
        # Logarithms and powers are monotone only up to their last digits, which differ between processors.
        rounds = isinstance(step.func, np.ufunc) and name in _ROUNDED
        why = "whose last digits differ between processors" if rounds else "an arbitrary function"
        raise ModelError(
            f"FunctionTransformer applies {name}, {why}",
            place=place,
            remedy="trees do not need logarithms or powers: remove them; or pass only the model that follows the step",
        )
    return list(columns)


def _selected(step: Any, columns: Sequence[Column], place: str) -> list[Column]:
    """The columns that a selection of features keeps."""
    kept = [column for column, keep in zip(columns, step.get_support(), strict=True) if keep]
    if not kept:
        raise ModelError(f"{type(step).__name__} keeps no column", place=place, remedy="select at least one")
    return kept


def _bins(step: Any, columns: Sequence[Column], _place: str) -> list[Column]:
    number = np.float64 if step.dtype is None else step.dtype
    result = []
    for column, edges in zip(columns, step.bin_edges_, strict=True):
        bins = np.arange(len(edges) - 1, dtype=np.float64)
        made = replace(column.mapped(_binned(np.asarray(edges[1:-1], np.float64), number)), levels=bins)
        # The library assigns no bin to a missing value.
        place = float("nan") if np.isnan(column.missing) else made.missing
        if step.encode == "ordinal":
            result.append(replace(made, missing=place))
            continue
        for k in bins:
            missing = place if np.isnan(place) else float(place == k)
            result.append(replace(made, picks=(bins == k).astype(np.float64), missing=missing))
    return result


def _binned(edges: Float64, number: type) -> Function:
    return lambda x: np.searchsorted(edges, x.astype(number), side="right").astype(np.float64)


def _binarized(step: Any, columns: Sequence[Column], place: str) -> list[Column]:
    del place
    threshold = step.threshold
    made = [column.mapped(lambda x: (x > threshold).astype(np.float64)) for column in columns]
    # The step leaves out its zeros, too; a one-hot bin keeps its levels.
    stored = [replace(column, stored=column.stored and column.present) for column in made]
    return [c if c.picks is not None else replace(c, levels=np.array([0.0, 1.0])) for c in stored]


def _scaled(columns: Sequence[Column], place: str, *operations: tuple[str, Any]) -> list[Column]:
    """The columns after elementwise operations with one constant per column, in the library's order."""
    result = []
    for i, given in enumerate(columns):
        column = given
        for written, values in operations:
            if values is None:
                continue
            name = written
            constant = np.float64(values[i])
            if name in ("/", "*") and not constant > 0:
                raise ModelError(f"column {i} is scaled by {constant}", place=place, remedy="remove that column")
            if name == "/" and column.stored is not None:  # sparse columns are multiplied by the reciprocal
                name, constant = "*", np.float64(1.0) / constant
            column = column.mapped(_OPERATIONS[name](constant))
        result.append(column)
    return result


_OPERATIONS: dict[str, Callable[[np.float64], Function]] = {
    "-": lambda c: lambda x: x - c,
    "+": lambda c: lambda x: x + c,
    "*": lambda c: lambda x: x * c,
    "/": lambda c: lambda x: x / c,
}


def _standard(step: Any, columns: Sequence[Column], place: str) -> list[Column]:
    return _scaled(
        columns, place, ("-", step.mean_ if step.with_mean else None), ("/", step.scale_ if step.with_std else None)
    )


def _min_max(step: Any, columns: Sequence[Column], place: str) -> list[Column]:
    result = _scaled(columns, place, ("*", step.scale_), ("+", step.min_))
    if not step.clip:
        return result
    low, high = step.feature_range
    return [column.mapped(lambda x: np.clip(x, low, high)) for column in result]


def _max_abs(step: Any, columns: Sequence[Column], place: str) -> list[Column]:
    if getattr(step, "clip", False):
        raise ModelError("MaxAbsScaler with clip is not supported", place=place, remedy="set clip=False")
    return _scaled(columns, place, ("/", step.scale_))


def _robust(step: Any, columns: Sequence[Column], place: str) -> list[Column]:
    return _scaled(
        columns,
        place,
        ("-", step.center_ if step.with_centering else None),
        ("/", step.scale_ if step.with_scaling else None),
    )


def _imputer(step: Any, columns: Sequence[Column], place: str) -> list[Column]:
    if not (isinstance(step.missing_values, float) and np.isnan(step.missing_values)):
        raise ModelError(
            f"SimpleImputer replaces the value {step.missing_values!r}",
            place=place,
            remedy="use NaN for missing values",
        )
    result = []
    for column, value in zip(columns, step.statistics_, strict=True):
        if isinstance(value, (str, bool, np.bool_)):
            if not column.raw:
                raise ModelError("a text replaces missing numbers", place=place, remedy="impute before encoding")
            result.append(replace(column, filled=value))
        elif np.isnan(value):
            raise ModelError("SimpleImputer drops a column without values", place=place, remedy="remove that column")
        else:
            result.append(column.mapped(_filler(np.float64(value))))
    if step.add_indicator:
        flags = [columns[i] for i in step.indicator_.features_]
        told = [column.mapped(lambda x: np.isnan(x).astype(np.float64)) for column in flags]
        result += [replace(column, levels=np.zeros(1)) for column in told]
    return result


def _filler(value: np.float64) -> Function:
    return lambda x: np.where(np.isnan(x), value, x)


def _categories(step: Any, columns: Sequence[Column], place: str) -> list[tuple[Column, list[Any], int | None]]:
    """For each column: the column, its categories except missing values, and the position of NaN among all categories."""
    result = []
    for column, values in zip(columns, step.categories_, strict=True):
        if not column.raw:
            raise ModelError(
                f"{type(step).__name__} encodes a column that another step has changed",
                place=place,
                remedy="encode columns directly",
            )
        absent = [i for i, v in enumerate(values) if v is None or (isinstance(v, float) and np.isnan(v))]
        if len(absent) > 1 or (absent and absent[0] != len(values) - 1):
            raise ModelError("None and NaN are separate categories", place=place, remedy=NAN_ALONE)
        mark = None if not absent else "None" if values[absent[0]] is None else "NaN"
        if column.filled is not None and mark == "None":
            message = "SimpleImputer replaces only NaN, but the encoder after it was fitted with None"
            raise ModelError(message, place=place, remedy=NAN_ALONE)
        present = [v.item() if isinstance(v, np.generic) else v for v in values if v is not None]
        known = replace(column, mark="NaN" if column.filled is not None else mark)
        result.append((known, present[: len(values) - len(absent)], absent[0] if absent else None))
    return result


def _encoded(column: Column, present: list[Any], images: Float64, missing: float) -> Column:
    """A column with the images of its categories; imputed NaN has the image of the imputed value."""
    if column.filled is not None:
        place = present.index(column.filled) if column.filled in present else len(present)
        missing = float(images[place])
    return Column(column.source, missing=missing, categories=tuple(present), images=images, mark=column.mark)


def _merged(step: Any, i: int, count: int) -> tuple[Float64, bool]:
    """The code of each of `count` categories of column `i`, and True if infrequent categories share the last code."""
    codes = step._default_to_infrequent_mappings[i] if getattr(step, "_infrequent_enabled", False) else None
    return np.asarray(np.arange(count) if codes is None else codes, dtype=np.float64), codes is not None


def _one_hot(step: Any, columns: Sequence[Column], place: str) -> list[Column]:
    result = []
    for i, (column, present, absent) in enumerate(_categories(step, columns, place)):
        codes, merges = _merged(step, i, len(present) + (absent is not None))
        dropped = None if step.drop_idx_ is None else step._drop_idx_after_grouping[i]
        unknown = codes.max() if merges and step.handle_unknown in ("infrequent_if_exist", "warn") else -1.0
        for k in np.unique(codes):
            if k != dropped:
                images = (np.append(codes[: len(present)], unknown) == k).astype(np.float64)
                result.append(
                    _encoded(column, present, images, float(k == (unknown if absent is None else codes[absent])))
                )
    return result


def _ordinal(step: Any, columns: Sequence[Column], place: str) -> list[Column]:
    unknown = float(step.unknown_value) if step.handle_unknown == "use_encoded_value" else 0.0
    result: list[Column] = []
    for column, present, absent in _categories(step, columns, place):
        codes, _ = _merged(step, len(result), len(present) + (absent is not None))
        images = np.append(codes[: len(present)], unknown)
        # `encoded_missing_value` is the code of NaN; None has a code like other categories.
        missing = (
            unknown if absent is None else float(step.encoded_missing_value if column.mark == "NaN" else codes[absent])
        )
        result.append(_encoded(column, present, images, missing))
    return result


def _target(step: Any, columns: Sequence[Column], place: str) -> list[Column]:
    """Encodes categories by the mean of the target, as `transform` does (in training, `fit_transform` returns other values)."""
    means = np.ravel(np.asarray(step.target_mean_, dtype=np.float64))
    result = []
    for i, (column, present, absent) in enumerate(_categories(step, columns, place)):
        for k, mean in enumerate(means):
            encoding = np.asarray(step.encodings_[i * len(means) + k], dtype=np.float64)
            images = np.append(encoding[: len(present)], mean)
            result.append(_encoded(column, present, images, float(mean if absent is None else encoding[absent])))
    return result


_ROUNDED = ("cbrt", "exp", "expm1", "log", "log10", "log1p", "log2", "sqrt")
_MIXED = ("the step combines several columns", "pass only the model after this step, over the step's outputs")
_SPREAD = ("the step converts one column to several columns that are not step functions", _MIXED[1])
_DIGITS = (
    "the last digits are not monotone, and differ between processors",
    "trees do not need powers or quantiles: remove the step, or use KBinsDiscretizer(encode='ordinal')",
)
_NO_STEPS: dict[str, tuple[str, str]] = {
    **dict.fromkeys(("FastICA", "KernelPCA", "NMF", "Normalizer", "PCA", "PolynomialFeatures", "TruncatedSVD"), _MIXED),
    "SplineTransformer": _SPREAD,
    **dict.fromkeys(("PowerTransformer", "QuantileTransformer"), _DIGITS),
}
_SELECTIONS = (
    "GenericUnivariateSelect",
    "RFE",
    "RFECV",
    "SelectFdr",
    "SelectFpr",
    "SelectFromModel",
    "SelectFwe",
    "SelectKBest",
    "SelectPercentile",
    "SequentialFeatureSelector",
    "VarianceThreshold",
)
_STEPS: dict[str, Callable[[Any, Sequence[Column], str], list[Column]]] = {
    "Pipeline": _pipeline,
    "ColumnTransformer": _column_transformer,
    "FunctionTransformer": _function,
    "StandardScaler": _standard,
    "MinMaxScaler": _min_max,
    "MaxAbsScaler": _max_abs,
    "RobustScaler": _robust,
    "SimpleImputer": _imputer,
    "OneHotEncoder": _one_hot,
    "OrdinalEncoder": _ordinal,
    "TargetEncoder": _target,
    "KBinsDiscretizer": _bins,
    "Binarizer": _binarized,
    **dict.fromkeys(_SELECTIONS, _selected),
}


def rows_of_members(obj: Any, members: Sequence[LoadedModel], ensemble: Ensemble, place: str) -> RowMaker:
    """The `RowMaker` for a model with these members."""
    categories: dict[int, Sequence[Any]] = {}
    marks: dict[int, str] = {}
    calculated: frozenset[str] = frozenset()
    for model in members:
        if isinstance(model.inputs, RowMaker):
            categories.update(model.inputs.categories)
            calculated |= model.inputs.calculated
            for f, mark in model.inputs.marks.items():
                add_mark(marks, f, mark, place)
    if any(f.categories and i not in categories for i, f in enumerate(ensemble.features)):
        message = "one of the inner models has its own categories, which are not visible in the columns of a table"
        raise ModelError(message, place=place, remedy="encode them in a pipeline")
    names = list(obj.feature_names_in_) if hasattr(obj, "feature_names_in_") else None
    return RowMaker(categories, names, marks, calculated)


def add_mark(marks: dict[int, str], column: int, mark: str, place: str) -> None:
    """Records the marker of missing values in a column. Raises ModelError if another step or model has a different marker."""
    if marks.setdefault(column, mark) != mark:
        message = f"one reader of column {column} uses None for missing values, and another uses NaN"
        raise ModelError(message, place=place, remedy=NAN_ALONE)
