"""Searches and cut-offs of scikit-learn: the model inside, and the classes that the wrapper itself predicts."""

from __future__ import annotations

import importlib
import itertools
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import treesens as ts
from tests.frontends.versions import before, since
from treesens.errors import ModelError

ensemble = pytest.importorskip("sklearn.ensemble")
multiclass = pytest.importorskip("sklearn.multiclass")
selection = pytest.importorskip("sklearn.model_selection")

pytestmark = pytest.mark.extensions

WITH_CUT_OFFS = since("sklearn", "1.5")
NAMES = ["p", "q"]
GRID = np.array(list(itertools.product(range(8), repeat=2)))


def rows() -> tuple[pd.DataFrame, np.ndarray]:
    x = np.random.default_rng(1).integers(0, 8, (150, 2))
    y = np.where(x[:, 0] + x[:, 1] + np.random.default_rng(2).normal(0, 2, 150) > 8, "yes", "no")
    return pd.DataFrame(x, columns=NAMES), y


def forest(**more: Any) -> Any:
    return ensemble.RandomForestClassifier(10, max_depth=4, random_state=0, **more)


def wrapped(kind: str) -> Any:
    x, y = rows()
    match kind:
        case "fixed":
            return selection.FixedThresholdClassifier(forest(), threshold=0.2, pos_label="yes").fit(x, y)
        case "fixed-votes":  # pure leaves: votes of ten trees meet 0.2 exactly
            trees = ensemble.RandomForestClassifier(10, random_state=0)
            return selection.FixedThresholdClassifier(trees, threshold=0.2).fit(x, y)
        case "fixed-booster":
            trees = ensemble.HistGradientBoostingClassifier(max_iter=5)
            return selection.FixedThresholdClassifier(trees, threshold=0.7).fit(x, y)
        case "tuned":
            return selection.TunedThresholdClassifierCV(forest(), cv=3, random_state=0).fit(x, y == "yes")
        case "search":
            return selection.GridSearchCV(forest(), {"min_samples_leaf": [1, 5]}, cv=2).fit(x, y)
        case "search of fixed":
            inner = selection.FixedThresholdClassifier(forest(), threshold=0.3)
            return selection.GridSearchCV(inner, {"threshold": [0.3, 0.4]}, cv=2).fit(x, y)
    raise ValueError(kind)


CUT = [pytest.param(kind, marks=WITH_CUT_OFFS) for kind in ("fixed", "fixed-votes", "fixed-booster", "tuned")]
CUT.append(pytest.param("search of fixed", marks=WITH_CUT_OFFS))


@pytest.mark.parametrize("kind", [*CUT, "search"])
def test_classes_are_those_that_the_wrapper_predicts(kind: str) -> None:
    model = wrapped(kind)
    loaded = ts.load(model)
    assert loaded.notes
    predicted = model.predict(pd.DataFrame(GRID, columns=NAMES))
    text = 'model m from "m"\ndata d from "d"\ndomain from d\n'
    second = str(model.classes_[1])
    name = f"`{second}`" if second in ("True", "False") else second
    text += f"query up: count rows of d as a such that class(a) = {name}\n"
    text += f"query down: count rows of d as a such that class(a) != {name}\n"
    answers = ts.check_text(text, models={"m": loaded}, data={"d": pd.DataFrame(GRID, columns=NAMES)})
    for query, expected in (("up", predicted == model.classes_[1]), ("down", predicted != model.classes_[1])):
        count = answers[query].count
        assert count is not None
        assert list(count.rows) == np.flatnonzero(expected).tolist()
        assert not count.undecided


@WITH_CUT_OFFS
@pytest.mark.parametrize("kind", ["fixed", "fixed-booster"])
def test_audits_ask_around_the_cut_off_of_the_model(kind: str) -> None:
    model, (x, _) = wrapped(kind), rows()
    chance = model.estimator_.predict_proba(pd.DataFrame(GRID, columns=NAMES))[:, 1].reshape(8, 8)
    cut = model.threshold
    found = ts.audit(model, x, gap=[0.0, 0.05])
    for varied, gap, flipped in zip(found["varied"], found["gap"], found["rows_flipped"], strict=True):
        axis = NAMES.index(varied)
        high, low = chance.max(axis=axis, keepdims=True), chance.min(axis=axis, keepdims=True)
        below = low < cut - 1e-9 if gap == 0 else low <= cut - gap + 1e-9
        flips = np.broadcast_to((high >= cut + gap - 1e-9) & below, (8, 8))
        assert flipped == int(flips[tuple(x.to_numpy().T)].sum())


@WITH_CUT_OFFS
def test_files_and_pipelines(tmp_path: Path) -> None:
    skops, (x, y) = pytest.importorskip("skops.io"), rows()
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    inner = make_pipeline(StandardScaler(), forest())
    model = selection.FixedThresholdClassifier(inner, threshold=0.2).fit(x, y)
    skops.dump(model, tmp_path / "m.skops")
    loaded = ts.load(tmp_path / "m.skops")
    assert float(loaded.ensemble.cutoff or 0) == 0.2
    assert len(loaded.ensemble.source.sha256) == 64
    outer = make_pipeline(StandardScaler(), selection.FixedThresholdClassifier(forest(), threshold=0.2)).fit(x, y)
    assert float(ts.load(outer).ensemble.cutoff or 0) == 0.2


def test_a_search_without_a_model_says_so() -> None:
    x, y = rows()
    search = selection.GridSearchCV(forest(), {"min_samples_leaf": [1, 5]}, cv=2, refit=False).fit(x, y)
    with pytest.raises(ModelError, match="refit=True"):
        ts.load(search)


