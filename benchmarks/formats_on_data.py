"""The conformance kit on public data sets: formats that are more than trees, trained on each, and compared with their library.

    python -m benchmarks.formats_on_data [FOLDER] --rows 200 [--classes 3]

Data sets are those that scikit-learn brings (breast cancer, iris, wine, diabetes) and `FOLDER/NAME/train.csv`, whose last
column is the label (`python -m benchmarks.fetch_data` fetches such tables); the first 12 digits of a SHA-256 of each table are
printed. Columns of few values are categories. With `--classes 3` the formats are those of several classes; a table of two has
the terciles of its first column of many values as classes, and is without this column. The kit asks on and around every
threshold, about missing values and unseen categories, about leaves, margins, probabilities and labels (`treesens info
--check`).
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from benchmarks.published import FOLDER
from tests.extensions.formats.java import in_java

from treesens.errors import ModelError
from treesens.extensions.conformance import formats as conformance
from treesens.frontends import load

MOST_ROWS, MOST_COLUMNS, FEW = 600, 10, 8
TREES = 5
Made = tuple[Any, Callable[[Any], str]]


def tables(folder: Path) -> Iterator[tuple[str, pd.DataFrame, np.ndarray]]:
    """Name, columns and classes of each data set."""
    from sklearn import datasets

    for name in ("breast_cancer", "iris", "wine", "diabetes"):
        found = getattr(datasets, f"load_{name}")(as_frame=True)
        yield name, found.data, np.asarray(found.target)
    for path in sorted(folder.glob("*/train.csv")):
        if path.parent.name not in ("breast_cancer", "diabetes", "iris"):
            frame = pd.read_csv(path).dropna()
            codes = frame.iloc[:, -1].astype("category").cat.codes
            yield path.parent.name, frame.iloc[:, :-1], np.asarray(codes)


def prepared(frame: pd.DataFrame, target: np.ndarray, classes: int = 2) -> tuple[pd.DataFrame, np.ndarray, list[str]]:
    """Some rows and columns, classes, and the columns that are categories (as texts)."""
    random = np.random.default_rng(0)
    kept = np.sort(random.permutation(len(frame))[:MOST_ROWS])
    x = frame.iloc[kept, :MOST_COLUMNS].reset_index(drop=True)
    y = target[kept]
    if classes == 2:
        y = (y > np.median(y)).astype(int) if (y > np.median(y)).any() else (y >= np.median(y)).astype(int)
    else:
        if len(np.unique(y)) == 2:
            many = next(name for name in x.columns if x[name].nunique() > 4 * FEW and x[name].dtype.kind in "if")
            y = np.asarray(x.pop(many))
        y = y if len(np.unique(y)) == classes else np.digitize(y, np.quantile(y, np.arange(1, classes) / classes))
    x.columns = [str(name).replace(" ", "_").replace("(", "").replace(")", "") for name in x.columns]
    names = [name for name in x.columns if x[name].nunique() <= FEW]
    for name in names:
        x[name] = "c" + x[name].astype(str)
    return x, y, names


Fit = Callable[[pd.DataFrame, np.ndarray, list[str]], Any]
"""Columns, classes and the names of those that are categories -> a fitted model, or the path of its file."""


def piped(model: Any, numbers: Any = "passthrough", names: Any = None) -> Fit:
    """A model of scikit-learn behind codes of categories."""
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OrdinalEncoder

    def fit(x: pd.DataFrame, y: np.ndarray, categories: list[str]) -> Any:
        codes = names or OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
        rest = [name for name in x.columns if name not in categories]
        parts = [(codes, categories)] if categories else []
        parts += [(numbers, rest)] if rest else []
        return make_pipeline(make_column_transformer(*parts), model).fit(x, y)

    return fit


def formats_of_classes() -> dict[str, Fit]:
    """Formats of more than two classes."""
    from sklearn import calibration, ensemble

    def folds(model: Any, method: str, *, averaged: bool = False) -> Fit:
        return piped(calibration.CalibratedClassifierCV(model, method=method, cv=2, ensemble=averaged))

    forest = ensemble.RandomForestClassifier(TREES, max_depth=4, random_state=0)
    boosted = ensemble.HistGradientBoostingClassifier(max_iter=TREES, max_depth=3)
    return {
        "calibrated forest": folds(forest, "sigmoid"),
        "calibrated forest, isotonic": folds(forest, "isotonic"),
        "calibrated boosting": folds(boosted, "sigmoid"),
        "calibrated boosting, isotonic": folds(boosted, "isotonic"),
        "calibrated folds, forest": folds(forest, "sigmoid", averaged=True),
        "calibrated folds, boosting, isotonic": folds(boosted, "isotonic", averaged=True),
        **h2o(several=True),
        **spark(several=True),
    }


def formats() -> dict[str, Fit]:
    """Formats of two classes."""
    from sklearn import calibration, ensemble, linear_model, preprocessing
    from sklearn.tree import DecisionTreeClassifier

    def boosted() -> Any:
        return ensemble.GradientBoostingClassifier(n_estimators=TREES, max_depth=3, random_state=0)

    def forest() -> Any:
        return ensemble.RandomForestClassifier(TREES, max_depth=4, random_state=0)

    bins = preprocessing.KBinsDiscretizer(4, encode="onehot-dense", quantile_method="averaged_inverted_cdf")
    hot = preprocessing.OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    means = preprocessing.TargetEncoder(random_state=0, cv=2)
    tree = DecisionTreeClassifier(max_depth=4, random_state=0)
    return {
        "bag": piped(ensemble.BaggingClassifier(boosted(), 3, random_state=0)),
        "soft vote": piped(ensemble.VotingClassifier([("a", boosted()), ("b", forest())], voting="soft")),
        "stack": piped(ensemble.StackingClassifier([("a", forest()), ("b", forest())], cv=2)),
        "calibrated folds": piped(calibration.CalibratedClassifierCV(boosted(), cv=2)),
        "calibrated folds, isotonic": piped(calibration.CalibratedClassifierCV(forest(), cv=2, method="isotonic")),
        "logistic behind bins": piped(linear_model.LogisticRegression(max_iter=500), bins, hot),
        "logistic of numbers": piped(
            linear_model.LogisticRegression(max_iter=500), preprocessing.StandardScaler(), hot
        ),
        "means of the target": piped(forest(), names=means),
        "counted votes": piped(ensemble.VotingClassifier([("a", boosted()), ("b", forest()), ("c", tree)])),
        "CatBoost with categories": _catboost,
        "explainable boosting": _interpret,
        "scorecard": _scorecard,
        **pmml(),
        **h2o(),
        **spark(),
    }


def pmml() -> dict[str, Fit]:
    """PMML of the columns that are numbers, written by nyoka and judged by JPMML-Evaluator. No extra of treesens has them."""
    if any(importlib.util.find_spec(name) is None for name in ("nyoka", "jpmml_evaluator")):
        print("no PMML here: pip install nyoka jpmml-evaluator jpype1, and Java", file=sys.stderr)
        return {}
    import lightgbm
    import nyoka
    import xgboost
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import Pipeline

    def written(model: Any, write: Callable[..., None]) -> Fit:
        def fit(x: pd.DataFrame, y: np.ndarray, categories: list[str]) -> Path:
            numbers = x[[name for name in x.columns if name not in categories]]
            path = Path(tempfile.mkdtemp()) / "model.pmml"
            write(Pipeline([("model", model)]).fit(numbers, y), list(numbers.columns), "target", str(path))
            return path

        return fit

    def voted(pipeline: Pipeline, *names: Any) -> None:
        """The trees of a forest under a majority vote of an even number, in which ties occur."""
        nyoka.skl_to_pmml(pipeline, *names)
        path = Path(names[-1])
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace('"average"', '"majorityVote"'), encoding="utf-8")

    return {
        "PMML votes": written(RandomForestClassifier(4, max_depth=4, random_state=0), voted),
        "PMML of XGBoost": written(xgboost.XGBClassifier(n_estimators=TREES, max_depth=3), nyoka.xgboost_to_pmml),
        "PMML of LightGBM": written(
            lightgbm.LGBMClassifier(n_estimators=TREES, num_leaves=8, verbose=-1), nyoka.lgb_to_pmml
        ),
        "PMML of scikit-learn": written(RandomForestClassifier(TREES, max_depth=4, random_state=0), nyoka.skl_to_pmml),
    }


def h2o(*, several: bool = False) -> dict[str, Fit]:
    """MOJO files, of two classes or of several, judged by h2o-genmodel. A server of H2O trains the models."""
    if any(importlib.util.find_spec(name) is None for name in ("h2o", "jpype")):
        print("no H2O here: pip install h2o==3.46.0.6 jpype1, and Java", file=sys.stderr)
        return {}
    import h2o as library
    from h2o.estimators import H2OGradientBoostingEstimator, H2ORandomForestEstimator

    def saved(kind: Any, **settings: Any) -> Fit:
        def fit(x: pd.DataFrame, y: np.ndarray, categories: list[str]) -> Path:
            library.init(max_mem_size="1G", nthreads=1, verbose=False)
            library.no_progress()
            folder = Path(tempfile.mkdtemp())
            x.assign(target=[f"k{label}" for label in y]).to_csv(folder / "table.csv", index=False)
            types = {name: "enum" if name in categories else "numeric" for name in x.columns}
            frame = library.import_file(str(folder / "table.csv"), col_types=types | {"target": "enum"})
            model = kind(ntrees=3 * TREES, max_depth=5, seed=1, **settings)
            model.train(x=list(x.columns), y="target", training_frame=frame)
            return Path(model.save_mojo(path=str(folder), force=True))

        return fit

    hot = {"categorical_encoding": "OneHotExplicit"}
    found = {
        "H2O boosting": saved(H2OGradientBoostingEstimator),
        "H2O forest": saved(H2ORandomForestEstimator),
        "H2O boosting, one-hot": saved(H2OGradientBoostingEstimator, **hot),
        "H2O forest, one-hot": saved(H2ORandomForestEstimator, **hot),
    }
    if several:
        balanced = {"balance_classes": True}
        return found | {
            "H2O boosting, balanced": saved(H2OGradientBoostingEstimator, **balanced),
            "H2O forest, balanced": saved(H2ORandomForestEstimator, **balanced),
        }
    return found | {"H2O forest of both classes": saved(H2ORandomForestEstimator, binomial_double_trees=True)}


def spark(*, several: bool = False) -> dict[str, Fit]:
    """Saved models and pipelines of Spark, of two classes or of several, judged by Spark itself."""
    if importlib.util.find_spec("pyspark") is None:
        print("no Spark here: pip install pyspark, and Java", file=sys.stderr)
        return {}
    from pyspark.ml import Pipeline, classification, feature
    from pyspark.sql import SparkSession

    def saved(kind: Any, invalid: str, thresholds: list[float] | None = None, **settings: Any) -> Fit:
        def fit(x: pd.DataFrame, y: np.ndarray, categories: list[str]) -> Path:
            session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
            session.sparkContext.setLogLevel("OFF")
            rows = [(*row, float(target)) for row, target in zip(x.astype(object).to_numpy().tolist(), y, strict=True)]
            rows = [tuple(v if isinstance(v, str) else float(v) for v in row) for row in rows]
            frame = session.createDataFrame(rows, [*x.columns, "target"])
            codes = [f"{name} code" for name in categories]
            texts = feature.StringIndexer(inputCols=categories, outputCols=codes, handleInvalid=invalid)
            inputs = [f"{name} code" if name in categories else name for name in x.columns]
            assembled = feature.VectorAssembler(inputCols=inputs, outputCol="features", handleInvalid=invalid)
            model = kind(maxDepth=5, seed=1, labelCol="target", **settings)
            if thresholds is not None:
                model.setThresholds(thresholds)
            pipeline = Pipeline(stages=[*([texts] if categories else []), assembled, model])
            folder = Path(tempfile.mkdtemp())
            pipeline.fit(frame).save((folder / "model").as_uri())
            return folder / "model"

        return fit

    if several:
        three = [0.2, 0.5, 0.3]
        return {
            "Spark tree": saved(classification.DecisionTreeClassifier, "keep"),
            "Spark forest": saved(classification.RandomForestClassifier, "keep", numTrees=3 * TREES),
            "Spark tree, thresholds": saved(classification.DecisionTreeClassifier, "error", thresholds=three),
            "Spark forest, thresholds": saved(
                classification.RandomForestClassifier, "keep", numTrees=3 * TREES, thresholds=three
            ),
        }
    return {
        "Spark tree": saved(classification.DecisionTreeClassifier, "keep"),
        "Spark forest": saved(classification.RandomForestClassifier, "keep", numTrees=3 * TREES),
        "Spark boosting": saved(classification.GBTClassifier, "error", maxIter=3 * TREES),
        "Spark boosting, thresholds": saved(
            classification.GBTClassifier, "keep", maxIter=3 * TREES, thresholds=[0.3, 0.7]
        ),
    }


def _catboost(x: pd.DataFrame, y: np.ndarray, names: list[str]) -> Any:
    import catboost

    model = catboost.CatBoostClassifier(
        iterations=3 * TREES, depth=4, verbose=False, allow_writing_files=False, thread_count=1, random_seed=0
    )
    pool = catboost.Pool(x, y, cat_features=names)
    path = Path(tempfile.mkdtemp()) / "model.json"
    model.fit(pool).save_model(str(path), format="json", pool=pool)
    return path


def _interpret(x: pd.DataFrame, y: np.ndarray, names: list[str]) -> Any:
    from interpret.glassbox import ExplainableBoostingClassifier

    kinds = ["nominal" if name in names else "continuous" for name in x.columns]
    model = ExplainableBoostingClassifier(
        list(x.columns), kinds, interactions=2, max_bins=16, outer_bags=1, max_rounds=20, n_jobs=1, random_state=0
    )
    return model.fit(x, y)


def _scorecard(x: pd.DataFrame, y: np.ndarray, names: list[str]) -> Any:
    """Points by the share of the second class in every bin."""
    lines = ["feature,bin,points", "(base),,10.5"]
    for name in x.columns:
        if name in names:
            for label, share in pd.Series(y).groupby(x[name]).mean().items():
                lines.append(f"\"{name}\",['{label}'],{share:.3f}")
            lines.append(f'"{name}",other,0.25')
        else:
            cuts = np.unique(np.quantile(x[name], [0.25, 0.5, 0.75]))
            ends = ["-inf", *map(repr, cuts.tolist()), "inf"]
            for i, (low, high) in enumerate(pairwise(ends)):
                lines.append(f'"{name}","{"[" if i else "("}{low}, {high})",{(i * 7 % 5) / 3:.4f}')
        lines.append(f'"{name}",Missing,-0.125')
    path = Path(tempfile.mkdtemp()) / "card.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def differences(model: Any, rows: int) -> str:
    """What the kit finds: the number of inputs without a difference, or the first one; or why the model is refused."""
    try:
        loaded = load(model)
        report = conformance.check(in_java(loaded), rows=rows)
    except ModelError as error:
        return f"refused: {error.message}"
    if not report.ok:
        return f"DIFFERENT: {report.mismatches[0]}"
    return f"{report.rows:,}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER / "data")
    parser.add_argument(
        "--rows", type=int, default=200, help="Random rows of the kit, besides those around thresholds."
    )
    parser.add_argument("--formats", default="", help="Formats whose names hold this.")
    parser.add_argument("--most", type=int, default=8, help="Data sets.")
    parser.add_argument("--classes", type=int, choices=(2, 3), default=2, help="3: the formats of several classes.")
    chosen = parser.parse_args()
    made = formats() if chosen.classes == 2 else formats_of_classes()
    wanted = {name: make for name, make in made.items() if chosen.formats in name}
    print("| data set | SHA-256 | " + " | ".join(wanted) + " |\n|" + " --- |" * (len(wanted) + 2))
    for _, (name, frame, target) in zip(range(chosen.most), tables(chosen.folder), strict=False):
        digest = hashlib.sha256(pd.util.hash_pandas_object(frame).to_numpy().tobytes()).hexdigest()[:12]
        x, y, categories = prepared(frame, target, chosen.classes)
        cells = []
        for make in wanted.values():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # few rows, few rounds
                cells.append(differences(make(x, y, categories), chosen.rows))
        print(f"| {name} | {digest} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
