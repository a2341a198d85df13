"""Tiny models of real libraries whose every input is predicted by the library itself: the truth about shares."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from tests.corpus import margins_of
from treesens.frontends.base import LoadedModel
from treesens.python.questions import load

FEATURES = 4
NAMES = [f"f{i}" for i in range(FEATURES)]

Concerned = Callable[[Any, float], bool]
"""From the library's scores of all choices [choices, outputs] and a size to whether the input is concerned."""


def crosses(scores: Any, size: float) -> bool:
    """Around 0: some choice at or above the margin, some at or below its negative; at 0 the second has to be below."""
    return bool((scores[:, 0] >= size).any() and (scores[:, 0] <= -size).any())


def changes_probability(scores: Any, size: float) -> bool:
    return bool((scores[:, 1] >= 0.5 + size).any() and (scores[:, 1] <= 0.5 - size).any())


def moves(scores: Any, size: float) -> bool:
    return bool(scores[:, 0].max() - scores[:, 0].min() >= size)


def between(first: int, second: int) -> Concerned:
    """One choice makes one class lead every other by a size, another choice the other class."""

    def leads(scores: Any, wanted: int, size: float) -> bool:
        others = np.delete(scores, wanted, axis=1)
        return bool(((scores[:, wanted] - others.max(axis=1)) >= size).any())

    return lambda scores, size: leads(scores, first, size) and leads(scores, second, size)


@dataclass
class Case:
    """A model, its rows, the library's scores of rows [rows, outputs], and sizes of the question (with its kind)."""

    name: str
    model: LoadedModel
    frame: pd.DataFrame
    scores: Callable[[Any], Any]
    kind: str
    sizes: Sequence[str]
    concerned: Sequence[Concerned]
    live: Any = None
    """The model as its library has it."""


def rows_of(random: np.random.Generator, *, count: int = 60, values: int = 5) -> pd.DataFrame:
    """Whole numbers whose columns depend on each other a little."""
    first = random.integers(0, values, count)
    columns = [
        first,
        *((first * random.integers(0, 2, count) + random.integers(0, 3, count)) % values for _ in NAMES[1:]),
    ]
    return pd.DataFrame(np.stack(columns, axis=1).astype(np.float64), columns=NAMES)


def _labels(random: np.random.Generator, frame: pd.DataFrame, classes: int) -> Any:
    raw = frame.to_numpy() @ random.normal(size=FEATURES) + random.normal(size=len(frame))
    labels = np.digitize(raw, np.quantile(raw, np.linspace(0, 1, classes + 1)[1:-1]))
    labels[:classes] = np.arange(classes)
    return labels


def xgboost_case(random: np.random.Generator) -> Case:
    import xgboost as xgb

    frame = rows_of(random)
    classes = int(random.integers(2, 4))
    labels = _labels(random, frame, classes)
    settings = {"max_depth": int(random.integers(1, 4)), "eta": 0.8, "base_score": 0.5, "seed": 1, "nthread": 1}
    settings |= (
        {"objective": "multi:softprob", "num_class": classes} if classes > 2 else {"objective": "binary:logistic"}
    )
    booster = xgb.train(settings, xgb.DMatrix(frame, labels), num_boost_round=int(random.integers(1, 5)))

    def scores(rows: Any) -> Any:
        found = margins_of(booster, pd.DataFrame(rows, columns=NAMES))
        return np.asarray(found, np.float64).reshape(len(rows), -1)

    sizes = ["0.123", "0.317"]
    asked = [crosses] if classes == 2 else [between(0, 1), between(0, 2), between(1, 2)]
    return Case("xgboost", load(booster), frame, scores, "margin", sizes, asked, booster)


def forest_case(random: np.random.Generator) -> Case:
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    frame = rows_of(random)
    settings = {"n_estimators": int(random.integers(1, 6)), "max_depth": int(random.integers(1, 5)), "random_state": 1}
    if random.random() < 0.5:
        forest = RandomForestClassifier(**settings).fit(frame, _labels(random, frame, 2))

        def probabilities(rows: Any) -> Any:
            return forest.predict_proba(pd.DataFrame(rows, columns=NAMES))

        return Case("forest", load(forest), frame, probabilities, "gap", ["0.0711", "0.1733"], [changes_probability])
    regressor = RandomForestRegressor(**settings).fit(frame, frame.to_numpy() @ random.normal(size=FEATURES))

    def values(rows: Any) -> Any:
        return regressor.predict(pd.DataFrame(rows, columns=NAMES)).reshape(-1, 1)

    return Case("regressor", load(regressor), frame, values, "gap", ["0.3137", "1.0713"], [moves])


def lightgbm_case(random: np.random.Generator) -> Case:
    import lightgbm as lgb

    frame = rows_of(random, count=120)
    settings = {"objective": "binary", "num_leaves": int(random.integers(2, 8)), "min_data_in_leaf": 3, "verbose": -1}
    settings |= {"learning_rate": 0.7, "num_threads": 1, "min_sum_hessian_in_leaf": 1e-3}
    settings |= {"min_data_per_group": 2, "cat_smooth": 1, "max_cat_to_onehot": 2}
    categories = [1] if random.random() < 0.5 else []
    data = lgb.Dataset(frame, _labels(random, frame, 2), categorical_feature=categories, params={"verbose": -1})
    booster = lgb.train(settings, data, num_boost_round=int(random.integers(1, 5)))

    def scores(rows: Any) -> Any:
        return np.asarray(booster.predict(np.asarray(rows), raw_score=True)).reshape(-1, 1)

    return Case("lightgbm", load(booster), frame, scores, "margin", ["0.123", "0.317"], [crosses], booster)


CASES = (xgboost_case, forest_case, lightgbm_case)


def concerned_inputs(
    case: Case, options: Sequence[Any], varied: Sequence[int], size: float, concerned: Concerned
) -> Iterator[tuple[tuple[int, ...], bool]] | None:
    """Every combination of places in `options` (values per feature) of the features that stay, and whether it is concerned.

    None if the library's rounding could decide one of them.
    """
    others = [f for f in range(FEATURES) if f not in varied]
    places = list(product(*(range(len(options[f])) for f in others)))
    choices = list(product(*(options[f] for f in varied)))
    rows = np.zeros((len(places), len(choices), FEATURES))
    for i, place in enumerate(places):
        for f, at in zip(others, place, strict=True):
            rows[i, :, f] = options[f][at]
        rows[i][:, list(varied)] = choices
    scores = case.scores(rows.reshape(-1, FEATURES)).reshape(len(places), len(choices), -1)
    sure = [concerned(s, size - 1e-4) == concerned(s, size + 1e-4) for s in scores]
    if not all(sure):
        return None
    return ((place, concerned(s, size)) for place, s in zip(places, scores, strict=True))