@WITH_CUT_OFFS
def test_cut_offs_that_cannot_be_read_say_so() -> None:
    x, y = rows()
    first = selection.FixedThresholdClassifier(forest(), threshold=0.2, pos_label="no").fit(x, y)
    with pytest.raises(ModelError, match="first class"):
        ts.load(first)
    boosted = ensemble.GradientBoostingClassifier()
    raw = selection.FixedThresholdClassifier(boosted, threshold=0.1, response_method="decision_function").fit(x, y)
    with pytest.raises(ModelError, match="a raw score"):
        ts.load(raw)
    for inner in (ensemble.AdaBoostClassifier(n_estimators=3), ensemble.GradientBoostingClassifier(loss="exponential")):
        with pytest.raises(ModelError, match="not a function of the scores"):
            ts.load(selection.FixedThresholdClassifier(inner, threshold=0.3).fit(x, y))


@WITH_CUT_OFFS
@pytest.mark.parametrize("seed", range(4))
def test_a_share_of_votes_that_is_the_cutoff_reaches_it(seed: int) -> None:
    """The float next to 3/10 lies below it: an answer once was `none` where scikit-learn predicts the class."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 3, (60, 2)).astype(float)
    y = (x.sum(axis=1) > 1 + rng.integers(0, 2)).astype(int)  # a function of x, so that leaves are pure
    forest = ensemble.RandomForestClassifier(10, random_state=seed, max_features=1, max_samples=6).fit(x, y)
    grid = np.array([[a, b] for a in range(3) for b in range(3)], float)
    shares = forest.predict_proba(grid)[:, 1]
    reached = sorted({float(p) for p in shares if 0 < p < 1 and Fraction(repr(float(p))).denominator in (2, 5, 10)})
    assert reached
    for cut in reached:
        model = selection.FixedThresholdClassifier(forest, threshold=cut).fit(x, y)
        said = model.predict(grid)
        loaded = ts.load(model)
        one, two = loaded.ensemble.feature_names
        header = f'model m from "m"\nfeature `{one}`: integer in [0, 2]\nfeature `{two}`: integer in [0, 2]\n'
        asked = [
            f"query q{i}_{c}: find a in m such that class(a) = {c}; a.`{one}` = {int(p)}; a.`{two}` = {int(q)}"
            for i, (p, q) in enumerate(grid)
            for c in (0, 1)
        ]
        answers = ts.check_text(header + "\n".join(asked), models={"m": loaded})
        for i, c in itertools.product(range(len(grid)), (0, 1)):
            assert answers[f"q{i}_{c}"].to_dict()["verdict"] == ("found" if said[i] == c else "none"), (cut, grid[i], c)


AROUND = {
    "TransformedTargetRegressor": ("compose", "value", "regressor_"),
    "OneVsRestClassifier": ("multiclass", "three", "estimators_"),
    "OneVsOneClassifier": ("multiclass", "three", "estimators_"),
    "OutputCodeClassifier": ("multiclass", "three", "estimators_"),
    "MultiOutputClassifier": ("multioutput", "two labels", "estimators_"),
    "MultiOutputRegressor": ("multioutput", "two values", "estimators_"),
    "ClassifierChain": ("multioutput", "two labels", "estimators_"),
    "RegressorChain": ("multioutput", "two values", "estimators_"),
    "SelfTrainingClassifier": (
        "semi_supervised",
        "number",
        "base_estimator_" if before("sklearn", "1.6") else "estimator_",
    ),
}


@pytest.mark.parametrize("name", AROUND)
def test_a_model_around_others_is_refused_with_what_to_give_instead(name: str) -> None:
    """And what the remedy says to give is read, and predicts what it does in the library."""
    module, task, attribute = AROUND[name]
    x, y = rows()
    number, value = (y == "yes").astype(int), x.p * 2.0 + x.q
    targets = {
        "value": value,
        "three": np.digitize(value, [6, 12]),
        "two labels": np.column_stack([number, (x.p > 3).astype(int)]),
        "two values": np.column_stack([value, x.q * 1.5]),
        "number": number,
    }
    regressor = ensemble.RandomForestRegressor(5, max_depth=3, random_state=0)
    kind = getattr(importlib.import_module(f"sklearn.{module}"), name)
    options = {"random_state": 6} if name == "OutputCodeClassifier" else {}
    model = kind(regressor if "Regressor" in name else forest(), **options).fit(x.to_numpy(), targets[task])
    with pytest.raises(ModelError, match=f"{name} is not supported") as refused:
        ts.load(model)
    assert f"`{attribute}`" in (refused.value.remedy or "")
    inside = getattr(model, attribute)
    inner = inside[0] if attribute == "estimators_" else inside
    e = ts.load(inner).ensemble
    found = e.margins_emulated(GRID.astype(float))
    expected = inner.predict(GRID) if "Regressor" in name else inner.predict_proba(GRID)
    assert found == pytest.approx(np.asarray(expected).reshape(found.shape), rel=1e-12)


def test_a_part_that_saw_one_class_alone_says_so() -> None:
    x, y = rows()
    targets = np.column_stack([y == "yes", y == "yes", y == "neither"]).astype(int)
    with pytest.warns(UserWarning, match="not 2 is present|Label not 2"):
        model = multiclass.OneVsRestClassifier(forest()).fit(x.to_numpy(), targets)
    with pytest.raises(ModelError, match="_ConstantPredictor is not supported") as refused:
        ts.load(model.estimators_[2])
    assert "predicts the same for every row" in (refused.value.remedy or "")
