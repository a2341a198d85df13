"""Subclasses of scikit-learn's models that change the training alone are read as their parents."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
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
    # The library on a sample of rows and values: both sides of the gap are never reached.
    for one in proved:
        column = int(one["varied"][0][1:])
        rows = np.repeat(many[:40], 60, axis=0)
        rows[:, column] = np.tile(np.linspace(many[:, column].min(), many[:, column].max(), 60), 40)
        shown = model.predict_proba(rows)[:, 1].reshape(40, 60)
        assert not ((shown.min(axis=1) <= 0.5 - one["gap"]) & (shown.max(axis=1) >= 0.5 + one["gap"])).any()


def test_a_bag_of_boosted_votes_for_three_classes_is_refused_with_a_remedy() -> None:
    kind = pytest.importorskip("imblearn.ensemble").EasyEnsembleClassifier
    model = kind(n_estimators=2, random_state=0).fit(X, Y + (X[:, 2] > 0.5))
    with pytest.raises(ModelError, match="not functions of its scores") as told:
        load(model)
    assert "<EasyEnsembleClassifier>" in told.value.place
    assert "pass the inner models one by one" in str(told.value.remedy)


@pytest.mark.parametrize("constraints", ["demographic_parity", "equalized_odds"])
def test_lots_between_cutoffs_are_refused_with_a_decision_that_states_them(constraints: str) -> None:
    """The decision gives each row the outcome that the optimizer's own chances have."""
    kind = pytest.importorskip("fairlearn.postprocessing").ThresholdOptimizer
    table = pd.DataFrame(X, columns=["f0", "f1", "f2"]).assign(group=np.where(X[:, 2] > 0.5, "a b", "c"))
    coded = table.assign(group=(table.group == "c").astype(int))
    inner = RandomForestClassifier(5, max_depth=4, random_state=0)
    model = kind(estimator=inner, constraints=constraints, predict_method="predict_proba")
    model.fit(coded, Y, sensitive_features=table.group)
    with pytest.raises(ModelError, match="it draws lots between cut-offs") as told:
        load(model)
    before, decision = str(told.value.remedy).split(": ", 1)
    assert "pass its `estimator_`" in before
    chances = model._pmf_predict(coded, sensitive_features=table.group)[:, 1]
    expected = np.where(chances > 1 - 1e-9, "yes", np.where(chances > 1e-9, "drawn", "no"))
    head = 'model m from "m"\ndata d from "d"\nfeature group: category {`a b` = 0, c = 1}\ndomain from d\n'
    for outcome in ("yes", "drawn", "no"):
        question = f"\nquery q: count rows of d as a such that decision(a) = {outcome}"
        text = head + decision.replace("GROUP", "group") + question
        answer = ts.check_text(text, models={"m": model.estimator_}, data={"d": coded})["q"]
        assert list(answer.count.rows) == np.flatnonzero(expected == outcome).tolist()


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
