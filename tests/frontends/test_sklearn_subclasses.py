"""Subclasses of scikit-learn's models that change the training alone are read as their parents."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import AdaBoostClassifier, RandomForestClassifier, RandomForestRegressor
from sklearn.tree import DecisionTreeClassifier

import treesens as ts
from treesens.errors import ModelError
from treesens.extensions.conformance import formats as conformance
from treesens.frontends import load

_RNG = np.random.default_rng(0)
X = _RNG.random((300, 3)).round(3)
Y = (X[:, 0] - X[:, 1] > 0.4).astype(int)


@pytest.mark.parametrize("name", ["BalancedRandomForestClassifier", "RUSBoostClassifier", "BalancedBaggingClassifier"])
def test_models_of_imbalanced_learn(name: str) -> None:
    kind = getattr(pytest.importorskip("imblearn.ensemble"), name)
    model = kind(n_estimators=5, random_state=0).fit(X, Y)
    read = load(model)
    assert conformance.check(read, rows=100).ok
    e = read.ensemble
    labels = [e.classes[c] for c in e.predicted_classes(e.margins_emulated(X))]
    assert labels == model.predict(X).tolist()
    if name != "RUSBoostClassifier":
        assert np.array_equal(e.margins_emulated(X), model.predict_proba(X))


@pytest.mark.parametrize("depth", [1, 3])
def test_bags_of_boosted_votes_have_the_probabilities_of_the_library(depth: int) -> None:
    kind = pytest.importorskip("imblearn.ensemble").EasyEnsembleClassifier
    inner = AdaBoostClassifier(DecisionTreeClassifier(max_depth=depth), n_estimators=6, random_state=0)
    model = kind(n_estimators=3, estimator=inner, random_state=0).fit(X, Y)
    read = load(model)
    conformance.check(read, rows=100).raise_if_wrong()
    shown = read.ensemble.probabilities(read.ensemble.margins_emulated(X))
    assert shown == pytest.approx(model.predict_proba(X), rel=1e-14)
    answer = ts.sensitivity(model, vary="f0", gap=0.05, data=X)
    assert answer.verdict == "found"
    low, high = sorted(model.predict_proba(np.asarray(answer.pair, float))[:, 1])
    assert low <= 0.45
    assert high >= 0.55


def test_no_row_flips_where_no_input_does() -> None:
    """Not all values of a row are tried within the time, but a proof about all inputs decides for rows, too."""
    kind = pytest.importorskip("imblearn.ensemble").EasyEnsembleClassifier
    model = kind(n_estimators=10, random_state=0).fit(X, Y)
    many = _RNG.random((2000, 3))
    records = ts.audit(model, many, vary=["f0", "f1"], gap=["0.05", "0.4"], time_limit=1).records
    proved = [one for one in records if one["verdict"] == "none"]
    assert proved
    assert all(one["rows_complete"] and one["rows_flipped"] == 0 for one in proved)


def test_a_bag_of_boosted_votes_for_three_classes_is_refused_with_a_remedy() -> None:
    kind = pytest.importorskip("imblearn.ensemble").EasyEnsembleClassifier
    model = kind(n_estimators=2, random_state=0).fit(X, Y + (X[:, 2] > 0.5))
    with pytest.raises(ModelError, match="not functions of its scores") as told:
        load(model)
    assert "<EasyEnsembleClassifier>" in told.value.place
    assert "pass the inner models one by one" in str(told.value.remedy)


def test_randomised_predictions_are_refused_with_the_model_to_pass() -> None:
    kind = pytest.importorskip("fairlearn.postprocessing").ThresholdOptimizer
    forest = RandomForestClassifier(3, random_state=0)
    model = kind(estimator=forest, predict_method="predict_proba").fit(X, Y, sensitive_features=X[:, 2] > 0.5)
    with pytest.raises(ModelError, match="ThresholdOptimizer is not supported") as told:
        load(model)
    assert "pass its `estimator_`" in str(told.value.remedy)
    assert load(model.estimator_).ensemble.n_trees == 3


class Seeded(RandomForestRegressor):
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        return super().fit(X, y, sample_weight)


class Halved(RandomForestClassifier):
    def predict_proba(self, X: Any) -> Any:
        return super().predict_proba(X) / 2


class Rounded(RandomForestRegressor):
    def _validate_X_predict(self, X: Any) -> Any:
        return super()._validate_X_predict(np.round(X))


class Watched(RandomForestRegressor):
    def __getattribute__(self, name: str) -> Any:
        return super().__getattribute__(name)


def test_own_subclasses_are_read_if_they_predict_as_their_parents() -> None:
    model = Seeded(3, random_state=0).fit(X, X[:, 2])
    assert np.array_equal(load(model).ensemble.margins_emulated(X)[:, 0], model.predict(X))


@pytest.mark.parametrize(
    ("kind", "method"),
    [(Halved, "predict_proba"), (Rounded, "_validate_X_predict"), (Watched, "__getattribute__")],
)
def test_other_subclasses_are_refused_by_their_method(kind: Any, method: str) -> None:
    with pytest.raises(ModelError, match=f"with its own `{method}`"):
        load(kind(3, random_state=0).fit(X, Y))
