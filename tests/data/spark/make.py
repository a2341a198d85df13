"""Makes the models of this folder, and what Spark predicts with them: `python tests/data/spark/make.py [NAME ..]`.

Needs Java and `pip install pyspark`. Beside each model are rows on and around its thresholds, with missing values and
categories that are not listed, and the answers of `transform`. Spark 3.5 has saved them; 4.3 has saved `later_forest_two` and
`later_pipeline_keep` (`make.py forest_two pipeline_keep` with that version).
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
ROWS, ASKED = 600, 80
NAMES = ["age", "income", "region", "flag", "debt"]
CATEGORIES = {"region": 12, "flag": 2}


def table() -> list[tuple[Any, ...]]:
    """Numbers, 12 regions, a flag and a debt; with a class of two and of three, a value and a weight."""
    rng = np.random.default_rng(0)
    rows = []
    for _ in range(ROWS):
        age, income = float(rng.integers(18, 80)), round(float(rng.lognormal(10, 1)), 2)
        region, flag, debt = float(rng.integers(12)), float(rng.integers(2)), round(float(rng.normal()), 3)
        z = 0.03 * (age - 45) + 0.4 * flag + (region % 5 - 2) * 0.6 + 0.8 * debt + float(rng.normal()) * 0.7
        rows.append(
            (
                [age, income, region, flag, debt],
                float(z > 0),
                float((z > -0.6) + (z > 0.6)),
                round(z, 4),
                0.1 + age / 100,
            )
        )
    return rows


def answers(path: Path) -> dict[str, Any]:
    """Rows of the kit of treesens, and what Spark returns for them."""
    from treesens.extensions.conformance.probes import probes
    from treesens.frontends import load

    model = load(path)
    rows = np.concatenate([probe.rows for probe in probes(model.ensemble, 100, 1)])
    for number, feature in enumerate(model.ensemble.features):
        if feature.needs_value:  # nothing is predicted for a label that is not known, either
            codes = rows[:, number]
            rows = rows[np.isfinite(codes) & ((codes >= 0) & (codes < feature.categories) | (not feature.categories))]
    rows = rows[np.random.default_rng(1).permutation(len(rows))[:ASKED]]
    assert model.predicts is not None
    assert model.leaf_ids is not None
    told = model.predicts(rows)
    assert told.probabilities is not None
    return {
        "rows": [[None if math.isnan(x) else x.hex() for x in row] for row in rows.tolist()],
        "margins": [[float(x).hex() for x in row] for row in model.margins(rows)],
        "answers": [[float(p).hex() for p in row] for row in told.probabilities],
        "classes": None if told.classes is None else told.classes.tolist(),
        "leaves": model.leaf_ids(rows).tolist(),
    }


def frame_of(session: Any) -> Any:
    """The table as Spark takes it, with the numbers of categories."""
    from pyspark.ml.linalg import Vectors
    from pyspark.sql import functions

    rows = [(Vectors.dense(x), *rest) for x, *rest in table()]
    frame = session.createDataFrame(rows, ["x", "two", "three", "value", "weight"])
    numeric = [{"idx": i, "name": name} for i, name in enumerate(NAMES) if name not in CATEGORIES]
    nominal = [{"idx": NAMES.index(name), "name": name, "num_vals": n} for name, n in CATEGORIES.items()]
    attributes = {"ml_attr": {"attrs": {"numeric": numeric, "nominal": nominal}, "num_attrs": len(NAMES)}}
    return frame.withColumn("features", functions.col("x").alias("features", metadata=attributes))


def models() -> dict[str, Any]:
    """Estimators by the name of their file."""
    from pyspark.ml import classification, regression

    small = {"featuresCol": "features", "seed": 1, "maxDepth": 4}
    tree, forest = classification.DecisionTreeClassifier, classification.RandomForestClassifier
    number, numbers = regression.DecisionTreeRegressor, regression.RandomForestRegressor
    return {
        "tree_two": tree(labelCol="two", **small),
        "tree_three": tree(labelCol="three", weightCol="weight", impurity="entropy", **small),
        "tree_value": number(labelCol="value", **small),
        "forest_two": forest(labelCol="two", numTrees=6, **small),
        "forest_three": forest(labelCol="three", numTrees=7, weightCol="weight", **small),
        "forest_value": numbers(labelCol="value", numTrees=6, **small),
        "boosting_two": classification.GBTClassifier(labelCol="two", maxIter=9, **small),
        "boosting_value": regression.GBTRegressor(labelCol="value", maxIter=6, stepSize=0.3, **small),
    }


def table_of(session: Any) -> Any:
    """The same rows as columns of numbers and of texts, with a class that has a name."""
    rows = [
        (age, income, f"r{int(region)}", ("no", "yes")[int(flag)], debt, ("bad", "good")[int(two)], value)
        for (age, income, region, flag, debt), two, _, value, _ in table()
    ]
    return session.createDataFrame(rows, [*NAMES, "decision", "value"])


def pipelines() -> dict[str, Any]:
    """Pipelines by the name of their file."""
    from pyspark.ml import Pipeline, classification, evaluation, feature, regression, tuning

    def indexed(invalid: str) -> list[Any]:
        texts = feature.StringIndexer(
            inputCols=["region", "flag"], outputCols=["region code", "flag code"], handleInvalid=invalid
        )
        columns = ["age", "region code", "income", "flag code", "debt"]
        return [texts, feature.VectorAssembler(inputCols=columns, outputCol="all", handleInvalid=invalid)]

    decision = feature.StringIndexer(inputCol="decision", outputCol="label", stringOrderType="alphabetAsc")
    names = feature.IndexToString(inputCol="prediction", outputCol="said", labels=["bad", "good"])
    small = {"featuresCol": "all", "seed": 1, "maxDepth": 4}
    numbers = feature.VectorAssembler(inputCols=["age", "debt", "income"], outputCol="raw", handleInvalid="keep")
    few = feature.VectorIndexer(inputCol="raw", outputCol="all", maxCategories=62, handleInvalid="keep")
    forest = classification.RandomForestClassifier(numTrees=5, **small)
    value = regression.DecisionTreeRegressor(labelCol="value", maxBins=64, **small)
    grid = tuning.ParamGridBuilder().addGrid(value.maxDepth, [3, 4]).build()
    search = tuning.TrainValidationSplit(
        estimator=Pipeline(stages=[numbers, few, value]),
        estimatorParamMaps=grid,
        evaluator=evaluation.RegressionEvaluator(labelCol="value"),
        seed=1,
    )
    boosting = classification.GBTClassifier(maxIter=4, **small)

    def hot(labels: str, encoder: str, *, drop: bool) -> list[Any]:
        texts = feature.StringIndexer(inputCols=["region", "flag"], outputCols=["r", "f"], handleInvalid=labels)
        zeros = feature.OneHotEncoder(
            inputCols=["r", "f"], outputCols=["region one", "flag one"], handleInvalid=encoder, dropLast=drop
        )
        columns = ["region one", "age", "flag one", "debt"]
        return [texts, zeros, feature.VectorAssembler(inputCols=columns, outputCol="all", handleInvalid="keep")]

    def indexed_and(*rest: Any) -> Pipeline:
        texts = feature.StringIndexer(inputCol="region", outputCol="region code", handleInvalid="keep")
        filled = feature.Imputer(inputCols=["debt", "age"], outputCols=["debt full", "age full"], strategy="median")
        old = feature.Binarizer(inputCol="age full", outputCol="old", threshold=47.5)
        columns = ["old", "region code", "income", "debt full", "age full"]
        vector = feature.VectorAssembler(inputCols=columns, outputCol="raw", handleInvalid="keep")
        return Pipeline(stages=[decision, texts, filled, old, vector, *rest])

    standard = feature.StandardScaler(inputCol="raw", outputCol="all", withMean=True)
    most = feature.MaxAbsScaler(inputCol="raw", outputCol="most")
    least = feature.MinMaxScaler(inputCol="most", outputCol="least", min=-0.3, max=2.0)
    slices = feature.VectorSlicer(inputCol="least", outputCol="all", indices=[4, 1, 2, 0])
    return {
        "pipeline_standard": indexed_and(standard, forest),
        "pipeline_scaled": indexed_and(most, least, slices, value),
        "pipeline_filled": indexed_and(
            feature.VectorSlicer(inputCol="raw", outputCol="all", indices=[3, 0, 2]), boosting
        ),
        "pipeline_keep": Pipeline(stages=[decision, *indexed("keep"), forest, names]),
        "pipeline_error": Pipeline(stages=[decision, *indexed("error"), boosting]),
        "pipeline_search": search,
        "pipeline_hot": Pipeline(stages=[decision, *hot("keep", "error", drop=True), forest]),
        "pipeline_hot_all": Pipeline(stages=[decision, *hot("error", "keep", drop=False), boosting]),
    }


def zipped(folder: Path, path: Path) -> None:
    """The files of a folder without a date; sums of bytes that Hadoop writes beside them are left out."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(p for p in folder.rglob("*") if p.is_file() and p.suffix != ".crc"):
            name = f"{path.stem}/{file.relative_to(folder).as_posix()}"
            archive.writestr(zipfile.ZipInfo(name), file.read_bytes(), zipfile.ZIP_DEFLATED)


def main(*wanted: str) -> None:
    import pyspark
    from pyspark.sql import SparkSession

    later = "later_" if pyspark.__version__.startswith("4") else ""
    session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    made = [(frame_of(session), models()), (table_of(session), pipelines())]
    with tempfile.TemporaryDirectory() as scratch:
        for frame, (name, estimator) in [(frame, item) for frame, items in made for item in items.items()]:
            if wanted and name not in wanted:
                continue
            estimator.fit(frame).save((Path(scratch) / name).as_uri())
            path = HERE / f"{later}{name}.zip"
            zipped(Path(scratch) / name, path)
            path.with_suffix(".json").write_text(json.dumps(answers(path)) + "\n")
    session.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
