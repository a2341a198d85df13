"""Explainable boosting machines, small, with scores on a coarse grid half of the time (ties, exact sums)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.oracle.models import Columns, Model, frame, targets, training
from tests.oracle.models_boosted import COUNTS, LINKS, coarse, folder
from tests.oracle.spaces import Feature


def train_interpret(rng: np.random.Generator, features: Sequence[Feature], name: str, kind: str) -> Model:
    from interpret import glassbox

    columns = training(rng, features, int(rng.integers(40, 150)))
    y = targets(rng, columns, COUNTS[kind])
    kinds = ["continuous" if f.codes == "number" else "nominal" for f in features]
    for c, f in zip(columns, features, strict=True):
        if f.codes != "number" and set(f.labels) - set(c.tolist()):
            raise ValueError("the model knows the categories of the training part alone")
    made = glassbox.ExplainableBoostingRegressor if kind == "regression" else glassbox.ExplainableBoostingClassifier
    model = made(
        [f.name for f in features], kinds, interactions=int(rng.integers(0, 3)) if kind != "multi" and len(features) > 1 else 0,
        max_bins=int(rng.choice([3, 6, 12])), outer_bags=1, max_rounds=int(rng.integers(5, 40)), n_jobs=1, random_state=1,
        min_samples_leaf=1, validation_size=0,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few rows
        model.fit(frame(columns, features), y)
    grid = rng.random() < 0.5
    if grid:
        model.term_scores_ = [np.vectorize(coarse, otypes=[float])(scores) for scores in model.term_scores_]
        intercept = np.round(np.asarray(model.intercept_, dtype=float) * 8) / 8
        model.intercept_ = float(intercept) if kind == "regression" else intercept
    return _described(model, name, kind, features, grid, live=bool(rng.random() < 0.5))


def _described(model: Any, name: str, kind: str, features: Sequence[Feature], grid: bool, *, live: bool) -> Model:
    outputs = 3 if kind == "multi" else 1
    asked = {f for term in model.term_features_ for f in term}
    cuts: dict[str, list[float]] = {}
    for f in asked:
        if features[f].codes == "number":
            cuts[features[f].name] = sorted({float(c) for level in model.bins_[f] for c in level})

    def margins(c: Columns) -> np.ndarray:
        return np.asarray(model._predict_score(frame(c, features)), float).reshape(-1, outputs)

    def classes(c: Columns) -> np.ndarray:
        return np.asarray(model.predict(frame(c, features)), int).reshape(-1)

    def save(place: Path) -> str:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its JSON may change
            model.to_json(str(place / f"{name}.json"))
        return f"{name}.json"

    path = folder() / f"{name}.{np.random.default_rng().integers(1 << 40)}"
    path.mkdir()
    return Model(
        name, "interpret", kind, LINKS[kind], model if live else str(path / save(path)), margins,
        classes if kind != "regression" else None, None, tuple("012"[: COUNTS[kind]]), cuts, True,
        tuple(i in asked for i in range(len(features))), any(features[f].codes != "number" for f in asked), False, np.float64,
        trees=len(model.term_features_), save=save, dyadic=grid, feature_names=tuple(f.name for f in features),
    )  # fmt: skip
