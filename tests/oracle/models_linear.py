"""Linear models of scikit-learn over whole numbers, numbers of few values and labels: a coefficient times each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.oracle.models import Model, targets, training
from tests.oracle.models_boosted import COUNTS, LINKS
from tests.oracle.models_sklearn import CLASS_NAMES, _objects, _piped, _sklearn_model
from tests.oracle.spaces import Feature


def train_linear(rng: np.random.Generator, features: Sequence[Feature], name: str, kind: str) -> Model:
    """A regression, or a logistic one, behind a scaler of the numbers and one-hot labels."""
    from sklearn import compose, linear_model, pipeline, preprocessing

    if any(f.missing or f.missing_text for f in features):
        raise ValueError("linear models predict nothing if a value is missing")
    columns = training(rng, features, int(rng.integers(40, 150)))
    numbers = [f.name for f in features if f.codes == "number"]
    labels = [f.name for f in features if f.codes != "number"]
    if not numbers or any(set(f.labels) - set(c) for c, f in zip(columns, features, strict=True) if f.codes == "label"):
        raise ValueError("a number is wanted, and an encoder knows the labels of the training part alone")
    scalers: list[Any] = ["passthrough", preprocessing.StandardScaler(), preprocessing.MinMaxScaler()]
    parts: list[Any] = [("numbers", scalers[int(rng.integers(3))], numbers)]
    hot = preprocessing.OneHotEncoder(handle_unknown="ignore", sparse_output=bool(rng.random() < 0.5))
    parts += [("labels", hot, labels)] if labels else []
    value = kind == "regression"
    last = linear_model.Ridge() if value else linear_model.LogisticRegression(max_iter=500)
    whole = pipeline.make_pipeline(compose.ColumnTransformer(parts), last)
    y = targets(rng, columns, COUNTS[kind])
    classes = CLASS_NAMES[int(rng.integers(len(CLASS_NAMES)))][: COUNTS[kind]]
    whole.fit(_objects(columns, features), y if value else np.array(classes)[y])
    link = LINKS[kind]
    told: tuple[dict[str, list[float]], tuple[bool, ...]] = ({}, (True,) * len(features))
    model = _sklearn_model(whole, name, "linear", kind, link, features, False, told)
    model.margins_of = _piped(whole, features, kind, link)
    if not value:
        model.classes_of = lambda c: np.searchsorted(whole.classes_, whole.predict(_objects(c, features)))
    # Each value is a cell of its own, which what is learnt from cells counts otherwise than this judge does.
    model.leaves_of, model.shorten, model.real, model.trees, model.celled = None, None, np.float64, 100, False
    return model
