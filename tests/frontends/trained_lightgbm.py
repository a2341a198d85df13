"""Small models that the tests train with lightgbm itself, one per feature of the format."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.frontends.trained import N, frame, target

lightgbm = pytest.importorskip("lightgbm", reason="the tests compare with the library; pip install treesens[lightgbm]")


def numeric() -> pd.DataFrame:
    """Columns with zeros, values inside and beside the zero band, and missing values."""
    data = frame()[["real", "coarse", "gaps", "whole"]].copy()
    data["zeros"] = np.random.default_rng(9).choice([0.0, -1e-36, 1e-36, 1e-34, -1e-34, 1.0, -1.0], N)
    return data


def train(parameters: dict[str, Any], label: np.ndarray, data: pd.DataFrame, rounds: int = 10, **extra: Any) -> Any:
    options = {"verbosity": -1, "num_threads": 1, "num_leaves": 9, "min_data_in_leaf": 5, "seed": 1}
    return lightgbm.train({**options, **parameters}, lightgbm.Dataset(data, label=label, **extra), rounds)


def _binary(**parameters: Any) -> Callable[[], Any]:
    return lambda: train({"objective": "binary", **parameters}, (target() > 1).astype(int), numeric())


def _regression(objective: str, **parameters: Any) -> Callable[[], Any]:
    label = np.exp(np.clip(target(), -3, 2))
    return lambda: train({"objective": objective, **parameters}, label, numeric())


def _many(objective: str, **parameters: Any) -> Callable[[], Any]:
    label = np.digitize(target(), [-0.5, 0.5, 1.5])
    return lambda: train({"objective": objective, "num_class": 4, **parameters}, label, numeric(), 5)


def _categories(**parameters: Any) -> Callable[[], Any]:
    options = {"objective": "binary", "min_data_per_group": 5, "cat_smooth": 1, **parameters}
    return lambda: train(options, (target() > 1).astype(int), frame(), 15)


def _numbered() -> Any:
    data = numeric()
    data["whole"] = data.whole.where(data.whole % 7 > 0)
    options = {"objective": "regression", "min_data_per_group": 5}
    return train(options, target() + (data.whole % 3 == 0), data, categorical_feature=["whole"])


def _wrapper(kind: str, **options: Any) -> Any:
    label = target() if kind.endswith("Regressor") else np.array(["low", "mid", "top"])[np.digitize(target(), [0, 1.5])]
    made = getattr(lightgbm, kind)(n_estimators=8, n_jobs=1, num_leaves=7, verbosity=-1, **options)
    return made.fit(frame(), label)


def _early() -> Any:
    made = lightgbm.LGBMClassifier(n_estimators=60, learning_rate=1.0, n_jobs=1, verbosity=-1)
    noise = np.random.default_rng(5).integers(0, 2, 100)
    stop = lightgbm.early_stopping(3, verbose=False)
    return made.fit(numeric(), target() > 1, eval_set=[(numeric()[:100], noise)], callbacks=[stop])


MODELS: dict[str, Callable[[], Any]] = {
    "binary": _binary(),
    "binary, zero as missing": _binary(zero_as_missing=True),
    "binary, no missing": _binary(use_missing=False),
    "binary, scaled": _binary(sigmoid=2.0),
    "binary, no splits": _binary(min_data_in_leaf=100_000),
    "binary, deep": _binary(num_leaves=60, min_data_in_leaf=1, max_depth=-1),
    "dart": _binary(boosting="dart", drop_rate=0.5),
    "goss": _binary(data_sample_strategy="goss"),
    "random forest": _binary(boosting="rf", bagging_freq=1, bagging_fraction=0.6, feature_fraction=0.7),
    "random forest, many classes": _many("multiclass", boosting="rf", bagging_freq=1, bagging_fraction=0.6),
    "extra trees": _binary(extra_trees=True),
    "softmax": _many("multiclass"),
    "one against all": _many("multiclassova"),
    "regression": _regression("regression"),
    "regression, zero as missing": _regression("regression", zero_as_missing=True),
    "absolute error": _regression("regression_l1"),
    "huber": _regression("huber"),
    "quantile": _regression("quantile", alpha=0.3),
    "poisson": _regression("poisson"),
    "tweedie": _regression("tweedie"),
    "cross entropy": lambda: train({"objective": "cross_entropy"}, 1 / (1 + np.exp(-target())), numeric()),
    "ranking": lambda: train(
        {"objective": "lambdarank"}, np.clip(np.round(target()), 0, 3), numeric(), group=[N // 4] * 4
    ),
    "categories": _categories(),
    "categories, one-hot": _categories(max_cat_to_onehot=100),
    "categories, no missing": _categories(use_missing=False),
    "categories, zero as missing": _categories(zero_as_missing=True),
    "numbered categories": _numbered,
    "classifier": lambda: _wrapper("LGBMClassifier"),
    "regressor": lambda: _wrapper("LGBMRegressor"),
    "early stopping": _early,
}
