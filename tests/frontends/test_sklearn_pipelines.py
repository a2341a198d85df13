"""Pipelines are read in the user's own columns, and the leaf reached stays the same bit for bit.

Found by users: columns that a pipeline drops had to be numbers, so a frame with an id of text was refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import treesens as ts
from tests.frontends import mutants
from tests.frontends.trained import frame
from tests.frontends.trained_lightgbm import lightgbm
from tests.frontends.trained_sklearn import BOOST, FOREST, ensemble, labels
from treesens.cli import group
from treesens.compiler.base.floats import NumberType
from treesens.errors import DataError, ModelError
from treesens.extensions.conformance import formats as conformance
from treesens.frontends import load

from sklearn import compose, decomposition, feature_selection, impute, pipeline, preprocessing  # isort: skip


def raw(numbers_only: bool = False) -> pd.DataFrame:
    data = frame()[["real", "coarse", "gaps", "whole"]].copy()
    if numbers_only:
        return data
    data["colour"] = frame().colour.astype(object)
    data["town"] = frame().town.astype(object).fillna("Bonn")
    data["level"] = 10.0 * (data.whole % 4)
    return data


NUMBERS = ["real", "coarse", "gaps", "whole"]


def columns(*parts: Any, **options: Any) -> Any:
    return compose.ColumnTransformer(list(parts), **options)


def fitted(*steps: Any, label: str = "two", numbers: bool = False) -> Any:
    return pipeline.make_pipeline(*steps).fit(raw(numbers), labels(label))


def names_of(made: Any) -> list[str]:
    first = next(step for _, step in made.steps if step != "passthrough")
    return list(first.feature_names_in_)


def forest() -> Any:
    return ensemble.RandomForestClassifier(**FOREST)


def hist() -> Any:
    return ensemble.HistGradientBoostingRegressor(max_iter=6)


def light() -> Any:
    return lightgbm.LGBMClassifier(n_estimators=6, n_jobs=1, verbosity=-1)


def full() -> Any:
    numbers = pipeline.make_pipeline(
        impute.SimpleImputer(strategy="median", add_indicator=True), preprocessing.StandardScaler()
    )
    texts = pipeline.make_pipeline(
        impute.SimpleImputer(strategy="most_frequent"), preprocessing.OneHotEncoder(handle_unknown="ignore")
    )
    codes = preprocessing.OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    return columns(("numbers", numbers, NUMBERS), ("texts", texts, ["colour"]), ("codes", codes, ["town", "level"]))


def encoders() -> Any:
    hot = preprocessing.OneHotEncoder(handle_unknown="ignore", drop="if_binary", sparse_output=False)
    codes = preprocessing.OrdinalEncoder(
        handle_unknown="use_encoded_value", unknown_value=np.nan, encoded_missing_value=-3
    )
    return columns(("hot", hot, ["level", "town"]), ("codes", codes, ["colour"]), remainder="passthrough")


PIPELINES: dict[str, Callable[[], Any]] = {
    "standard": lambda: fitted(preprocessing.StandardScaler(), forest(), numbers=True),
    "min-max, cut": lambda: fitted(preprocessing.MinMaxScaler((-3, 7), clip=True), forest(), numbers=True),
    "largest": lambda: fitted(preprocessing.MaxAbsScaler(), hist(), label="value", numbers=True),
    "robust": lambda: fitted(preprocessing.RobustScaler(), hist(), label="value", numbers=True),
    "two scalers": lambda: fitted(preprocessing.StandardScaler(), preprocessing.MinMaxScaler(), light(), numbers=True),
    "imputed": lambda: fitted(impute.SimpleImputer(), ensemble.GradientBoostingClassifier(**BOOST), numbers=True),
    "nothing before": lambda: fitted("passthrough", forest(), numbers=True),
    "columns": lambda: fitted(full(), forest(), label="four"),
    "columns, boosted": lambda: fitted(full(), light()),
    "encoders": lambda: fitted(encoders(), hist(), label="value"),
    "the best columns": lambda: fitted(
        impute.SimpleImputer(),
        feature_selection.SelectKBest(k=2),
        preprocessing.StandardScaler(),
        forest(),
        numbers=True,
    ),
    "columns of a model": lambda: fitted(
        impute.SimpleImputer(), feature_selection.SelectFromModel(forest()), forest(), numbers=True
    ),
    "columns that vary": lambda: fitted(feature_selection.VarianceThreshold(0.1), hist(), label="value", numbers=True),
    "columns one after another": lambda: fitted(
        impute.SimpleImputer(), feature_selection.RFE(forest(), n_features_to_select=2), forest(), numbers=True
    ),
    "bins": lambda: fitted(
        impute.SimpleImputer(), preprocessing.KBinsDiscretizer(5, encode="ordinal"), forest(), numbers=True
    ),
    "bins of small floats": lambda: fitted(
        impute.SimpleImputer(),
        preprocessing.KBinsDiscretizer(7, encode="ordinal", strategy="uniform", dtype=np.float32),
        light(),
        numbers=True,
    ),
    "a column per bin": lambda: fitted(
        impute.SimpleImputer(), preprocessing.KBinsDiscretizer(5), forest(), numbers=True
    ),
    "a column per bin, scaled and selected": lambda: fitted(
        columns(
            (
                "bins",
                pipeline.make_pipeline(
                    impute.SimpleImputer(),
                    preprocessing.StandardScaler(),
                    preprocessing.KBinsDiscretizer(6, encode="onehot-dense", strategy="uniform"),
                    preprocessing.StandardScaler(),
                    feature_selection.SelectKBest(k=9),
                ),
                ["real", "gaps"],
            ),
            ("other", "passthrough", ["coarse", "real"]),
        ),
        light(),
        numbers=True,
    ),
    "two values": lambda: fitted(
        impute.SimpleImputer(), preprocessing.Binarizer(threshold=0.25), forest(), numbers=True
    ),
    "columns dropped": lambda: fitted(columns(("keep", "passthrough", ["whole", "real"])), forest()),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_pipelines_are_read_in_the_columns_of_the_user(name: str) -> None:
    made = PIPELINES[name]()
    loaded = load(made)
    assert loaded.ensemble.feature_names == tuple(names_of(made))
    report = conformance.check(loaded, rows=80)
    report.raise_if_wrong()
    rows = np.column_stack(
        [
            raw()[c].astype("category").cat.codes if c in ("colour", "town", "level") else raw()[c]
            for c in names_of(made)
        ]
    ).astype(float)
    given = raw()[list(names_of(made))]
    if names_of(made)[-1] == "level" and not any(f.categories for f in loaded.ensemble.features):
        return  # columns that the pipeline drops have no codes
    rows = np.where(rows == -1, np.nan, rows) if "colour" in names_of(made) else rows
    rows[:, :4] = given.to_numpy()[:, :4].astype(float)
    ours = loaded.ensemble.probabilities(loaded.ensemble.margins_emulated(rows))
    expected = made.predict_proba(given) if hasattr(made, "predict_proba") else made.predict(given)[:, None]
    ours = np.column_stack([1 - ours, ours]) if ours.shape[1] < expected.shape[1] else ours
    assert ours == pytest.approx(expected, rel=1e-12)


def sparse(last: Any, *numbers: Any) -> Any:
    """A pipeline that passes sparse rows to its last step; the columns have missing values, zeros, and both signs."""
    hot = preprocessing.OneHotEncoder(handle_unknown="ignore")
    steps = pipeline.make_pipeline(*numbers) if numbers else "passthrough"
    table = raw().assign(whole=raw().whole % 5 - 2.0)
    front = columns(("numbers", steps, NUMBERS), ("hot", hot, ["colour", "town", "level"]), sparse_threshold=1.0)
    made = pipeline.make_pipeline(front, last).fit(table, labels("two"))
    assert hasattr(made[:-1].transform(table), "toarray")
    return made


def xgboost() -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(n_estimators=8, max_depth=5, n_jobs=1)


def catboost() -> Any:
    from catboost import CatBoostClassifier

    return CatBoostClassifier(iterations=5, depth=3, verbose=False, allow_writing_files=False, thread_count=1)


FILLED = (impute.SimpleImputer(strategy="constant", fill_value=0),)
NUMBER_STEPS: dict[str, tuple[Any, ...]] = {
    "as they are": (),
    "filled": FILLED,
    "scaled": (*FILLED, preprocessing.StandardScaler()),
    "bins": (impute.SimpleImputer(), preprocessing.KBinsDiscretizer(4)),
}
MISSING_ALLOWED = (xgboost, light, catboost)


@pytest.mark.parametrize("numbers", NUMBER_STEPS)
@pytest.mark.parametrize("last", [*MISSING_ALLOWED, forest])
def test_sparse_rows_are_read_as_the_library_reads_them(last: Callable[[], Any], numbers: str) -> None:
    """XGBoost takes each zero of a sparse matrix for a missing value; the other libraries do not."""
    steps = NUMBER_STEPS[numbers] if last in MISSING_ALLOWED else NUMBER_STEPS[numbers] or FILLED
    conformance.check(load(sparse(last(), *steps)), rows=60).raise_if_wrong()


@pytest.mark.parametrize("last", [xgboost, forest])
@pytest.mark.parametrize("scaler", [preprocessing.StandardScaler(with_mean=False), preprocessing.MaxAbsScaler()])
def test_scalers_of_sparse_rows_multiply_by_the_reciprocal(scaler: Any, last: Callable[[], Any]) -> None:
    """Also as the first step of an inner pipeline, which is read as if its steps were those of the outer one."""
    for end in (pipeline.make_pipeline(scaler, last()), pipeline.make_pipeline("passthrough", scaler, last())):
        conformance.check(load(sparse(end, *FILLED)), rows=60).raise_if_wrong()


@pytest.mark.parametrize("last", [xgboost, light, forest])
@pytest.mark.parametrize("step", [preprocessing.Binarizer(threshold=0.3), impute.SimpleImputer()], ids=str)
def test_steps_after_sparse_rows_keep_the_zeros_of_the_library(step: Any, last: Callable[[], Any]) -> None:
    """A Binarizer leaves out its zeros, too."""
    conformance.check(load(sparse(pipeline.make_pipeline(step, last()), *FILLED)), rows=60).raise_if_wrong()


def test_zeros_that_an_imputer_writes_into_sparse_rows_are_refused_for_xgboost() -> None:
    late = impute.SimpleImputer(strategy="constant", fill_value=0)
    with pytest.raises(ModelError, match="writes zeros into sparse rows") as caught:
        load(sparse(pipeline.make_pipeline(late, xgboost())))
    assert "impute before" in (caught.value.remedy or "")
    conformance.check(load(sparse(pipeline.make_pipeline(late, light()))), rows=60).raise_if_wrong()


def test_bins_may_be_binarized() -> None:
    bins = preprocessing.KBinsDiscretizer(4, encode="onehot-dense")
    made = fitted(impute.SimpleImputer(), bins, preprocessing.Binarizer(threshold=0.5), forest(), numbers=True)
    conformance.check(load(made), rows=60).raise_if_wrong()


def test_zeros_of_dense_and_of_sparse_rows_differ_for_xgboost() -> None:
    made = sparse(xgboost())
    rows = made[:-1].transform(raw())
    assert (made[-1].predict_proba(rows.toarray()) != made[-1].predict_proba(rows)).any()


def test_wrappers_of_xgboost_over_sparse_rows_are_refused() -> None:
    from sklearn.calibration import CalibratedClassifierCV

    for wrapper in (CalibratedClassifierCV(xgboost(), cv=2), ensemble.VotingClassifier([("one", xgboost())])):
        with pytest.raises(ModelError, match="which takes its zeros for missing values") as caught:
            load(sparse(wrapper))
        assert "sparse_threshold=0" in (caught.value.remedy or "")
    inner = pipeline.make_pipeline(preprocessing.MaxAbsScaler(), light())
    with pytest.raises(ModelError, match="a pipeline with steps of its own"):
        load(sparse(ensemble.VotingClassifier([("one", inner)], voting="soft"), *FILLED))


def test_categories_keep_the_names_of_the_user() -> None:
    features = {f.name: f for f in load(PIPELINES["columns"]()).ensemble.features}
    assert features["colour"].labels == tuple(sorted(["red", "green", "blue", "w", "x", "y", "z"]))
    assert features["level"].labels == (0, 10, 20, 30)
    assert features["gaps"].categories == 0


@pytest.mark.parametrize("mutant", [mutants.one_threshold, mutants.missing_turned, mutants.other_inputs])
def test_wrong_readers_are_caught(mutant: Any) -> None:
    loaded = load(PIPELINES["two scalers"]())
    assert loaded.ensemble.number_type is NumberType.FLOAT64
    assert not conformance.check(replace(loaded, ensemble=mutant(loaded.ensemble)), rows=150).ok


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([impute.SimpleImputer(), decomposition.PCA()], "the step PCA cannot be traced back"),
        ([preprocessing.FunctionTransformer(np.abs)], "applies absolute|applies abs"),
        ([preprocessing.FunctionTransformer(np.log1p)], "applies log1p, whose last digits differ"),
        ([preprocessing.PowerTransformer()], "PowerTransformer cannot be traced back: the last digits"),
        ([preprocessing.QuantileTransformer(n_quantiles=20)], "QuantileTransformer cannot be traced back: the last"),
        ([preprocessing.Normalizer()], "the step combines several columns"),
        ([preprocessing.PolynomialFeatures()], "the step combines several columns"),
        ([preprocessing.SplineTransformer()], "converts one column to several"),
        ([impute.SimpleImputer(missing_values=-1, strategy="mean")], "replaces the value -1"),
        ([preprocessing.StandardScaler(), preprocessing.OrdinalEncoder()], "a column that another step has changed"),
    ],
)
def test_other_steps_are_refused_by_name(steps: list[Any], message: str) -> None:
    data = raw(numbers_only=True).fillna(0)
    made = pipeline.make_pipeline(*steps, forest()).fit(data, labels("two"))
    with pytest.raises(ModelError, match=message) as caught:
        load(made)
    assert caught.value.remedy


def test_other_models_at_the_end_are_refused_by_name() -> None:
    from sklearn.linear_model import LinearRegression, PoissonRegressor

    with pytest.raises(ModelError, match="not been fitted"):
        load(pipeline.make_pipeline(preprocessing.StandardScaler(), LinearRegression()))
    made = pipeline.make_pipeline(preprocessing.StandardScaler(), PoissonRegressor())
    with pytest.raises(ModelError, match="PoissonRegressor is not supported"):
        load(made.fit(raw(numbers_only=True).fillna(0), np.abs(labels("value"))))


def test_a_pipeline_that_refuses_unknown_categories_is_checked_on_known_ones() -> None:
    data = raw().ffill().bfill()
    encoder = columns(("names", preprocessing.OneHotEncoder(), ["colour", "town"]), remainder="passthrough")
    made = pipeline.make_pipeline(encoder, forest()).fit(data, labels("two"))
    report = conformance.check(load(made), rows=50)
    assert report.ok, str(report)
    assert any("unknown categories" in reason for reason in report.refused)
    assert report.rows > 500


def test_a_step_without_one_of_its_parts_is_refused_by_name() -> None:
    made = pipeline.make_pipeline(preprocessing.StandardScaler(), hist()).fit(np.eye(20, 2), np.arange(20.0))
    del made[0].scale_
    with pytest.raises(ModelError, match="StandardScaler lacks `scale_`") as caught:
        load(made)
    assert caught.value.remedy


@pytest.mark.fault
def test_a_pipeline_that_drops_columns_takes_frames_with_text_there(tmp_path: Path) -> None:
    compose = pytest.importorskip("sklearn.compose")
    ensemble = pytest.importorskip("sklearn.ensemble")
    preprocessing = pytest.importorskip("sklearn.preprocessing")
    sklearn = pytest.importorskip("sklearn.pipeline")
    skops = pytest.importorskip("skops.io")
    rng = np.random.default_rng(7)
    frame = pd.DataFrame(
        {"id": [f"C{i:05}" for i in range(200)], "age": rng.integers(18, 80, 200), "debt": rng.random(200)}
    )
    label = (frame["age"] / 80 + frame["debt"] > 1).astype(int)
    columns = compose.ColumnTransformer([("numbers", preprocessing.StandardScaler(), ["age", "debt"])])
    model = sklearn.make_pipeline(columns, ensemble.RandomForestClassifier(5, max_depth=3, random_state=0)).fit(
        frame, label
    )
    answer = ts.sensitivity(model, vary=["debt"], gap=0.05, data=frame)
    assert any(re.search("E405.*`id`", note) for note in answer.notes)
    a, b = (model.predict_proba(pd.DataFrame([answer.points[p]])[list(frame.columns)])[0, 1] for p in "ab")
    assert a >= 0.55 - 1e-9
    assert b <= 0.45 + 1e-9
    skops.dump(model, tmp_path / "m.skops")
    frame.to_csv(tmp_path / "d.csv", index=False)
    file = tmp_path / "q.sens"
    file.write_text(
        'model m from "m.skops"\ndata d from "d.csv"\ndomain from d\nquery q: sensitive m to age gap 0.05\n'
    )
    assert "found" in CliRunner().invoke(group, ["check", str(file)]).stdout


@pytest.mark.parametrize("kind", ["float32", "float16"])
def test_columns_with_which_steps_calculate_are_float64(kind: str) -> None:
    """In float32, a scaler has other last digits, and rows at a threshold go to the other side."""
    frame = raw(numbers_only=True).fillna(0)
    made = pipeline.make_pipeline(preprocessing.StandardScaler(), xgboost()).fit(frame, labels("two"))
    narrow = frame.astype({"real": kind})
    with pytest.raises(DataError, match="`real` are float32 or float16") as caught:
        ts.audit(made, narrow, time_limit=1)
    assert "astype('float64')" in (caught.value.remedy or "")
    question = (
        'model m from "m"\ndata d from "d"\ndomain from d\nquery q: count rows of d as a such that prob(a) >= 0.5'
    )
    with pytest.raises(DataError, match="`real` are float32 or float16"):
        ts.check_text(question, models={"m": made}, data={"d": narrow})
    for others in (made, xgboost().fit(narrow, labels("two"))):
        ts.audit(others, frame if others is made else narrow, vary=["coarse"], time_limit=1)


def test_float32_columns_of_linear_models_are_refused() -> None:
    from sklearn.linear_model import LogisticRegression

    frame = raw(numbers_only=True).fillna(0)
    for made in (LogisticRegression(), pipeline.make_pipeline("passthrough", LogisticRegression())):
        with pytest.raises(DataError, match="are float32 or float16"):
            ts.audit(made.fit(frame, labels("two")), frame.astype("float32"), time_limit=1)
