"""Reads pipelines that end in a tree model: the splits of the model are converted to splits on the columns of the table.

If g is monotone, a split "cast(g(x)) is left of the cut" holds for all floats up to a certain threshold. Bisection over the
floats finds the threshold in the arithmetic of the library, so every input reaches the same leaf, bit for bit. Splits on
encoded categories become sets of categories.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.base.floats import NumberType
from treesens.compiler.model import Ensemble, Feature
from treesens.errors import ModelError
from treesens.extensions.formats.sklearn.bins import split_levels
from treesens.extensions.formats.sklearn.columns import Column, add_mark, thresholds_of, transform_columns
from treesens.extensions.formats.sklearn.linear import is_linear, read_linear
from treesens.frontends.base import LoadedModel
from treesens.frontends.columns import as_categorical, feature_tuple, pack_sets
from treesens.frontends.sklearn.rows import RowMaker, predictor, replayer

Float64 = NDArray[np.float64]


def is_pipeline(obj: Any) -> bool:
    """True if an object is a scikit-learn or imbalanced-learn pipeline."""
    kind = type(obj)
    return kind.__name__ == "Pipeline" and kind.__module__ in ("sklearn.pipeline", "imblearn.pipeline")


def predicting(pipeline: Any) -> Any:
    """The pipeline as used for predictions: without steps of imbalanced-learn that resample rows in training, and with the
    steps of a pipeline at its end.
    """
    from sklearn.pipeline import Pipeline

    steps = getattr(pipeline, "steps", None)
    if not isinstance(steps, list) or not steps or not all(isinstance(s, tuple | list) and len(s) == 2 for s in steps):
        raise ModelError("the pipeline has no list of steps", remedy="the file is damaged; save the model again")
    kept = [(name, step) for name, step in pipeline.steps if not hasattr(step, "fit_resample")]
    if kept and is_pipeline(kept[-1][1]):
        name, last = kept.pop()
        kept += [(f"{name}.{inner}", step) for inner, step in predicting(last).steps]
    return pipeline if type(pipeline) is Pipeline and kept == pipeline.steps else Pipeline(kept)


def read_pipeline(given: Any, load: Callable[[Any], LoadedModel], place: str) -> LoadedModel:
    """The model at the end of a pipeline, over the pipeline's columns."""
    pipeline = predicting(given)
    first = next((step for _, step in pipeline.steps if step is not None and not isinstance(step, str)), None)
    if first is None or not hasattr(first, "n_features_in_"):
        raise ModelError("the pipeline has not been fitted", place=place, remedy="fit it first")
    names = getattr(first, "feature_names_in_", None)
    n = int(first.n_features_in_)
    columns: Sequence[Column] = [Column(i) for i in range(n)]
    for name, step in pipeline.steps[:-1]:
        columns = transform_columns(step, columns, f"{place}.{name}")
    last = pipeline.steps[-1][1]
    model = None if is_linear(last) else load(last)
    if model is not None and len(columns) != model.ensemble.n_features:
        raise ModelError(
            f"{len(columns)} columns are passed to a model of {model.ensemble.n_features} features",
            place=place,
            remedy="report this pipeline, please",
        )
    if model is not None and model.ensemble.open_features:
        # A linear model is read together with the columns that reach it, so its wrappers must wrap the whole pipeline.
        message = f"{type(last).__name__} over a linear model follows other steps"
        remedy = f"put the wrapper around the whole pipeline: {type(last).__name__}(make_pipeline(..))"
        if model.frontend != "sklearn":
            message = f"{type(last).__name__} with a linear booster follows other steps"
            remedy = "use a linear model of scikit-learn at the end, or pass only the booster"
        raise ModelError(message, place=place, remedy=remedy)
    categories = _categories(columns, place)
    features = list(feature_tuple([f"f{i}" for i in range(n)] if names is None else [str(c) for c in names], place))
    marks = _marks(columns, place)
    for source, values in categories.items():
        features[source] = as_categorical(features[source], max(1, len(values)), values, mark=marks.get(source))
    # A linear model multiplies all numbers, a tree compares those that no step has changed.
    calculated = frozenset(features[c.source].name for c in columns if c.images is None and not (c.raw and model))
    rows = RowMaker(categories, None if names is None else list(names), marks, calculated)
    front = type(pipeline)(list(pipeline.steps[:-1]))
    try:
        known = predictor(front, rows, lambda e, x: _layout(e.transform(x)), None)
        sparse = str(known(np.zeros((1, n)))) if front.steps else ""
    except (AttributeError, TypeError, ValueError) as error:
        message = f"the library cannot transform a row with the steps of the pipeline: {str(error)[:200]}"
        raise ModelError(message, place=place, remedy="save the model again with the library") from None
    if model is None:
        linear = read_linear(last, columns, tuple(features), place, sparse=bool(sparse))
        margins = predictor(pipeline, rows, linear.margins, linear.ensemble.n_outputs)
        predicts = replayer(pipeline, rows, linear.ensemble)
        return LoadedModel(linear.ensemble, "sklearn", margins, predicts=predicts, inputs=rows)
    drops_zeros = bool(sparse) and _takes_sparse_rows(last, model.frontend, place)
    # LightGBM keeps small numbers of a CSR matrix alone; the edge of the band is the only one that a split separates from 0.
    edge = -model.ensemble.zero_band if sparse == "csr" else 0.0
    inner = replace(model.ensemble, zero_band=0.0) if edge else model.ensemble
    ensemble = pulled_back(inner, columns, tuple(features), place, drops_zeros=drops_zeros)

    def before(function: Callable[[Any], Any], outputs: int) -> Any:
        def call(step: Any, x: Any) -> Any:
            made = step.transform(x) if len(step.steps) else x
            if drops_zeros:
                stored, made = made.tocoo(), np.full(made.shape, np.nan)
                made[stored.row, stored.col] = stored.data
            made = np.asarray(made.toarray() if hasattr(made, "toarray") else made, dtype=np.float64)
            return function(np.where(made == edge, np.nextafter(edge, -np.inf), made) if edge else made)

        return predictor(front, rows, call, outputs)

    return LoadedModel(
        ensemble,
        model.frontend,
        before(model.margins, ensemble.n_outputs),
        before(model.leaf_ids, ensemble.n_trees) if model.leaf_ids else None,
        model.notes,
        predicts=replayer(pipeline, rows, ensemble),
        inputs=rows,
    )


