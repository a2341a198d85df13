"""Tiny models of several libraries with few values per feature, and their whole domain."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

NAMES = ("f", "a", "b", "c")
VALUES = (range(3), range(4), range(3), range(3))
GRID = np.array(list(product(*VALUES)), dtype=np.float64)
"""The whole domain: every input that a tree can tell apart."""


def rows(seed: int, count: int = 300) -> tuple[Any, Any]:
    """Rows that depend on the first feature, and labels of two classes."""
    random = np.random.default_rng(seed)
    x = GRID[random.integers(len(GRID), size=count)]
    score = x[:, 0] - 1 + 0.8 * (x[:, 1] - 1.5) + 0.5 * x[:, 0] * (x[:, 2] - 1) + random.normal(0, 1, count)
    return x, score


def estimator(kind: str, seed: int) -> Any:
    """An estimator of scikit-learn that is not fitted yet."""
    from sklearn import ensemble
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    _, name, goal, _ = kind.split("-")
    goal = "Regressor" if goal == "value" else "Classifier"
    boosters = {"boosting": ("GradientBoosting", 3), "histogram": ("HistGradientBoosting", 3)}
    small: dict[str, Any] = {"random_state": seed, "max_depth": 3}
    if name == "piped":
        return make_pipeline(StandardScaler(), ensemble.GradientBoostingClassifier(n_estimators=6, **small))
    if name in boosters:
        kind_name = boosters[name][0]
        rounds = {"max_iter" if name == "histogram" else "n_estimators": 6}
        return getattr(ensemble, f"{kind_name}{goal}")(**rounds, **small)
    kind_name = {"forest": "RandomForest", "extra": "ExtraTrees"}[name]
    return getattr(ensemble, f"{kind_name}{goal}")(n_estimators=7, **small)


def framed(x: Any) -> Any:
    """Rows with the names of their columns, as estimators keep them."""
    import pandas

    return pandas.DataFrame(x, columns=list(NAMES))


def train_sklearn(kind: str, folder: Path, seed: int) -> tuple[Path, Any, Any]:
    """As `train`; the kind is `sklearn-ESTIMATOR-GOAL-STORE`."""
    import gzip
    import pickle

    import joblib
    import skops.io

    x, score = rows(seed)
    _, _, goal, store = kind.split("-")
    y = {"value": score, "classes": np.digitize(score, [-0.7, 0.7])}.get(goal, (score > 0).astype(np.int64))
    model = estimator(kind, seed).fit(framed(x), y)
    path = folder / f"m.{store}"
    if store == "skops":
        skops.io.dump(model, path)
    elif store == "pkl":
        path.write_bytes(pickle.dumps(model, protocol=4))
    elif store == "gz":
        path.write_bytes(gzip.compress(pickle.dumps(model)))
    else:
        joblib.dump(model, path, compress={"joblib": 0, "z": 3, "xz": ("xz", 3)}[store])
    return path, x, np.asarray(y, dtype=np.float64)


def opened(path: Path) -> Any:
    """The estimator in a file, by the library that made the file."""
    import gzip
    import pickle

    import joblib
    import skops.io

    if path.suffix == ".skops":
        return skops.io.load(path, trusted=skops.io.get_untrusted_types(file=path))
    if path.suffix in (".pkl", ".gz"):
        data = path.read_bytes()
        return pickle.loads(gzip.decompress(data) if path.suffix == ".gz" else data)
    return joblib.load(path)


def train(kind: str, folder: Path, seed: int) -> tuple[Path, Any, Any]:
    """A file of a model, its rows, and their labels."""
    if kind.startswith("sklearn"):
        return train_sklearn(kind, folder, seed)
    x, score = rows(seed)
    label = (score > 0).astype(np.float64)
    small = {"seed": seed, "max_depth": 3}
    if kind.startswith("lightgbm"):
        import lightgbm

        goal = {"lightgbm-value": "regression", "lightgbm-classes": "multiclass"}.get(kind, "binary")
        y = score if kind.endswith("value") else label
        if kind == "lightgbm-classes":
            y, small = np.digitize(score, [-0.7, 0.7]).astype(np.float64), {**small, "num_class": 3}
        named = ["f", "a"] if kind == "lightgbm-categories" else "auto"
        options = {"objective": goal, "verbose": -1, "min_data_in_leaf": 5, "num_threads": 1, **small}
        booster = lightgbm.train(
            options, lightgbm.Dataset(x, y, feature_name=list(NAMES), categorical_feature=named), 6
        )
        path = folder / "m.txt"
        booster.save_model(str(path))
        return path, x, y
    import xgboost

    y, options = label, {"objective": "binary:logistic", "nthread": 1, **small}
    if kind == "xgboost-classes":
        y = np.digitize(score, [-0.7, 0.7]).astype(np.float64)
        options |= {"objective": "multi:softprob", "num_class": 3}
    if kind == "xgboost-value":
        y = score
        options |= {"objective": "reg:squarederror"}
    if kind == "xgboost-dart":
        options |= {"booster": "dart", "rate_drop": 0.3}
    if kind == "xgboost-categories":
        options |= {"max_cat_to_onehot": 1}
    types = ["c", "c", "q", "q"] if kind == "xgboost-categories" else None
    matrix = xgboost.DMatrix(x, y, feature_names=list(NAMES), feature_types=types, enable_categorical=True)
    booster = xgboost.train(options, matrix, 6)
    path = folder / ("m.ubj" if kind == "xgboost-ubj" else "m.json")
    booster.save_model(path)
    return path, x, y


def predict(path: Path, x: Any) -> Any:
    """What the stock library predicts from a file: probabilities, or values."""
    if path.suffix == ".txt":
        import lightgbm

        return np.asarray(lightgbm.Booster(model_file=str(path)).predict(x))
    if path.suffix not in (".json", ".ubj"):
        model, x = opened(path), framed(x)
        if not hasattr(model, "classes_"):
            return model.predict(x)
        found = model.predict_proba(x)
        return found[:, 1] if found.shape[1] == 2 else found
    import xgboost

    booster = xgboost.Booster(model_file=path)
    types = booster.feature_types
    return booster.predict(xgboost.DMatrix(x, feature_names=list(NAMES), feature_types=types, enable_categorical=True))


def write_table(path: Path, x: Any, y: Any) -> Path:
    """Rows and labels as CSV."""
    lines = [
        ",".join([*NAMES, "y"]),
        *(",".join(map(repr, row)) for row in np.column_stack([x, y]).tolist()),
    ]
    path.write_text("\n".join(lines) + "\n")
    return path
