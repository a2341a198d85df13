"""Pipelines of random steps in front of random models: each is read exactly, or refused."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.trials import trials
from treesens.errors import ModelError
from treesens.extensions.conformance import formats as conformance
from treesens.frontends import load

from sklearn import calibration, compose, ensemble, feature_selection, impute, linear_model, pipeline, preprocessing  # isort: skip
from tests.frontends.trained_lightgbm import lightgbm  # isort: skip

NUMBERS, TEXTS = ["debt", "age", "gaps", "sign"], ["town", "level"]


def table(rng: np.random.Generator) -> pd.DataFrame:
    n = 240
    frame = pd.DataFrame(
        {
            "debt": np.maximum(0, rng.normal(0, 50, n)).round(1),
            "age": rng.integers(18, 60, n).astype(float),
            "gaps": rng.normal(0, 1, n).round(2),
            "sign": rng.integers(-2, 3, n).astype(float),
            "town": rng.choice(["north", "south", "a b", "x"], n),
            "level": rng.choice([10.0, 20.0, 30.0], n),
        }
    )
    frame.loc[rng.random(n) < 0.1, "gaps"] = np.nan
    return frame


def number_steps(rng: np.random.Generator) -> list[Any]:
    scalers = [
        preprocessing.StandardScaler(),
        preprocessing.MinMaxScaler(clip=bool(rng.integers(2))),
        preprocessing.RobustScaler(),
        preprocessing.MaxAbsScaler(),
        preprocessing.KBinsDiscretizer(4, encode=str(rng.choice(["ordinal", "onehot", "onehot-dense"]))),
        preprocessing.Binarizer(threshold=0.5),
        "passthrough",
    ]
    filled = impute.SimpleImputer(
        strategy=str(rng.choice(["median", "constant"])), fill_value=0.0, add_indicator=bool(rng.integers(2))
    )
    chosen = [scalers[i] for i in rng.choice(len(scalers), int(rng.integers(1, 3)), replace=False)]
    return [filled, *chosen] if rng.random() < 0.8 else chosen[:1]


def text_step(rng: np.random.Generator) -> Any:
    hot = preprocessing.OneHotEncoder(
        handle_unknown=str(rng.choice(["ignore", "infrequent_if_exist"])),
        min_frequency=[None, 0.25][rng.integers(2)],
        sparse_output=bool(rng.integers(2)),
    )
    codes = preprocessing.OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    return [hot, hot, codes, preprocessing.TargetEncoder(random_state=0)][rng.integers(4)]


def front(rng: np.random.Generator) -> Any:
    numbers = [name for name in NUMBERS if rng.random() < 0.8] or NUMBERS
    parts = [("numbers", pipeline.make_pipeline(*number_steps(rng)), numbers), ("texts", text_step(rng), TEXTS)]
    made = compose.ColumnTransformer(parts, sparse_threshold=float(rng.choice([0.0, 0.3, 1.0])))
    later = [
        preprocessing.MaxAbsScaler(),
        preprocessing.StandardScaler(with_mean=False),
        feature_selection.VarianceThreshold(),
        preprocessing.Binarizer(threshold=float(rng.choice([0.0, 0.5]))),
        impute.SimpleImputer(strategy=str(rng.choice(["mean", "median", "constant"])), fill_value=0.0),
        "passthrough",
    ]
    return [made, *(later[i] for i in rng.choice(len(later), int(rng.integers(0, 3)), replace=False))]


def model(rng: np.random.Generator) -> Any:
    xgboost, catboost = pytest.importorskip("xgboost"), pytest.importorskip("catboost")
    boosted = xgboost.XGBClassifier(n_estimators=6, max_depth=4, n_jobs=1)
    light = lightgbm.LGBMClassifier(n_estimators=6, n_jobs=1, verbosity=-1)
    forest = ensemble.RandomForestClassifier(5, max_depth=5, random_state=0)
    known = [
        boosted,
        xgboost.XGBClassifier(n_estimators=4, booster="dart", rate_drop=0.3, n_jobs=1),
        light,
        lightgbm.LGBMClassifier(n_estimators=4, zero_as_missing=True, n_jobs=1, verbosity=-1),
        catboost.CatBoostClassifier(iterations=4, depth=3, verbose=False, allow_writing_files=False, thread_count=1),
        forest,
        ensemble.ExtraTreesClassifier(4, max_depth=5, random_state=0),
        ensemble.GradientBoostingClassifier(n_estimators=4, random_state=0),
        ensemble.HistGradientBoostingClassifier(max_iter=4),
        ensemble.AdaBoostClassifier(n_estimators=3, random_state=0),
        linear_model.LogisticRegression(),
        calibration.CalibratedClassifierCV(light, cv=2),
        calibration.CalibratedClassifierCV(boosted, cv=2),
        ensemble.VotingClassifier([("f", forest), ("l", light)], voting="soft"),
        ensemble.BaggingClassifier(light, n_estimators=2, random_state=0),
        ensemble.StackingClassifier([("f", forest)], cv=2),
    ]
    return known[rng.integers(len(known))]


@pytest.mark.parametrize("seed", trials(100))
def test_random_pipelines_are_read_exactly_or_refused(seed: int) -> None:
    rng = np.random.default_rng(seed)
    frame = table(rng)
    label = ((frame.age > 35) ^ (frame.sign > 0) ^ (frame.town == "x") ^ (rng.random(len(frame)) < 0.1)).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            made = pipeline.make_pipeline(*front(rng), model(rng)).fit(frame, label)
        except (TypeError, ValueError):
            pytest.skip("scikit-learn does not fit these steps")
        try:
            loaded = load(made)
        except ModelError as refused:
            pytest.skip(f"refused: {refused.message}")
        conformance.check(loaded, rows=25).raise_if_wrong()
