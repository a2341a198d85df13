"""Which models are read: every library with every task and the preprocessing that people put before it.

    python -m benchmarks.models_read

Trains small models of some 340 recipes on a table of numbers and categories. It reads each, and compares it with its own
library on thresholds, one float to either side, missing values and unseen categories (`treesens info --check`). It prints the
share that is read without a difference, and why others are refused. `--every N` takes each N-th recipe. `--java` takes the
recipes of H2O and Spark instead, which are trained, saved and judged in Java (`models_in_java.py`).
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from tests.extensions.formats.java import in_java

from benchmarks import models_in_java
from treesens.errors import ModelError
from treesens.extensions.conformance import formats as conformance
from treesens.frontends import load

TREES = 6
ROWS = 240
KIT_ROWS = 40
TASKS = ("two classes", "three classes", "value")
NUMBERS, CATEGORIES = ["age", "income", "debt"], ["region", "job"]


def table() -> tuple[pd.DataFrame, dict[str, np.ndarray]]:
    """Rows with two categories, and a target for every task."""
    random = np.random.default_rng(1)
    x = pd.DataFrame({"age": random.integers(18, 80, ROWS).astype(float), "income": random.gamma(2.0, 20.0, ROWS)})
    x["debt"] = random.normal(10, 4, ROWS).round(2)
    x["region"], x["job"] = random.choice(list("NESW"), ROWS), random.choice(["a", "b", "c"], ROWS)
    score = x.income / 40 - x.debt / 10 + (x.region == "N") + random.normal(0, 0.4, ROWS)
    targets = {TASKS[0]: (score > 0.5).astype(int), TASKS[1]: np.digitize(score, [0, 1]), TASKS[2]: score}
    return x, {task: np.asarray(y) for task, y in targets.items()}


def models(task: str) -> Iterator[tuple[str, str, Callable[[], Any]]]:
    """Library, name and maker of each model that a task can have."""
    import catboost
    import lightgbm
    import xgboost
    from sklearn import calibration, ensemble, linear_model, tree

    value = task == "value"
    end = "Regressor" if value else "Classifier"

    def of(module: Any, name: str, **options: Any) -> Any:
        return getattr(module, f"{name}{end}")(**options)

    few = {"n_estimators": TREES, "max_depth": 3}
    forest: Callable[[], Any] = lambda: of(ensemble, "RandomForest", **few)  # noqa: E731
    boosted: Callable[[], Any] = lambda: of(ensemble, "GradientBoosting", **few)  # noqa: E731
    xgb: Callable[[], Any] = lambda **more: of(xgboost, "XGB", **few, **more)  # noqa: E731
    light: Callable[[], Any] = lambda **more: of(  # noqa: E731
        lightgbm, "LGBM", n_estimators=TREES, num_leaves=6, n_jobs=1, verbosity=-1, **more
    )
    yield "xgboost", "gbtree", xgb
    yield "xgboost", "dart", lambda: xgb(booster="dart", rate_drop=0.3)
    yield "lightgbm", "gbdt", light
    yield "lightgbm", "dart", lambda: light(boosting_type="dart")
    cat = {"iterations": TREES, "depth": 3, "verbose": False, "allow_writing_files": False}
    yield "catboost", "symmetric trees", lambda: of(catboost, "CatBoost", **cat)
    yield "scikit-learn", "decision tree", lambda: of(tree, "DecisionTree", max_depth=4)
    yield "scikit-learn", "random forest", forest
    yield "scikit-learn", "extra trees", lambda: of(ensemble, "ExtraTrees", **few)
    yield "scikit-learn", "gradient boosting", boosted
    yield "scikit-learn", "histogram boosting", lambda: of(ensemble, "HistGradientBoosting", max_iter=TREES)
    yield "scikit-learn", "bagging", lambda: of(ensemble, "Bagging", n_estimators=TREES)
    three = lambda: [("a", forest()), ("b", boosted()), ("c", xgb())]  # noqa: E731
    soft = {} if value else {"voting": "soft"}
    yield "scikit-learn", "vote of three libraries", lambda: of(ensemble, "Voting", estimators=three(), **soft)
    last = linear_model.RidgeCV() if value else linear_model.LogisticRegression()
    two = lambda: [("a", forest()), ("b", of(ensemble, "ExtraTrees", **few))]  # noqa: E731
    yield "scikit-learn", "stack of forests", lambda: of(ensemble, "Stacking", estimators=two(), final_estimator=last)
    if not value:
        yield "scikit-learn", "AdaBoost", lambda: ensemble.AdaBoostClassifier(n_estimators=TREES)
    if task == TASKS[0]:
        for name, inner in (("forest", forest), ("XGBoost", xgb), ("LightGBM", light)):
            for method in ("sigmoid", "isotonic"):
                yield (
                    "scikit-learn",
                    f"{name}, calibrated over folds ({method})",
                    lambda inner=inner, method=method: calibration.CalibratedClassifierCV(inner(), method=method),
                )
    if task == TASKS[1]:
        hist = lambda: of(ensemble, "HistGradientBoosting", max_iter=TREES)  # noqa: E731
        for name, inner in (("forest", forest), ("histogram boosting", hist), ("LightGBM", light)):
            for method in ("sigmoid", "isotonic"):
                yield (
                    "scikit-learn",
                    f"{name}, calibrated by class ({method})",
                    lambda inner=inner, method=method: calibration.CalibratedClassifierCV(
                        inner(), method=method, ensemble=False
                    ),
                )
        yield "scikit-learn", "forest, calibrated over folds", lambda: calibration.CalibratedClassifierCV(forest())
    if task != TASKS[1]:
        yield (
            "scikit-learn",
            "linear model",
            lambda: linear_model.Ridge() if value else linear_model.LogisticRegression(),
        )


def fronts() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Name and maker of each preprocessing."""
    from sklearn import compose, impute, pipeline, preprocessing

    def columns(numbers: Any, categories: Any) -> Any:
        return compose.ColumnTransformer([("numbers", numbers, NUMBERS), ("categories", categories, CATEGORIES)])

    hot: Callable[[], Any] = lambda: preprocessing.OneHotEncoder(handle_unknown="ignore")  # noqa: E731
    codes = {"handle_unknown": "use_encoded_value", "unknown_value": -1}
    scaler = preprocessing.StandardScaler
    yield "scaled, one-hot", lambda: columns(scaler(), hot())
    yield (
        "filled and scaled, ordinal",
        lambda: columns(
            pipeline.make_pipeline(impute.SimpleImputer(), scaler()), preprocessing.OrdinalEncoder(**codes)
        ),
    )
    yield "plain, target means", lambda: columns("passthrough", preprocessing.TargetEncoder(random_state=1))
    yield "bins, one-hot", lambda: columns(preprocessing.KBinsDiscretizer(4, encode="ordinal"), hot())
    yield "numbers alone", lambda: compose.ColumnTransformer([("numbers", "passthrough", NUMBERS)])


