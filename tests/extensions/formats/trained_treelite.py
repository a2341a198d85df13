"""Treelite models that the tests import from the other libraries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.frontends import trained, trained_lightgbm
from tests.frontends.trained_sklearn import BOOST, FOREST, ensemble, fitted

treelite = pytest.importorskip("treelite", reason="the tests compare with treelite; pip install treesens[treelite]")


def _xgboost(name: str) -> Callable[[], Any]:
    return lambda: treelite.frontend.from_xgboost(trained.MODELS[name]())


def _lightgbm(name: str) -> Callable[[], Any]:
    return lambda: treelite.frontend.from_lightgbm(trained_lightgbm.MODELS[name]())


def _sklearn(estimator: Any, label: str) -> Callable[[], Any]:
    return lambda: treelite.sklearn.import_model(fitted(estimator, label, plain=True))


MODELS: dict[str, Callable[[], Any]] = {
    "xgboost, logistic": _xgboost("logistic"),
    "xgboost, softprob": _xgboost("softprob"),
    "xgboost, poisson": _xgboost("poisson"),
    "lightgbm, categories": _lightgbm("categories"),
    "lightgbm, softmax": _lightgbm("softmax"),
    "lightgbm, scaled": _lightgbm("binary, scaled"),
    "forest, two classes": _sklearn(ensemble.RandomForestClassifier(**FOREST), "two"),
    "forest, four classes": _sklearn(ensemble.RandomForestClassifier(**FOREST), "four"),
    "forest, value": _sklearn(ensemble.RandomForestRegressor(**FOREST), "value"),
    "forest, values": _sklearn(ensemble.RandomForestRegressor(**FOREST), "values"),
    "boosting, two classes": _sklearn(ensemble.GradientBoostingClassifier(**BOOST), "two"),
    "boosting, four classes": _sklearn(ensemble.GradientBoostingClassifier(**BOOST), "four"),
}
