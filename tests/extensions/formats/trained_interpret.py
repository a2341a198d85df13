"""Small explainable boosting machines that the tests train, one per feature of the format."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from tests.frontends.trained_sklearn import labels, numeric

glassbox = pytest.importorskip(
    "interpret.glassbox", reason="the tests compare with the library; pip install treesens[interpret]"
)


def fitted(kind: str, label: str, *, missing: bool = True, categories: bool = True, **options: Any) -> Any:
    settings = {"interactions": 2, "outer_bags": 2, "max_rounds": 40, "n_jobs": 1, "random_state": 1, "max_bins": 32}
    data = numeric(missing).drop(columns="tiny")
    if categories:
        number = np.arange(len(data))
        data = data.assign(town=np.array(["x", "y", "a b"])[number % 3], code=number % 4)
        data["code"] = data["code"].astype(str)
        settings["feature_types"] = ["continuous"] * (len(data.columns) - 2) + ["nominal", "nominal"]
    target = labels(label)
    if categories and label == "value":
        target = target + np.where(data["town"] == "x", 0, 1)  # so that the categories matter
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return getattr(glassbox, f"ExplainableBoosting{kind}")(**{**settings, **options}).fit(data, target)


MODELS: dict[str, Callable[[], Any]] = {
    "two classes": lambda: fitted("Classifier", "two"),
    "two classes, numbers alone": lambda: fitted("Classifier", "two", categories=False),
    "two classes, nothing missing": lambda: fitted("Classifier", "two", missing=False),
    "four classes": lambda: fitted("Classifier", "four", interactions=0),
    "one against all": lambda: fitted("Classifier", "four", interactions=0)._ovrize(),
    "value": lambda: fitted("Regressor", "value"),
    "value, three features in a term": lambda: fitted("Regressor", "value", interactions=[(0, 1, 2), (0, 1)]),
    "poisson": lambda: fitted("Regressor", "positive", objective="poisson_deviance"),
    "one bin each": lambda: fitted("Regressor", "value", max_bins=3, interactions=0),
}


@cache
def made(name: str) -> Any:
    return MODELS[name]()