def with_own_categories(task: str, x: pd.DataFrame, y: np.ndarray) -> Iterator[tuple[str, str, Callable[[Path], Any]]]:
    """Library, name and maker of each model that takes the table as it is."""
    import catboost
    import lightgbm
    import xgboost
    from interpret import glassbox

    end = "Regressor" if task == "value" else "Classifier"
    typed = x.astype(dict.fromkeys(CATEGORIES, "category"))
    few = {"n_estimators": TREES, "max_depth": 3}
    light = {"n_estimators": TREES, "num_leaves": 6, "n_jobs": 1, "verbosity": -1}
    yield (
        "xgboost",
        "own categories",
        lambda _: getattr(xgboost, f"XGB{end}")(**few, enable_categorical=True).fit(typed, y),
    )
    yield "lightgbm", "own categories", lambda _: getattr(lightgbm, f"LGBM{end}")(**light).fit(typed, y)

    def cat(folder: Path) -> Path:
        settings = {"iterations": TREES, "depth": 3, "verbose": False, "allow_writing_files": False}
        pool, path = catboost.Pool(x, y, cat_features=CATEGORIES), folder / "model.json"
        getattr(catboost, f"CatBoost{end}")(**settings).fit(pool).save_model(str(path), format="json", pool=pool)
        return path

    yield "catboost", "own categories", cat
    kinds = ["nominal" if name in CATEGORIES else "continuous" for name in x.columns]
    settings = {"interactions": 0 if task == TASKS[1] else 2, "outer_bags": 1, "max_rounds": 20, "n_jobs": 1}
    boosting = getattr(glassbox, f"ExplainableBoosting{end}")
    yield "interpret", "explainable boosting", lambda _: boosting(list(x.columns), kinds, **settings).fit(x, y)


