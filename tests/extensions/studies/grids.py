"""Small models over three whole numbers from 0 to 5, with everything their libraries predict on the 216 inputs there are."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest

NAMES = ["p", "q", "r"]
GRID = np.array(list(itertools.product(range(6), repeat=3)), float)


@dataclass(frozen=True)
class Trained:
    """A fitted estimator, its rows as a frame, and what it says on the grid: scores [6, 6, 6, outputs], classes [6, 6, 6]."""

    estimator: Any
    frame: pd.DataFrame
    scores: np.ndarray
    classes: np.ndarray
    names: list[str]

    @property
    def grid(self) -> pd.DataFrame:
        """All 216 inputs."""
        return pd.DataFrame(GRID.astype(int), columns=NAMES)

    @property
    def at_rows(self) -> tuple[np.ndarray, ...]:
        return tuple(self.frame.to_numpy(int).T)

    def extremes(self, values: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
        """The greatest and the least of values [6, 6, 6] over one feature, at every input."""
        high, low = values.max(axis=axis, keepdims=True), values.min(axis=axis, keepdims=True)
        return np.broadcast_to(high, values.shape), np.broadcast_to(low, values.shape)


def rows_of(seed: int = 3) -> np.ndarray:
    """90 of the inputs, both ends of every feature among them."""
    picked = np.random.default_rng(seed).permutation(len(GRID))[:88]
    return np.concatenate([GRID[picked], [[0, 0, 0], [5, 5, 5]]])


def labels(rows: np.ndarray, classes: list[str]) -> np.ndarray:
    """A rule with interactions, so that every feature matters."""
    value = rows[:, 0] + 2 * ((rows[:, 1] > 2) ^ (rows[:, 2] > 3)) + 0.5 * rows[:, 2]
    return np.array(classes)[np.digitize(value, np.quantile(value, np.linspace(0, 1, len(classes) + 1)[1:-1]))]


def train(make: Callable[[], Any], score: Callable[[Any, Any], Any], classes: list[str] | None) -> Trained:
    """Fits on the rows; `classes` None is a regressor."""
    rows = rows_of()
    frame = pd.DataFrame(rows.astype(int), columns=NAMES)
    target = labels(rows, classes) if classes else rows @ np.array([2.0, -1.0, 0.5]) + (rows[:, 1] > 2) * rows[:, 2]
    numbers = np.unique(target, return_inverse=True)[1] if classes else target
    estimator = make()
    coded = type(estimator).__module__.startswith("xgboost")
    estimator.fit(frame, numbers if coded else target)
    grid = pd.DataFrame(GRID.astype(int), columns=NAMES)
    scores = np.asarray(score(estimator, grid), float).reshape(6, 6, 6, -1)
    names = sorted(classes) if classes else []
    predicted = np.asarray(estimator.predict(grid)).reshape(6, 6, 6)
    if classes and not coded:
        predicted = np.searchsorted(names, predicted)
    if coded and classes:
        names = [str(i) for i in range(len(names))]
    return Trained(estimator, frame, scores, predicted, names)


def _ensemble(name: str) -> Any:
    return getattr(pytest.importorskip("sklearn.ensemble"), name)


def _tree(name: str) -> Any:
    return getattr(pytest.importorskip("sklearn.tree"), name)


def _chance(estimator: Any, x: Any) -> Any:
    return estimator.predict_proba(x)


def _raw(estimator: Any, x: Any) -> Any:
    return estimator.decision_function(x)


def _xgb_raw(estimator: Any, x: Any) -> Any:
    return estimator.predict(x, output_margin=True)


def _lgb_raw(estimator: Any, x: Any) -> Any:
    return estimator.predict(x, raw_score=True)


def _value(estimator: Any, x: Any) -> Any:
    return estimator.predict(x)


def several_classes(kind: str) -> Trained:
    """A classifier of three classes."""
    three = ["low", "mid", "top"]
    match kind:
        case "forest":
            return train(lambda: _ensemble("RandomForestClassifier")(6, max_depth=4, random_state=1), _chance, three)
        case "tree":
            return train(lambda: _tree("DecisionTreeClassifier")(max_depth=5, random_state=1), _chance, three)
        case "histogram":
            make = _ensemble("HistGradientBoostingClassifier")
            return train(lambda: make(max_iter=4, min_samples_leaf=3, random_state=1), _raw, three)
        case "xgboost":
            make = pytest.importorskip("xgboost").XGBClassifier
            return train(lambda: make(n_estimators=4, max_depth=3), _xgb_raw, three)
        case "lightgbm":
            make = pytest.importorskip("lightgbm").LGBMClassifier
            return train(lambda: make(n_estimators=4, min_child_samples=3, verbose=-1), _lgb_raw, three)
    raise ValueError(kind)


def two_classes(kind: str) -> Trained:
    """A classifier of two classes; scores are the probabilities of the second."""
    two = ["no", "yes"]

    def second(estimator: Any, x: Any) -> Any:
        return estimator.predict_proba(x)[:, 1]

    match kind:
        case "forest":
            return train(lambda: _ensemble("RandomForestClassifier")(10, max_depth=4, random_state=1), second, two)
        case "tree":
            return train(lambda: _tree("DecisionTreeClassifier")(max_depth=3, random_state=1), second, two)
        case "histogram":
            make = _ensemble("HistGradientBoostingClassifier")
            return train(lambda: make(max_iter=8, learning_rate=0.5, min_samples_leaf=3, random_state=1), second, two)
        case "xgboost":
            make = pytest.importorskip("xgboost").XGBClassifier
            return train(lambda: make(n_estimators=6, max_depth=3), second, two)
    raise ValueError(kind)


def regressor(kind: str) -> Trained:
    """A regressor of one value."""
    match kind:
        case "forest":
            return train(lambda: _ensemble("RandomForestRegressor")(7, max_depth=4, random_state=1), _value, None)
        case "tree":
            return train(lambda: _tree("DecisionTreeRegressor")(max_depth=4, random_state=1), _value, None)
        case "gradient":
            make = _ensemble("GradientBoostingRegressor")
            return train(lambda: make(n_estimators=8, random_state=1), _value, None)
        case "xgboost":
            make = pytest.importorskip("xgboost").XGBRegressor
            return train(lambda: make(n_estimators=6, max_depth=3), _value, None)
    raise ValueError(kind)


def rows_that_flip(trained: Trained, name: str, gap: float) -> int:
    """Rows for which one value of a feature gives a chance past 1/2 by the gap, and another one past it on the other side, as
    `predict_proba` says.
    """
    rows = [trained.frame.assign(**{name: value}) for value in range(6)]
    chances = np.array([trained.estimator.predict_proba(row)[:, 1] for row in rows], float)
    return int(((chances.max(0) >= 0.5 + gap) & (chances.min(0) <= 0.5 - gap)).sum())
