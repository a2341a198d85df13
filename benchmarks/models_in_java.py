"""Recipes of H2O and of Spark for `models_read`: each model is trained in Java, saved, and read from its file.

pip install h2o==3.46.0.6 jpype1 pyspark, and Java
"""

from __future__ import annotations

import atexit
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

TREES = 6
Recipe = tuple[str, str, Callable[[Path], Path]]
"""Library, name, and what trains the model and saves it into a folder: the path of its file."""


def recipes(
    x: pd.DataFrame, targets: dict[str, np.ndarray], numbers: list[str], categories: list[str]
) -> Iterator[Recipe]:
    """All recipes, over the columns of a table with a target for every task."""
    for task, y in targets.items():
        labels = [float(value) for value in y] if task == "value" else [f"c{int(value)}" for value in y]
        table = x.assign(target=labels)
        for name, settings in _of_h2o(task):
            for columns, words in ((numbers + categories, "categories"), (numbers, "numbers alone")):
                yield "h2o", f"{name}, {task}, {words}", _h2o_maker(table, columns, name, settings)
        for name in _of_spark(task):
            for front in _FRONTS:
                yield "spark", f"{name}, {task}, {front}", _spark_maker(table, numbers, categories, name, front)


# --- H2O --------------------------------------------------------------------------------------------------------------------


def _of_h2o(task: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Names of models, with their settings."""
    yield "gradient boosting", {}
    yield "random forest", {}
    yield "random forest of one-hot columns", {"categorical_encoding": "OneHotExplicit"}
    if task == "value":
        yield "gradient boosting, median", {"distribution": "laplace"}
    else:
        yield "gradient boosting, balanced", {"balance_classes": True}
        yield "random forest, balanced", {"balance_classes": True}
    if task == "two classes":
        yield "random forest of both classes", {"binomial_double_trees": True}


@cache
def server_of_h2o() -> Any:
    """The library, beside a server that ends with this process."""
    import h2o

    h2o.init(max_mem_size="2G", nthreads=1, verbose=False)
    h2o.no_progress()
    atexit.register(lambda: h2o.cluster().shutdown())
    return h2o


def _h2o_maker(table: pd.DataFrame, columns: list[str], name: str, settings: dict[str, Any]) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        from h2o.estimators import H2OGradientBoostingEstimator, H2ORandomForestEstimator

        server = server_of_h2o()
        table.to_csv(folder / "table.csv", index=False)
        frame = server.import_file(str(folder / "table.csv"))
        for column in frame.columns:
            if frame.types[column] == "string":
                frame[column] = frame[column].asfactor()
        kind = H2ORandomForestEstimator if "forest" in name else H2OGradientBoostingEstimator
        model = kind(ntrees=TREES, max_depth=3, seed=1, **settings)
        model.train(x=columns, y="target", training_frame=frame)
        return Path(model.save_mojo(path=str(folder), force=True))

    return make


# --- Spark ------------------------------------------------------------------------------------------------------------------

_FRONTS = (
    "indexed",
    "scaled, one-hot",
    "filled, min-max, indexed",
    "above a threshold, indexed",
    "quantile bins, indexed",
    "principal components",
)


def _of_spark(task: str) -> Iterator[str]:
    """Names of models."""
    yield "decision tree"
    yield "random forest"
    if task != "three classes":
        yield "boosted trees"
    if task == "two classes":
        yield "random forest with thresholds"
        yield "boosted trees with thresholds"


@cache
def _session() -> Any:
    from pyspark.sql import SparkSession

    session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def _spark_maker(
    table: pd.DataFrame, numbers: list[str], categories: list[str], name: str, front: str
) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        from pyspark.ml import Pipeline, feature

        rows = list(table.itertuples(index=False, name=None))
        frame = _session().createDataFrame(rows, list(table.columns))
        stages: list[Any] = []
        value = not isinstance(rows[0][-1], str)
        if not value:
            stages.append(feature.StringIndexer(inputCol="target", outputCol="label", stringOrderType="alphabetAsc"))
        stages += _stages_before(feature, numbers, categories, front)
        stages.append(_estimator(name, "target" if value else "label", value=value))
        Pipeline(stages=stages).fit(frame).save((folder / "model").as_uri())
        return folder / "model"

    return make


def _stages_before(feature: Any, numbers: list[str], categories: list[str], front: str) -> list[Any]:
    """Stages that make a vector `features` of the columns."""
    codes = [f"{name} code" for name in categories]
    indexer = feature.StringIndexer(inputCols=categories, outputCols=codes, handleInvalid="keep")

    def vector(names: list[str], target: str) -> Any:
        return feature.VectorAssembler(inputCols=names, outputCol=target, handleInvalid="keep")

    match front:
        case "indexed":
            return [indexer, vector([*numbers, *codes], "features")]
        case "scaled, one-hot":
            ones = [f"{name} ones" for name in categories]
            scaler = feature.StandardScaler(inputCol="all", outputCol="features", withMean=True)
            encoder = feature.OneHotEncoder(inputCols=codes, outputCols=ones)
            return [indexer, encoder, vector([*numbers, *ones], "all"), scaler]
        case "filled, min-max, indexed":
            filled = [f"{name} filled" for name in numbers]
            imputer = feature.Imputer(inputCols=numbers, outputCols=filled)
            scaler = feature.MinMaxScaler(inputCol="all", outputCol="features")
            return [imputer, indexer, vector([*filled, *codes], "all"), scaler]
        case "above a threshold, indexed":
            binarizer = feature.Binarizer(inputCol=numbers[0], outputCol="high", threshold=45.0)
            return [binarizer, indexer, vector(["high", *numbers[1:], *codes], "features")]
        case "quantile bins, indexed":
            bins = [f"{name} bin" for name in numbers]
            discretizer = feature.QuantileDiscretizer(
                inputCols=numbers, outputCols=bins, numBuckets=4, handleInvalid="keep"
            )
            return [discretizer, indexer, vector([*bins, *codes], "features")]
        case _:
            return [vector(numbers, "all"), feature.PCA(inputCol="all", outputCol="features", k=2)]


def _estimator(name: str, label: str, *, value: bool) -> Any:
    from pyspark.ml import classification, regression

    end, module = ("Regressor", regression) if value else ("Classifier", classification)
    kinds = {"decision tree": "DecisionTree", "boosted trees": "GBT"}
    kind = kinds.get(name.removesuffix(" with thresholds"), "RandomForest")
    settings = {"GBT": {"maxIter": TREES}, "RandomForest": {"numTrees": TREES}}.get(kind, {})
    made = getattr(module, f"{kind}{end}")(labelCol=label, maxDepth=3, seed=1, **settings)
    return made.setThresholds([0.3, 0.7]) if "thresholds" in name else made
