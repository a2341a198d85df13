"""Fault 7: at a tie of classes every best class counted as predicted. A library predicts one, by a rule of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.asking import ask, verdict

ensemble = pytest.importorskip("sklearn.ensemble")
pytestmark = pytest.mark.fault


def data() -> tuple[pd.DataFrame, Any]:
    datasets = pytest.importorskip("sklearn.datasets")
    x, y = datasets.make_classification(300, 4, n_informative=3, n_redundant=0, random_state=0, flip_y=0.1)
    return pd.DataFrame(x, columns=list("wxyz")), y


@pytest.fixture(scope="module")
def forest() -> Any:
    """Four trees with pure leaves: many rows get two votes for each class."""
    x, y = data()
    model = ensemble.RandomForestClassifier(4, random_state=0).fit(x, y)
    assert (model.predict_proba(x)[:, 1] == 0.5).sum() >= 5
    return model


def test_counts_of_classes_add_up(forest: Any) -> None:
    x, _ = data()
    predicted = forest.predict(x)
    for label in (0, 1):
        answer = ask(forest, f"count rows of d as a such that class(a) = {label}", "domain from d", x)
        assert list(answer.count.rows) == np.flatnonzero(predicted == label).tolist()


@pytest.mark.parametrize("backend", ["native", "cpsat", "highs", "z3"])
def test_a_tie_belongs_to_the_first_class(forest: Any, backend: str) -> None:
    x, _ = data()
    assert (
        verdict(forest, "find a such that class(a) = 1; prob(a, 1) <= 0.5", "domain from d", x, backend=backend)
        == "none"
    )
    tie = ask(forest, "find a such that class(a) = 0; prob(a, 1) >= 0.5", "domain from d", x, backend=backend)
    point = pd.DataFrame([tie.points["a"]])[list(x.columns)]
    assert (forest.predict(point)[0], forest.predict_proba(point)[0, 1]) == (0, 0.5)


def test_different_classes_differ_in_the_library(forest: Any) -> None:
    x, _ = data()
    answer = ask(
        forest, "find a, b such that a = b except w; class(a) != class(b); prob(a, 1) = 0.5", "domain from d", x
    )
    if answer.verdict == "found":
        a, b = (forest.predict(pd.DataFrame([answer.points[p]])[list(x.columns)])[0] for p in "ab")
        assert a != b


def test_a_proof_has_no_near_miss(forest: Any) -> None:
    x, _ = data()
    question = "find a, b such that a = b except w; class(a) != class(b); prob(a, 1) = 0.5; prob(b, 1) < 0.5"
    answer = ask(forest, question, "domain from d", x, backend="auto")
    assert answer.verdict == "none"
    assert "near_miss" not in answer.to_dict()


@pytest.mark.parametrize(
    ("name", "options"),
    [("GradientBoostingClassifier", {"n_estimators": 1}), ("HistGradientBoostingClassifier", {"max_iter": 1})],
)
def test_a_margin_of_zero_belongs_to_the_class_of_the_library(name: str, options: dict[str, int]) -> None:
    x = pd.DataFrame({"f": [0.0, 0.0, 1.0, 1.0] * 10})
    model = getattr(ensemble, name)(**options).fit(x, [0, 1, 0, 1] * 10)
    assert np.ravel(model.decision_function(x[:1]))[0] == 0
    predicted = int(model.predict(x[:1])[0])
    for label in (0, 1):
        expected = "found" if label == predicted else "none"
        assert verdict(model, f"find a such that class(a) = {label}", "feature f: integer in [0, 1]") == expected


def test_a_tie_of_three_classes_is_the_first_of_them() -> None:
    tree = pytest.importorskip("sklearn.tree")
    x, y = [[0], [0], [1], [1], [2], [2]], [0, 2, 1, 2, 0, 1]
    model = tree.DecisionTreeClassifier().fit(x, y)
    predicted = [int(v) for v in model.predict([[0], [1], [2]])]
    for value in range(3):
        for label in range(3):
            found = verdict(
                model, f"find a such that a.f0 = {value}; class(a) = {label}", "feature f0: integer in [0, 2]"
            )
            assert (found == "found") == (predicted[value] == label)
