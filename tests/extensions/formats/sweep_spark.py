"""Random models of Spark for `sweep.py`: `python -m tests.extensions.formats.sweep spark`; it needs Java.

pip install pyspark
"""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tests.extensions.formats.sweep_models import Made, Untrained

ALLOWED: tuple[str, ...] = ()
_TARGETS = ("two", "two", "three", "value")


@cache
def _session() -> Any:
    from pyspark.sql import SparkSession

    session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def _table(rng: np.random.Generator) -> tuple[list[str], np.ndarray, list[list[Any]], list[list[float]]]:
    """Names of columns, rows as codes and numbers, rows as Spark has them, and the targets of each row."""
    n, names, codes, cells, z = int(rng.integers(120, 500)), [], [], [], 0.0
    for j in range(int(rng.integers(1, 8))):
        kind = ("real", "count", "category", "wide")[int(rng.integers(4))]
        if kind == "category":
            values = rng.integers(0, int(rng.choice([2, 3, 5, 12, 30])), n).astype(float)
            z = z + rng.normal(size=30)[values.astype(int)]
            cells.append([f"v{int(code)}" for code in values])
        else:
            values = {"real": rng.normal(size=n), "wide": rng.lognormal(5, 3, n)}.get(kind, rng.integers(0, 50, n))
            values = np.asarray(values, np.float64)
            z = z + (np.log(values) * 0.1 if kind == "wide" else values * rng.normal() * 0.2)
            cells.append(values.tolist())
        names.append(f"c{j} {kind}")
        codes.append(values)
    z = np.asarray(z + rng.normal(size=n) * 0.3)
    three = np.digitize(z, np.quantile(z, [0.3, 0.6])).astype(float)
    targets = np.column_stack([(z > np.median(z)).astype(float), three, z, rng.random(n)])
    rows = [list(row) for row in zip(*cells, strict=True)]
    return names, np.column_stack(codes), rows, targets.tolist()


def _estimator(target: str, which: int, rng: np.random.Generator) -> Any:
    """A tree, a forest or boosting with random settings."""
    from pyspark.ml import classification, regression

    settings: dict[str, Any] = {
        "seed": 1,
        "labelCol": target,
        "maxDepth": int(rng.integers(0, 8)),
        "maxBins": int(rng.choice([32, 40, 100])),
        "minInstancesPerNode": int(rng.choice([1, 3, 10])),
    }
    if rng.random() < 0.3:
        settings["weightCol"] = "weight"
    if which == 2 and target != "three":
        settings |= {"maxIter": int(rng.integers(1, 12)), "stepSize": float(rng.choice([0.1, 0.3, 1.0]))}
        return (classification.GBTClassifier if target == "two" else regression.GBTRegressor)(**settings)
    if target != "value":
        settings["impurity"] = str(rng.choice(["gini", "entropy"]))
    if which == 1:
        settings |= {"numTrees": int(rng.integers(1, 12)), "subsamplingRate": float(rng.choice([0.3, 1.0]))}
        made = classification.RandomForestClassifier if target != "value" else regression.RandomForestRegressor
        return made(**settings)
    return (classification.DecisionTreeClassifier if target != "value" else regression.DecisionTreeRegressor)(
        **settings
    )


def spark_model(number: int, rng: np.random.Generator, folder: Path) -> Made:
    """A pipeline, or the model in it alone, over random columns; categories of rows are the codes of its indexer."""
    from pyspark.errors import PySparkException
    from pyspark.ml import Pipeline, feature

    names, codes, rows, targets = _table(rng)
    target, which = _TARGETS[number % len(_TARGETS)], number % 3
    listed = [[*row, *told] for row, told in zip(rows, targets, strict=True)]
    frame = _session().createDataFrame(listed, [*names, "two", "three", "value", "weight"])
    texts = [name for name in names if name.endswith("category")]
    invalid = str(rng.choice(["keep", "error"]))
    stages: list[Any] = []
    if texts:
        order = "alphabetAsc"
        stages.append(
            feature.StringIndexer(
                inputCols=texts, outputCols=[f"{t} code" for t in texts], handleInvalid=invalid, stringOrderType=order
            )
        )
    inputs = [f"{name} code" if name in texts else name for name in names]
    numbers = [name for name in names if name not in texts]
    if numbers and rng.random() < 0.3:
        stages.append(feature.Imputer(inputCols=numbers, outputCols=[f"{name} filled" for name in numbers]))
        inputs = [f"{name} filled" if name in numbers else name for name in inputs]
    if numbers and rng.random() < 0.3:
        cut = float(rng.choice([0.0, 1.5, 12.0]))
        stages.append(feature.Binarizer(inputCol=inputs[names.index(numbers[0])], outputCol="high", threshold=cut))
        inputs.append("high")
    # The column that each number of the vector is made of.
    sources = [
        names.index(name.removesuffix(" code").removesuffix(" filled")) if name != "high" else -1 for name in inputs
    ]
    sources = [names.index(numbers[0]) if source < 0 else source for source in sources]
    by_number = bool(rng.random() < 0.3) and not texts and len(stages) == 0
    stages.append(
        feature.VectorAssembler(inputCols=inputs, outputCol="raw" if by_number else "features", handleInvalid=invalid)
    )
    if by_number:
        few = int(rng.choice([4, 30]))
        stages.append(
            feature.VectorIndexer(inputCol="raw", outputCol="features", maxCategories=few, handleInvalid=invalid)
        )
    elif rng.random() < 0.5:
        stages[-1].setOutputCol("raw")
        scalers = [
            feature.StandardScaler(inputCol="raw", outputCol="scaled", withMean=bool(rng.random() < 0.5)),
            feature.MinMaxScaler(inputCol="raw", outputCol="scaled", min=-1.0, max=float(rng.choice([0.3, 1.0]))),
            feature.MaxAbsScaler(inputCol="raw", outputCol="scaled"),
        ]
        kept = sorted(rng.permutation(len(inputs))[: int(rng.integers(1, len(inputs) + 1))].tolist())
        stages.append(scalers[int(rng.integers(3))])
        stages.append(feature.VectorSlicer(inputCol="scaled", outputCol="features", indices=kept))
        sources = [sources[place] for place in kept]
    alone = not by_number and bool(rng.random() < 0.4)
    try:
        estimator = _estimator(target, which, rng)
        if target != "value" and rng.random() < 0.1:
            estimator.setThresholds([0.2, 0.8, 0.5][: 2 if target == "two" else 3])
        model = Pipeline(stages=[*stages, estimator]).fit(frame)
    except PySparkException as error:
        raise Untrained(str(error).splitlines()[0]) from None
    saved = model.stages[-1] if alone else model
    saved.save((folder / "model").as_uri())
    path = Path(shutil.make_archive(str(folder / "model"), "zip", folder / "model"))
    # The indexer knows the labels of the table in alphabetical order.
    for column, name in enumerate(names):
        if name in texts:
            known = sorted({f"v{int(code)}" for code in codes[:, column]})
            codes[:, column] = [known.index(f"v{int(code)}") for code in codes[:, column]]
    kind = type(model.stages[-1]).__name__
    shown = codes[:, sources if alone else list(dict.fromkeys(sources))]
    return Made(f"{kind} of {target}, {'alone' if alone else 'in a pipeline'}", (path,), shown)
