"""What needs an extension ends in an error with a remedy if this is the core alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treesens as ts
from tests.binder.setting import bound
from treesens import builtin
from treesens.compiler.base.diagnostics import DiagnosticsError
from treesens.errors import ModelError, UsageError
from treesens.frontends.sklearn import frontend, model
from treesens.solve.options import Options
from treesens.solve.question import answer_question

TEXT = "query q: find a in binary such that margin(a) >= 0"


@pytest.fixture(autouse=True)
def core_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (builtin, frontend, model):
        monkeypatch.setattr(module, "has_extensions", lambda: False)


def test_a_share_is_an_error_at_its_place() -> None:
    with pytest.raises(DiagnosticsError, match=r"E223.*lacks measures[\s\S]*pip install treesens") as failed:
        bound(f"measure p: uniform\n{TEXT}\n share of p", models=("binary",))
    (one,) = failed.value.diagnostics
    assert one.span is not None
    assert one.span.text == "p"


def test_the_nearest_row_is_refused() -> None:
    text = f"{TEXT} minimize distance(a, nearest row of rows, l1)"
    with pytest.raises(
        DiagnosticsError, match=r"E219.*lacks answers[\s\S]*nearest row of rows[\s\S]*pip install treesens"
    ):
        bound(text, models=("binary",))


def test_cavities_of_any_width_are_refused() -> None:
    with pytest.raises(DiagnosticsError, match=r"E219.*lacks answers[\s\S]*avoid[\s\S]*pip install treesens"):
        bound(f"{TEXT} and a avoid cavities(rows, width = 9)", models=("binary",))


def test_certificates_are_missed_before_any_work(tmp_path: Path) -> None:
    question = bound(TEXT, models=("binary",))["q"]
    with pytest.raises(UsageError, match="lacks certificates"):
        answer_question(question, Options(certificates=tmp_path))


def test_compositions_of_scikit_learn_are_refused() -> None:
    ensemble, linear = pytest.importorskip("sklearn.ensemble"), pytest.importorskip("sklearn.linear_model")
    from sklearn import pipeline, preprocessing, tree

    class Other(tree.DecisionTreeClassifier):  # type: ignore[misc]
        """A tree that predicts by code of its own."""

    x, y = np.arange(8.0)[:, None], np.arange(8) % 2
    forest = ensemble.RandomForestClassifier(2, max_depth=2)
    refused: dict[str, Any] = {
        "Pipeline is not supported": pipeline.make_pipeline(preprocessing.StandardScaler(), forest),
        "LogisticRegression is not supported": linear.LogisticRegression(),
        "VotingClassifier is not supported": ensemble.VotingClassifier([("f", forest)]),
        "a bag of RandomForestClassifier is a model of models": ensemble.BaggingClassifier(forest, n_estimators=2),
        "a bag of Other is a model of models": ensemble.BaggingClassifier(Other(), n_estimators=2),
    }
    for message, obj in refused.items():
        with pytest.raises(ModelError, match=rf"{message}[\s\S]*pip install treesens"):
            ts.load(obj.fit(x, y))
    several = forest.fit(x, np.stack([y, 1 - y], axis=1))
    with pytest.raises(UsageError, match=r"lacks compositions[\s\S]*pip install treesens"):
        ts.load(several, "sklearn:output=0")
    bag = ensemble.BaggingClassifier(n_estimators=2, max_features=1).fit(x, y)
    assert ts.load(bag).ensemble.n_trees == 2
