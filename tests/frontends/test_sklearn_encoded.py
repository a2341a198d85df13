"""Encodings by the target, pipelines of imbalanced-learn, nested transformers and data frames between steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import treesens as ts
from treesens.extensions.conformance import formats as conformance

compose = pytest.importorskip("sklearn.compose")
ensemble = pytest.importorskip("sklearn.ensemble")
pipeline = pytest.importorskip("sklearn.pipeline")
preprocessing = pytest.importorskip("sklearn.preprocessing")

pytestmark = pytest.mark.extensions


def rows() -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    random, n = np.random.default_rng(8), 300
    x = pd.DataFrame({"number": random.normal(size=n), "town": random.choice(list("abcde"), n)})
    x["size"] = random.choice([10, 20, 30], n)
    x["colour"] = x.town.where(random.random(n) > 0.2, None)
    y = ((x.number > 0) ^ (x.town == "a")).astype(int).to_numpy()
    return x, y, np.where(x.town == "b", 2, y)


def columns(*parts: Any, **options: Any) -> Any:
    return compose.ColumnTransformer(list(parts), **options)


def forest() -> Any:
    return ensemble.RandomForestClassifier(6, max_depth=4, random_state=1)


def boosted() -> Any:
    return ensemble.GradientBoostingClassifier(n_estimators=4, random_state=1)


def by_target() -> Any:
    encoder = preprocessing.TargetEncoder(random_state=1)
    return columns(("codes", encoder, ["town", "colour", "size"]), remainder="passthrough")


def nested() -> Any:
    inner = columns(
        ("hot", preprocessing.OneHotEncoder(), ["town"]), ("scaled", preprocessing.MinMaxScaler(), ["number"])
    )
    return columns(
        ("x", pipeline.make_pipeline(inner, preprocessing.MaxAbsScaler()), ["town", "number"]),
        ("rest", "passthrough", ["size"]),
    )


def named() -> Any:
    parts = (
        ("hot", preprocessing.OneHotEncoder(sparse_output=False), ["town"]),
        ("scaled", preprocessing.StandardScaler(), ["number", "size"]),
    )
    return columns(*parts, verbose_feature_names_out=False)


def drawn_anew() -> Any:
    imblearn = pytest.importorskip("imblearn")
    sampler = imblearn.over_sampling.RandomOverSampler(random_state=1)
    return imblearn.pipeline.make_pipeline(named(), sampler, forest())


MODELS: dict[str, Callable[[], Any]] = {
    "means of the target": lambda: pipeline.make_pipeline(by_target(), forest()),
    "means of the target, boosted": lambda: pipeline.make_pipeline(by_target(), boosted()),
    "nested": lambda: pipeline.make_pipeline(nested(), forest()),
    "frames between steps": lambda: pipeline.make_pipeline(named(), boosted()).set_output(transform="pandas"),
    "imbalanced-learn": drawn_anew,
    "votes over pipelines": lambda: ensemble.VotingClassifier(
        [("a", pipeline.make_pipeline(by_target(), boosted())), ("b", pipeline.make_pipeline(by_target(), forest()))],
        voting="soft",
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_kit_finds_no_difference(name: str) -> None:
    x, y, _ = rows()
    model = MODELS[name]().fit(x, y)
    loaded = ts.load(model)
    conformance.check(loaded, rows=100).raise_if_wrong()
    assert loaded.ensemble.feature_names == tuple(x.columns)


def test_three_classes_have_a_mean_of_the_target_each() -> None:
    x, _, y = rows()
    conformance.check(ts.load(pipeline.make_pipeline(by_target(), forest()).fit(x, y)), rows=100).raise_if_wrong()


def test_categories_are_asked_by_their_names_and_unseen_ones_follow_the_mean() -> None:
    """Every row of all categories, missing and unseen ones too, is predicted as the pipeline predicts it."""
    x, y, _ = rows()
    model = MODELS["means of the target"]().fit(x, y)
    towns, colours = [*"abcde", "elsewhere"], [*"abcde", None]
    every = pd.DataFrame(
        [(0.3, town, size, colour) for town in towns for size in (10, 20, 30) for colour in colours], columns=x.columns
    )
    loaded = ts.load(model)
    codes = every.copy()
    for name in ("town", "size", "colour"):
        labels = list(loaded.ensemble.features[loaded.ensemble.feature_names.index(name)].labels or ())
        codes[name] = [float(labels.index(v)) if v in labels else np.nan if pd.isna(v) else 99.0 for v in every[name]]
    margins = loaded.ensemble.margins_emulated(codes.to_numpy(float))
    assert np.array_equal(margins, model.predict_proba(every))


@pytest.mark.parametrize("absent", [False, True])
@pytest.mark.parametrize(
    "encoder",
    [
        preprocessing.OneHotEncoder(min_frequency=60, handle_unknown="infrequent_if_exist"),
        preprocessing.OneHotEncoder(max_categories=3, handle_unknown="ignore"),
        preprocessing.OneHotEncoder(max_categories=3, drop="first", handle_unknown="infrequent_if_exist"),
        preprocessing.OneHotEncoder(min_frequency=60, drop="if_binary", handle_unknown="warn"),
        preprocessing.OneHotEncoder(min_frequency=200, handle_unknown="infrequent_if_exist"),
        preprocessing.OneHotEncoder(min_frequency=1, handle_unknown="infrequent_if_exist"),
        preprocessing.OrdinalEncoder(min_frequency=60, handle_unknown="use_encoded_value", unknown_value=-1),
        preprocessing.OrdinalEncoder(max_categories=3, encoded_missing_value=-5),
    ],
    ids=lambda encoder: "".join(str(encoder).split()),
)
def test_infrequent_categories_share_a_code(encoder: Any, absent: bool) -> None:
    x, y, _ = rows()
    x = x[["number", "town", "size"]].assign(town=x.town if not absent else x.town.where(x.number < 1, np.nan))
    random = np.random.default_rng(1)
    x["town"] = x.town.where(random.random(len(x)) > 0.3, "a")
    made = pipeline.make_pipeline(columns(("codes", encoder, ["town", "size"]), remainder="passthrough"), forest())
    assert conformance.check(ts.load(made.fit(x, y)), rows=150).ok
