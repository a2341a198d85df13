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


def train(kind: str, folder: Path, seed: int) -> tuple[Path, Any, Any]:
    """A file of a model, its rows, and their labels."""
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
