"""One output of models of scikit-learn and XGBoost that predict several at once: the library's column of it is the judge."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import treesens as ts
from tests.oracle.models import Columns, Model, frame, targets, training
from tests.oracle.models_boosted import COUNTS
from tests.oracle.spaces import Feature


def train_output(rng: np.random.Generator, features: Sequence[Feature], name: str, kind: str) -> Model:
    """A model of two or three outputs, of which one is read."""
    if any(f.missing or f.missing_text for f in features):
        raise ValueError("not all of these models take missing values")
    columns = training(rng, features, int(rng.integers(40, 150)))
    outputs = int(rng.integers(2, 4))
    y = np.stack([targets(rng, columns, COUNTS[kind]) for _ in range(outputs)], axis=1)
    k = int(rng.integers(outputs))
    estimator, library = _estimator(rng, kind)
    x = frame(columns, features)
    estimator.fit(x, y)
    margins, link = _margins(estimator, library, kind, k)
    known, form = [0, 1, 2][: COUNTS[kind]], f"{library}:output={k}"

    def classes(c: Columns) -> np.ndarray:
        return np.searchsorted(known, np.asarray(estimator.predict(frame(c, features)))[:, k])

    def save(place: Path) -> str:
        (place / f"{name}.pickle").write_bytes(pickle.dumps(estimator))
        return f"{name}.pickle"

    return Model(
        name, "output", kind, link, ts.load(estimator, form), lambda c: margins(frame(c, features)),
        classes if kind != "regression" else None, None, tuple(map(str, known)) if kind != "regression" else (), {}, False,
        (True,) * len(features), False, library == "xgboost", np.float32, None, 12, form=form, celled=False, save=save,
        feature_names=tuple(f.name for f in features),
    )  # fmt: skip


def _estimator(rng: np.random.Generator, kind: str) -> tuple[Any, str]:
    """An untrained model, and the library that reads it."""
    from sklearn import ensemble, multioutput, tree

    few = {"max_depth": int(rng.integers(1, 4)), "random_state": int(rng.integers(99))}
    bags = {**few, "n_estimators": int(rng.choice([1, 2, 4]))}
    steps = {**few, "n_estimators": int(rng.integers(1, 4)), "learning_rate": 0.5}
    value = kind == "regression"
    choices: list[tuple[Any, str]] = [
        ((tree.DecisionTreeRegressor if value else tree.DecisionTreeClassifier)(**few), "sklearn"),
        ((ensemble.RandomForestRegressor if value else ensemble.RandomForestClassifier)(**bags), "sklearn"),
        ((ensemble.ExtraTreesRegressor if value else ensemble.ExtraTreesClassifier)(**bags), "sklearn"),
    ]
    boosted = (ensemble.GradientBoostingRegressor if value else ensemble.GradientBoostingClassifier)(**steps)
    several = multioutput.MultiOutputRegressor if value else multioutput.MultiOutputClassifier
    choices.append((several(boosted), "sklearn"))
    if kind != "multi":
        import xgboost

        made = (xgboost.XGBRegressor if value else xgboost.XGBClassifier)(
            n_estimators=int(rng.integers(1, 4)), max_depth=2, n_jobs=1,
            multi_strategy=str(rng.choice(["one_output_per_tree", "multi_output_tree"])),
        )  # fmt: skip
        choices.append((made, "xgboost"))
    return choices[int(rng.integers(len(choices)))]


def _margins(estimator: Any, library: str, kind: str, k: int) -> tuple[Callable[[Any], np.ndarray], str]:
    """The library's scores of output k, float64[rows, scores], and their link."""
    if kind == "regression":
        return lambda x: np.asarray(estimator.predict(x), float)[:, k : k + 1], "identity"
    if library == "xgboost":
        return lambda x: np.asarray(estimator.predict(x, output_margin=True), float)[:, k : k + 1], "logit"
    if hasattr(estimator, "estimators_") and hasattr(estimator.estimators_[0], "decision_function"):
        own = estimator.estimators_[k]

        def scores(x: Any) -> np.ndarray:
            given = np.asarray(own.decision_function(x), float)
            return given.reshape(len(given), -1)

        return scores, "logit" if kind == "binary" else "softmax"
    return lambda x: np.asarray(estimator.predict_proba(x)[k], float), "identity"