def converted(task: str, x: pd.DataFrame, y: np.ndarray) -> Iterator[tuple[str, str, Callable[[Path], Any]]]:
    """The same for models of scikit-learn, alone and in pipelines of numbers, as ONNX files."""
    import skl2onnx
    from sklearn import ensemble, impute, preprocessing, tree
    from sklearn.pipeline import make_pipeline

    end = "Regressor" if task == "value" else "Classifier"
    numbers = x[NUMBERS].to_numpy(np.float32)
    trees = {"n_estimators": TREES, "max_depth": 3}
    made = {
        "decision tree": lambda: getattr(tree, f"DecisionTree{end}")(max_depth=4),
        "random forest": lambda: getattr(ensemble, f"RandomForest{end}")(**trees),
        "gradient boosting": lambda: getattr(ensemble, f"GradientBoosting{end}")(**trees),
        "histogram boosting": lambda: getattr(ensemble, f"HistGradientBoosting{end}")(max_iter=TREES),
    }
    before = {
        "alone": lambda: (),
        "scaled": lambda: (preprocessing.StandardScaler(),),
        "filled, min-max": lambda: (impute.SimpleImputer(), preprocessing.MinMaxScaler()),
    }
    for name, model in made.items():
        for words, front in before.items():

            def convert(folder: Path, model: Any = model, front: Any = front) -> Path:
                fitted = make_pipeline(*front(), model()).fit(numbers, y)
                options = None if task == "value" else {id(fitted): {"zipmap": False}}
                path = folder / "model.onnx"
                path.write_bytes(skl2onnx.to_onnx(fitted, numbers[:1], options=options).SerializeToString())
                return path

            yield "onnx", f"{name}, {words}", convert


def outcome(library: str, made: Any) -> str:
    """Nothing if the model, or its file, is read without a difference; otherwise why not."""
    try:
        report = conformance.check(in_java(load(made)), rows=KIT_ROWS)
    except ModelError as error:
        return f"refused: {error.message}"
    return "" if report.ok else f"differs: {library}, {str(report).splitlines()[0]}"


def in_python(x: pd.DataFrame, targets: dict[str, np.ndarray]) -> Iterator[tuple[str, str, Callable[[Path], Any]]]:
    """Library, name and maker of each model behind each preprocessing, and of those that need none."""
    from sklearn.pipeline import make_pipeline

    for task in TASKS:
        for make in (with_own_categories, converted):
            yield from ((library, f"{name}, {task}", fit) for library, name, fit in make(task, x, targets[task]))
        for library, name, make in models(task):
            for before, front in fronts():
                yield (
                    library,
                    f"{name}, {task}, {before}",
                    lambda _, front=front, make=make, y=targets[task]: make_pipeline(front(), make()).fit(x, y),
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=1, help="take each N-th recipe")
    parser.add_argument("--java", action="store_true", help="the recipes of H2O and Spark, which need Java")
    given = parser.parse_args()
    x, targets = table()
    recipes = [*models_in_java.recipes(x, targets, NUMBERS, CATEGORIES)] if given.java else [*in_python(x, targets)]
    tried, kept, why = Counter[str](), Counter[str](), Counter[str]()
    for library, name, make in recipes[:: given.every]:
        with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
            warnings.simplefilter("ignore")
            found = outcome(library, make(Path(folder)))
        tried[library] += 1
        kept[library] += not found
        if found:
            why[found] += 1
            print(f"{library}: {name}: {found}", flush=True)
    print("\n| library | recipes | read without a difference |\n| --- | ---: | ---: |")
    for library, count in tried.items():
        print(f"| {library} | {count} | {kept[library]} |")
    total = sum(tried.values())
    print(f"| all | {total} | {sum(kept.values())} ({sum(kept.values()) / total:.1%}) |\n")
    for reason, count in why.most_common():
        print(f"- {count}: {reason}")


if __name__ == "__main__":
    main()
