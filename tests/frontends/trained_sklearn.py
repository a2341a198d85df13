"""Small scikit-learn models that the tests train, one per kind of estimator and of leaf."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.frontends.trained import frame, target
from tests.frontends.versions import before

pytest.importorskip("sklearn", reason="the tests compare with the library; pip install treesens[sklearn]")

from sklearn import ensemble, tree
from sklearn.neighbors import KNeighborsClassifier
from threadpoolctl import threadpool_limits


def numeric(missing: bool = False) -> pd.DataFrame:
    data = frame()[["real", "coarse", "gaps", "whole", "tiny"]].copy()
    return data if missing else data.assign(gaps=data.gaps.fillna(-1))


def labels(kind: str) -> np.ndarray:
    classes = np.digitize(target(), [-0.5, 0.5, 1.5])
    return {
        "two": (target() > 1).astype(int),
        "four": np.array(["a", "b", "c", "d"])[classes],
        "value": target(),
        "positive": np.exp(np.clip(target(), -2, 2)),
        "values": np.stack([target(), target(3)], axis=1),
    }[kind]


def fitted(estimator: Any, label: str, *, missing: bool = False, plain: bool = False) -> Any:
    data = numeric(missing)
    return estimator.fit(data.to_numpy() if plain else data, labels(label))


def _hist(kind: str, label: str, data: pd.DataFrame | np.ndarray, **options: Any) -> Any:
    made = getattr(ensemble, f"HistGradientBoosting{kind}")(max_iter=8, min_samples_leaf=3, **options)
    # One thread: tiny histograms spend their time waiting for each other otherwise.
    with threadpool_limits(1):
        return made.fit(data, labels(label))


def _coded() -> np.ndarray:
    """A matrix whose categories are numbers with gaps, the categorical column last."""
    data = numeric(True).to_numpy()
    return np.column_stack([data, np.where(np.arange(len(data)) % 9 == 0, np.nan, 10.0 * (data[:, 3] % 7))])


def _bagged(kind: str, label: str, *, missing: bool = False, **options: Any) -> Any:
    """Trees on samples of rows and columns; few rows leave some trees without some of the classes."""
    single = getattr(tree, f"DecisionTree{kind}")(max_depth=4, random_state=2)
    return fitted(
        getattr(ensemble, f"Bagging{kind}")(single, n_estimators=7, random_state=1, **options), label, missing=missing
    )


VOTES = {"algorithm": "SAMME"} if before("sklearn", "1.6") else {}
"""What AdaBoost needs to add up votes; it does so by default since 1.6, which deprecates the option."""
RANDOM_TREES_TAKE_MISSING = not before("sklearn", "1.6")

TREES = {"random_state": 1, "max_depth": 5}
FOREST = {**TREES, "n_estimators": 7, "n_jobs": 1}
BOOST = {"random_state": 1, "max_depth": 3, "n_estimators": 6}

MODELS: dict[str, Callable[[], Any]] = {
    "tree, two classes": lambda: fitted(tree.DecisionTreeClassifier(**TREES), "two", missing=True),
    "tree, four classes": lambda: fitted(tree.DecisionTreeClassifier(**TREES), "four", plain=True),
    "tree, value": lambda: fitted(tree.DecisionTreeRegressor(**TREES), "value", missing=True),
    "tree, values": lambda: fitted(tree.DecisionTreeRegressor(**TREES), "values"),
    "random tree": lambda: fitted(tree.ExtraTreeClassifier(**TREES), "four"),
    "forest, two classes": lambda: fitted(ensemble.RandomForestClassifier(**FOREST), "two", missing=True),
    "forest, four classes": lambda: fitted(ensemble.RandomForestClassifier(**{**FOREST, "n_jobs": 2}), "four"),
    "forest, value": lambda: fitted(ensemble.RandomForestRegressor(**FOREST), "value", missing=True),
    "forest, values": lambda: fitted(ensemble.RandomForestRegressor(**FOREST), "values"),
    "extra trees, four classes": lambda: fitted(ensemble.ExtraTreesClassifier(**FOREST), "four"),
    "extra trees, value": lambda: fitted(
        ensemble.ExtraTreesRegressor(**FOREST), "value", missing=RANDOM_TREES_TAKE_MISSING
    ),
    "bagging, two classes": lambda: _bagged("Classifier", "two", max_features=3),
    "bagging, four classes": lambda: _bagged("Classifier", "four", max_samples=9, n_jobs=2),
    "bagging, value": lambda: _bagged("Regressor", "value", bootstrap_features=True, missing=True),
    "boosting, two classes": lambda: fitted(ensemble.GradientBoostingClassifier(**BOOST), "two"),
    "boosting, four classes": lambda: fitted(ensemble.GradientBoostingClassifier(**BOOST), "four"),
    "boosting, exponential": lambda: fitted(ensemble.GradientBoostingClassifier(loss="exponential", **BOOST), "two"),
    "boosting, from zero": lambda: fitted(ensemble.GradientBoostingClassifier(init="zero", **BOOST), "two"),
    "boosting, value": lambda: fitted(ensemble.GradientBoostingRegressor(learning_rate=0.3, **BOOST), "value"),
    "boosting, huber": lambda: fitted(ensemble.GradientBoostingRegressor(loss="huber", **BOOST), "value"),
    "boosting, quantile": lambda: fitted(ensemble.GradientBoostingRegressor(loss="quantile", **BOOST), "value"),
    "histogram, two classes": lambda: _hist("Classifier", "two", numeric(True)),
    "histogram, four classes": lambda: _hist("Classifier", "four", numeric(True).to_numpy()),
    "histogram, value": lambda: _hist("Regressor", "value", numeric(True)),
    "histogram, poisson": lambda: _hist("Regressor", "positive", numeric(True), loss="poisson"),
    "histogram, quantile": lambda: _hist("Regressor", "value", numeric(), loss="quantile", quantile=0.3),
    "histogram, categories": lambda: _hist("Classifier", "two", frame(), categorical_features="from_dtype"),
    "histogram, coded": lambda: _hist("Regressor", "value", _coded(), categorical_features=[5]),
    "histogram, early": lambda: _hist(
        "Classifier", "four", frame(), categorical_features="from_dtype", early_stopping=True, random_state=3
    ),
    "ada, two classes": lambda: fitted(
        ensemble.AdaBoostClassifier(tree.DecisionTreeClassifier(max_depth=2), n_estimators=8, random_state=1, **VOTES),
        "two",
    ),
    "ada, four classes": lambda: fitted(
        ensemble.AdaBoostClassifier(tree.DecisionTreeClassifier(max_depth=3), n_estimators=8, random_state=1, **VOTES),
        "four",
    ),
}

REFUSED: dict[str, Callable[[], Any]] = {
    "AdaBoostRegressor": lambda: fitted(ensemble.AdaBoostRegressor(n_estimators=3), "value"),
    "not functions of its scores": lambda: fitted(
        ensemble.BaggingClassifier(ensemble.AdaBoostClassifier(n_estimators=2, **VOTES), n_estimators=2), "four"
    ),
    "IsolationForest": lambda: ensemble.IsolationForest(n_estimators=3).fit(numeric()),
    "KNeighborsClassifier": lambda: fitted(KNeighborsClassifier(), "two"),
    "initial estimator DecisionTreeClassifier": lambda: fitted(
        ensemble.GradientBoostingClassifier(init=tree.DecisionTreeClassifier(max_depth=1), n_estimators=2), "two"
    ),
    "not been fitted": ensemble.RandomForestClassifier,
    "several labels": lambda: tree.DecisionTreeClassifier().fit(numeric(), np.stack([labels("two")] * 2, axis=1)),
}
