"""Fault 44: None among texts is a category of its own to scikit-learn, and was read as if it were NaN, or NaN it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import treesens as ts
from treesens.errors import ModelError, TreesensError
from treesens.extensions.conformance import formats as conformance

compose = pytest.importorskip("sklearn.compose")
ensemble = pytest.importorskip("sklearn.ensemble")
impute = pytest.importorskip("sklearn.impute")
pipeline = pytest.importorskip("sklearn.pipeline")
preprocessing = pytest.importorskip("sklearn.preprocessing")
pytestmark = pytest.mark.fault


def rows(lost: object = None, *, numbers: bool = False) -> tuple[pd.DataFrame, np.ndarray]:
    """A column of objects, of which every fifth is `lost`; the class depends on that."""
    random, n = np.random.default_rng(0), 300
    number, gone = random.normal(size=n), random.random(n) < 0.2
    values = random.choice([10, 20, 30] if numbers else list("abc"), n).astype(object)
    values[gone] = lost
    x = pd.DataFrame({"number": number, "kind": pd.Series(values, dtype=object)})
    return x, ((number > 0) ^ gone ^ (values == "a")).astype(int)


def behind(encoder: Any) -> Any:
    forest = ensemble.RandomForestClassifier(5, max_depth=4, random_state=0)
    return pipeline.make_pipeline(compose.ColumnTransformer([("e", encoder, [1])], remainder="passthrough"), forest)


def one_hot(**options: Any) -> Any:
    return behind(preprocessing.OneHotEncoder(handle_unknown="ignore", **options))


def ordinal(**options: Any) -> Any:
    options = {"handle_unknown": "use_encoded_value", "unknown_value": -1} | options
    return behind(preprocessing.OrdinalEncoder(**options))


def target() -> Any:
    return behind(preprocessing.TargetEncoder(random_state=1))


def histograms() -> Any:
    return ensemble.HistGradientBoostingClassifier(max_iter=5, categorical_features=[1])


MODELS: dict[str, Callable[[], Any]] = {
    "one-hot": one_hot,
    "one-hot without the first": lambda: one_hot(drop="first"),
    "ordinal": ordinal,
    "ordinal with a number for NaN": lambda: ordinal(encoded_missing_value=-2),
    "target": target,
    "histograms": histograms,
    "votes": lambda: ensemble.VotingClassifier([("a", one_hot()), ("b", target())], voting="soft"),
}


@pytest.mark.sampled
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("lost", [None, np.nan], ids=["None", "NaN"])
def test_a_missing_value_is_the_one_of_the_training(name: str, lost: object) -> None:
    x, y = rows(lost)
    model = MODELS[name]().fit(x, y)
    loaded = ts.load(model)
    conformance.check(loaded, rows=30).raise_if_wrong()
    numbers = np.linspace(-1.0, 1.0, 9)
    given = pd.DataFrame({"number": numbers, "kind": pd.Series([lost] * 9, dtype=object)})
    codes = np.column_stack([numbers, np.full(9, np.nan)])
    expected = model.decision_function(given) if name == "histograms" else model.predict_proba(given)
    assert np.array_equal(loaded.ensemble.margins_emulated(codes), expected.reshape(9, -1))


def test_columns_without_names_and_columns_of_numbers() -> None:
    x, y = rows()
    conformance.check(ts.load(one_hot().fit(x.to_numpy(), y)), rows=30).raise_if_wrong()
    x, y = rows(numbers=True)
    conformance.check(ts.load(one_hot().fit(x, y)), rows=30).raise_if_wrong()


def test_what_knows_both_is_refused() -> None:
    x, y = rows()
    of_nan = rows(np.nan)
    mixed = x.copy()
    mixed.loc[mixed.index[:20], "kind"] = pd.Series([np.nan] * 20, dtype=object)
    with pytest.raises(ModelError, match="None and NaN are separate categories"):
        ts.load(one_hot().fit(mixed, y))
    with pytest.raises(ModelError, match="None and NaN are two categories"):
        ts.load(histograms().fit(mixed, y))
    filled = pipeline.make_pipeline(
        impute.SimpleImputer(strategy="constant", fill_value="a"), preprocessing.OneHotEncoder()
    )
    with pytest.raises(ModelError, match="the encoder after it was fitted with None"):
        ts.load(behind(filled).fit(mixed, y))
    votes = MODELS["votes"]().fit(x, y)
    votes.estimators_[1] = target().fit(*of_nan)
    with pytest.raises(ModelError, match="uses None for missing values"):
        ts.load(votes)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("lost", [None, np.nan], ids=["None", "NaN"])
def test_a_table_with_the_other_one_is_refused(name: str, lost: object) -> None:
    """No study and no question reads it; histograms trained with NaN predict for None as for NaN."""
    x, y = rows(lost)
    other = rows(np.nan if lost is None else None)[0]
    model = MODELS[name]().fit(x, y)
    loaded = ts.load(model)
    text = """
    model m from "m"
    data d from "d"
    feature kind: category {a, b, c} or missing
    query q:
      find a in m such that
        prob(a) > 0.5
      minimize distance(a, nearest row of d, l0)
    """
    ts.audit(loaded, data=x, gap=0.1)
    assert ts.check_text(text, models={"m": loaded}, data={"d": x})["q"].verdict == "found"
    if name == "histograms" and lost is not None:
        assert np.array_equal(model.predict_proba(x), model.predict_proba(other))
        assert ts.check_text(text, models={"m": loaded}, data={"d": other})["q"].verdict == "found"
        return
    strings = x.astype({"kind": "string"})  # with `pandas.NA`
    tables = [other, other.to_numpy(), strings, *([] if lost is None else [pl.from_pandas(strings)])]
    for table in tables:
        # A number for NaN may lie on the side of the unknown categories.
        differs = not np.array_equal(model.predict_proba(table), model.predict_proba(x))
        assert differs or name in ("histograms", "ordinal with a number for NaN")
        with pytest.raises(TreesensError, match="treats as an unknown category"):
            ts.audit(loaded, data=table, gap=0.1)
        with pytest.raises(TreesensError, match="treats as an unknown category"):
            ts.check_text(text, models={"m": loaded}, data={"d": table})


def test_marks_of_columns_whose_names_are_numbers_are_compared() -> None:
    """A table knows its columns by text, and so it does their marks."""
    x, y = rows(np.nan)
    loaded = ts.load(one_hot().fit(x.set_axis(["0", "1"], axis=1), y))
    ts.audit(loaded, data=x.set_axis([0, 1], axis=1), gap=0.1)
    with pytest.raises(TreesensError, match="treats as an unknown category"):
        ts.audit(loaded, data=rows(None)[0].set_axis([0, 1], axis=1), gap=0.1)
