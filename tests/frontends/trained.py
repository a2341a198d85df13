"""Small models that the tests train with xgboost itself, one per feature of the format."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.frontends.versions import since

xgboost = pytest.importorskip("xgboost", reason="the tests compare with the library; pip install treesens[xgboost]")

N = 400


def frame(seed: int = 0) -> pd.DataFrame:
    """Columns with ties, missing values, whole numbers, zeros of both signs and categories."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "real": rng.normal(size=N),
            "coarse": rng.integers(-3, 4, N) / 4 * np.where(rng.random(N) < 0.5, 1, -1),
            "gaps": np.where(rng.random(N) < 0.3, np.nan, rng.exponential(size=N)),
            "whole": rng.integers(0, 50, N),
            "tiny": rng.choice([0.0, -0.0, 1e-40, -1e-40, 1e-45, 1e-38], N),
            "colour": pd.Categorical.from_codes(rng.integers(-1, 7, N), ["red", "green", "blue", "w", "x", "y", "z"]),
            "town": pd.Categorical.from_codes(rng.integers(0, 2, N), ["Köln", "Bonn"]),
            "code": pd.Categorical(rng.integers(10, 40, N)),
        }
    )


def target(seed: int = 0) -> np.ndarray:
    data, rng = frame(seed), np.random.default_rng(seed + 1)
    score = data.real + data.coarse * (data.colour == "blue") + data.gaps.fillna(-1) + (data.tiny > 0)
    return np.asarray(score + data.code.cat.codes.isin([3, 5, 8, 21]) + rng.normal(0, 0.3, N))


def numeric() -> pd.DataFrame:
    return frame()[["real", "coarse", "gaps", "whole", "tiny"]]


def train(parameters: dict[str, Any], label: np.ndarray, data: pd.DataFrame, rounds: int = 12, **extra: Any) -> Any:
    matrix = xgboost.DMatrix(data, label=label, enable_categorical=True, **extra)
    return xgboost.train({"max_depth": 4, "nthread": 1, "seed": 1, **parameters}, matrix, rounds)


def _ranking(objective: str) -> Any:
    label = np.clip(np.round(target()), 0, 3)
    return train({"objective": objective}, label, numeric(), group=[N // 4] * 4)


def _aft() -> Any:
    low = np.exp(np.clip(target(), -2, 2))
    matrix = xgboost.DMatrix(numeric(), label_lower_bound=low, label_upper_bound=low * 2)
    return xgboost.train({"objective": "survival:aft", "max_depth": 3, "nthread": 1}, matrix, 8)


def _early() -> Any:
    label = (target() > 1).astype(int)
    wrapper = xgboost.XGBClassifier(n_estimators=40, early_stopping_rounds=3, learning_rate=1.0, n_jobs=1)
    noise = np.random.default_rng(5).integers(0, 2, 100)
    wrapper.fit(numeric(), label, eval_set=[(numeric()[:100], noise)], verbose=False)
    return wrapper


def _wrapper(kind: str, **options: Any) -> Any:
    label = target() if kind.endswith("Regressor") else np.digitize(target(), [0, 1.5])
    return getattr(xgboost, kind)(n_estimators=8, n_jobs=1, max_depth=3, **options).fit(numeric(), label)


def _logistic(**parameters: Any) -> Callable[[], Any]:
    return lambda: train({"objective": "binary:logistic", **parameters}, (target() > 1).astype(int), numeric())


def _regression(objective: str, **parameters: Any) -> Callable[[], Any]:
    def make() -> Any:
        return train({"objective": objective, **parameters}, np.exp(np.clip(target(), -3, 2)), numeric())

    return make


def _many(objective: str, **parameters: Any) -> Callable[[], Any]:
    def make() -> Any:
        label = np.digitize(target(), [-0.5, 0.5, 1.5])
        return train({"objective": objective, "num_class": 4, **parameters}, label, numeric())

    return make


def _categories(**parameters: Any) -> Callable[[], Any]:
    return lambda: train({"objective": "binary:logistic", **parameters}, (target() > 1).astype(int), frame(), 20)


MODELS: dict[str, Callable[[], Any]] = {
    "logistic": _logistic(),
    "logistic, base given": _logistic(base_score=0.123),
    "logistic, lossguide": _logistic(grow_policy="lossguide", max_leaves=9, max_depth=0),
    "logistic, exact": _logistic(tree_method="exact", gamma=0.4),
    "logistic, deep": _logistic(max_depth=12, min_child_weight=0),
    "logistic, no splits": _logistic(gamma=1e9),
    "logistic, forest": _logistic(num_parallel_tree=5, subsample=0.6, colsample_bynode=0.6),
    "hinge": _logistic(objective="binary:hinge"),
    "logitraw": _logistic(objective="binary:logitraw"),
    "dart": _logistic(booster="dart", rate_drop=0.4, one_drop=1),
    "dart, many classes": _many("multi:softprob", booster="dart", rate_drop=0.4),
    "softprob": _many("multi:softprob"),
    "softmax, forest": _many("multi:softmax", num_parallel_tree=3, subsample=0.5),
    "squared error": _regression("reg:squarederror"),
    "absolute error": _regression("reg:absoluteerror"),
    "pseudo-Huber": _regression("reg:pseudohubererror"),
    "squared log error": _regression("reg:squaredlogerror"),
    "one quantile": _regression("reg:quantileerror", quantile_alpha=0.3),
    "three quantiles": _regression("reg:quantileerror", quantile_alpha=[0.1, 0.5, 0.9]),
    "poisson": _regression("count:poisson"),
    "gamma": _regression("reg:gamma"),
    "tweedie": _regression("reg:tweedie"),
    "cox": _regression("survival:cox"),
    "aft": _aft,
    "pairwise ranking": lambda: _ranking("rank:pairwise"),
    "ndcg ranking": lambda: _ranking("rank:ndcg"),
    "two targets": lambda: train({}, np.stack([target(), target(3)], axis=1), numeric()),
    "vector leaves": lambda: train(
        {"multi_strategy": "multi_output_tree", "tree_method": "hist"},
        np.stack([target(), target(3)], axis=1),
        numeric(),
    ),
    "categories, one-hot": _categories(max_cat_to_onehot=100),
    "categories, partition": _categories(max_cat_to_onehot=1),
    "categories, both": _categories(max_cat_to_onehot=8),
    "early stopping": _early,
    "classifier": lambda: _wrapper("XGBClassifier"),
    "regressor": lambda: _wrapper("XGBRegressor"),
    "random forest classifier": lambda: _wrapper("XGBRFClassifier"),
}

_FIRST = {"logitraw": "3.1", "vector leaves": "3.2"}
NAMES = [pytest.param(name, marks=since("xgboost", _FIRST[name])) if name in _FIRST else name for name in MODELS]
"""Of `MODELS`; what an earlier XGBoost writes of two of them is refused."""
