"""Small CatBoost models that the tests train, one per feature of the format."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.frontends.trained_sklearn import labels, numeric

catboost = pytest.importorskip("catboost", reason="the tests compare with the library; pip install treesens[catboost]")


def fitted(kind: str, label: str, *, missing: bool = True, **options: Any) -> Any:
    settings = {"iterations": 9, "depth": 4, "thread_count": 1, "random_seed": 1, "allow_writing_files": False}
    made = getattr(catboost, kind)(**{**settings, **options}, verbose=0)
    return made.fit(numeric(missing).drop(columns="tiny"), labels(label))


MODELS: dict[str, Callable[[], Any]] = {
    "two classes": lambda: fitted("CatBoostClassifier", "two"),
    "two classes, NaN above": lambda: fitted("CatBoostClassifier", "two", nan_mode="Max"),
    "two classes, no NaN": lambda: fitted("CatBoostClassifier", "two", missing=False),
    "four classes": lambda: fitted("CatBoostClassifier", "four"),
    "one against all": lambda: fitted("CatBoostClassifier", "four", loss_function="MultiClassOneVsAll"),
    "value": lambda: fitted("CatBoostRegressor", "value", iterations=30),
    "values": lambda: fitted("CatBoostRegressor", "values", loss_function="MultiRMSE"),
    "quantile": lambda: fitted("CatBoostRegressor", "value", loss_function="Quantile:alpha=0.3"),
    "poisson": lambda: fitted("CatBoostRegressor", "positive", loss_function="Poisson"),
    "shallow": lambda: fitted("CatBoostRegressor", "value", depth=1, iterations=2),
    "leaf by leaf": lambda: fitted("CatBoostClassifier", "two", grow_policy="Lossguide", max_leaves=7),
    "level by level": lambda: fitted("CatBoostRegressor", "value", grow_policy="Depthwise"),
    "four classes, leaf by leaf": lambda: fitted("CatBoostClassifier", "four", grow_policy="Lossguide"),
}


def with_categories() -> Any:
    data = numeric().assign(town=np.where(np.arange(400) % 3 == 0, "x", "y"))
    made = catboost.CatBoostClassifier(iterations=3, verbose=0, allow_writing_files=False, thread_count=1)
    return made.fit(data, labels("two"), cat_features=["town"])