def _layout(made: Any) -> str:
    """The format of a sparse matrix, such as csr; empty for a table or a dense matrix."""
    return str(made.format) if hasattr(made, "toarray") else ""


def _takes_sparse_rows(last: Any, frontend: str, place: str) -> bool:
    """True if a zero of a sparse matrix is a missing value, as for XGBoost. Raises ModelError for wrappers with inner steps."""
    inner = tuple(getattr(last, "get_params", dict)().values())
    boosted = frontend != "xgboost" and any(type(value).__module__.startswith("xgboost") for value in inner)
    if boosted or any(map(is_pipeline, inner)):
        what = "XGBoost, which takes its zeros for missing values" if boosted else "a pipeline with steps of its own"
        raise ModelError(
            f"the steps pass a sparse matrix to a {type(last).__name__} of {what}",
            place=place,
            remedy="train with dense columns: OneHotEncoder(sparse_output=False), ColumnTransformer(.., sparse_threshold=0)",
        )
    return frontend == "xgboost"


def _categories(columns: Sequence[Column], place: str) -> dict[int, tuple[Any, ...]]:
    """The categories of encoded columns. Raises ModelError if a column is both a number and a category."""
    result: dict[int, tuple[Any, ...]] = {}
    numbers = {column.source for column in columns if column.categories is None}
    for column in columns:
        if column.categories is None:
            continue
        if column.source in numbers or result.get(column.source, column.categories) != column.categories:
            raise ModelError(
                f"column {column.source} reaches the model twice", place=place, remedy="encode or pass the column once"
            )
        result[column.source] = column.categories
    return result


def _marks(columns: Sequence[Column], place: str) -> dict[int, str]:
    """The markers of missing values in columns for which a step accepts only None or only NaN."""
    result: dict[int, str] = {}
    for column in columns:
        if column.mark is not None:
            add_mark(result, column.source, column.mark, place)
    return result


def read_alone(estimator: Any, place: str) -> LoadedModel:
    """A linear model over the columns of a table."""
    if not hasattr(estimator, "n_features_in_"):
        raise ModelError("the model has not been fitted", place=place, remedy="fit it first")
    names = getattr(estimator, "feature_names_in_", None)
    n = int(estimator.n_features_in_)
    features = feature_tuple([f"f{i}" for i in range(n)] if names is None else [str(c) for c in names], place)
    rows = RowMaker({}, None if names is None else list(names), calculated=frozenset(f.name for f in features))
    linear = read_linear(estimator, [Column(i) for i in range(n)], features, place, sparse=False)
    margins = predictor(estimator, rows, linear.margins, linear.ensemble.n_outputs)
    predicts = replayer(estimator, rows, linear.ensemble)
    return LoadedModel(linear.ensemble, "sklearn", margins, predicts=predicts, inputs=rows)


def pulled_back(
    e: Ensemble, columns: Sequence[Column], features: tuple[Feature, ...], place: str, *, drops_zeros: bool
) -> Ensemble:
    """The ensemble over the table's columns, in float64 with `<=`."""
    if any(f.categories for f in e.features) or e.zero_missing.any():
        raise ModelError(
            "the model at the end of the pipeline has its own categories, or treats zeros as missing",
            place=place,
            remedy="encode categories in the pipeline, or pass only the model",
        )
    given = len(columns)
    e, columns = split_levels(e, columns, place, drops_zeros=drops_zeros)
    threshold, default = np.zeros(e.n_nodes), e.default_left.copy()
    source = np.full(e.n_nodes, -1, dtype=np.int32)
    masks: dict[int, NDArray[np.bool_]] = {}
    for f, column in enumerate(columns):
        nodes = np.flatnonzero(e.node_feature == f)
        source[nodes] = column.source
        cut = e.node_cut[nodes]
        if e.comparison == "<=":  # no cut lies above infinity
            cut = np.where(e.threshold[nodes] == np.inf, np.nan, cut)

        def goes(values: Float64, cut: Float64 = cut) -> NDArray[np.bool_]:
            with np.errstate(over="ignore", invalid="ignore"):
                return np.asarray((e.number_type.cast(values) < cut) | (np.isnan(cut) & ~np.isnan(values)))

        if not np.isnan(column.missing) and not (drops_zeros and f < given and column.missing == 0):
            default[nodes] = goes(np.full(len(nodes), column.missing))
        if column.images is None:
            threshold[nodes] = thresholds_of(column, goes, len(nodes))
            continue
        for node, c in zip(nodes.tolist(), cut, strict=True):
            left = goes(column.images, c)
            lost = np.isnan(column.images) | (drops_zeros & (column.images == 0))
            masks[node] = np.where(lost, e.default_left[node], left)
    category_set, set_offset, set_codes = pack_sets(masks, e.n_nodes, place)
    return replace(
        e,
        features=features,
        number_type=NumberType.FLOAT64,
        comparison="<=",
        node_feature=source,
        threshold=threshold,
        default_left=default,
        category_set=category_set,
        set_offset=set_offset,
        set_codes=set_codes,
        zero_band=0.0,
        source=replace(e.source, path=place),
    ).validate()
