"""Linear and logistic regression behind encoders and bins: scikit-learn's own predictions judge the kit and all categories."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import treesens as ts
from treesens.errors import ModelError
from treesens.extensions.conformance import formats as conformance

compose = pytest.importorskip("sklearn.compose")
linear = pytest.importorskip("sklearn.linear_model")
pipeline = pytest.importorskip("sklearn.pipeline")
preprocessing = pytest.importorskip("sklearn.preprocessing")
impute = pytest.importorskip("sklearn.impute")
svm = pytest.importorskip("sklearn.svm")

pytestmark = pytest.mark.extensions

TOWNS, SIZES = "abcde", (10, 20, 30)


def rows() -> tuple[pd.DataFrame, np.ndarray]:
    random, n = np.random.default_rng(8), 300
    x = pd.DataFrame({"number": random.normal(size=n), "town": random.choice(list(TOWNS), n)})
    x["size"] = random.choice(SIZES, n)
    x["gaps"] = np.where(random.random(n) < 0.2, np.nan, random.normal(size=n))
    return x, 2 * x.number.to_numpy() + (x.town == "a") + random.normal(0, 0.3, n)


def bins(**options: Any) -> Any:
    return preprocessing.KBinsDiscretizer(4, strategy="uniform", **options)


def front(hot: dict[str, Any], numbers: Any) -> Any:
    return compose.ColumnTransformer(
        [("hot", preprocessing.OneHotEncoder(**hot), ["town", "size"]), ("bins", numbers, ["number"])]
    )


def with_gaps() -> Any:
    filled = pipeline.make_pipeline(impute.SimpleImputer(add_indicator=True), bins())
    # The indicator is binned, too: a column of one bin at 0 and one at 1.
    return compose.ColumnTransformer(
        [("bins", filled, ["gaps"]), ("town", preprocessing.TargetEncoder(random_state=1), ["town"])]
    )


MODELS: dict[str, Callable[[], Any]] = {
    "sparse": lambda: pipeline.make_pipeline(front({"handle_unknown": "ignore"}, bins()), linear.LogisticRegression()),
    "dense": lambda: pipeline.make_pipeline(
        front({"sparse_output": False}, bins(encode="ordinal")), linear.LogisticRegression()
    ),
    "scaled": lambda: pipeline.make_pipeline(
        front({"sparse_output": False}, bins(encode="onehot-dense")),
        preprocessing.StandardScaler(),
        linear.LogisticRegression(),
    ),
    "threshold": lambda: pipeline.make_pipeline(front({}, preprocessing.Binarizer()), linear.LogisticRegressionCV()),
    "values, sparse": lambda: pipeline.make_pipeline(front({}, bins()), linear.LinearRegression()),
    "values, dense": lambda: pipeline.make_pipeline(
        front({"sparse_output": False}, bins(encode="onehot-dense")), linear.Ridge()
    ),
    "gaps": lambda: pipeline.make_pipeline(with_gaps(), linear.LogisticRegression()),
    "stochastic": lambda: pipeline.make_pipeline(
        front({}, bins()), linear.SGDClassifier(loss="log_loss", random_state=1)
    ),
    "margin of a ridge": lambda: pipeline.make_pipeline(front({}, bins()), linear.RidgeClassifier()),
    "margin of a hinge": lambda: pipeline.make_pipeline(
        front({"sparse_output": False}, bins(encode="ordinal")), linear.SGDClassifier(random_state=1)
    ),
    "margin of a perceptron": lambda: pipeline.make_pipeline(front({}, bins()), linear.Perceptron(random_state=1)),
    "margin of an SVM": lambda: pipeline.make_pipeline(front({}, bins()), svm.LinearSVC(random_state=1)),
    "values, stochastic": lambda: pipeline.make_pipeline(front({}, bins()), linear.SGDRegressor(random_state=1)),
    "values, Bayesian": lambda: pipeline.make_pipeline(
        front({"sparse_output": False}, bins(encode="onehot-dense")), linear.BayesianRidge()
    ),
}


def fitted(name: str) -> Any:
    x, score = rows()
    return MODELS[name]().fit(x, score if name.startswith("values") else (score > 0.5).astype(int))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODELS)
def test_the_kit_finds_no_difference(name: str) -> None:
    loaded = ts.load(fitted(name))
    conformance.check(loaded, rows=100).raise_if_wrong()
    links = {"values": "identity", "margin": "raw"}
    assert loaded.ensemble.link.name == links.get(name.replace(",", "").split()[0], "logistic")


def test_pairs_and_proofs_are_those_of_all_inputs() -> None:
    """One number per bin, every town and every size: the largest change by the town alone."""
    model = fitted("sparse")
    edges = model[0].named_transformers_["bins"].bin_edges_[0]
    numbers = [float(e) for e in (edges[:-1] + edges[1:]) / 2]
    every = pd.DataFrame(list(itertools.product(numbers, TOWNS, SIZES)), columns=["number", "town", "size"])
    every["gaps"] = 0.0
    shown = model.predict_proba(every)[:, 1].reshape(len(numbers), len(TOWNS), len(SIZES))
    reach = float(np.minimum(shown.max(axis=1) - 0.5, 0.5 - shown.min(axis=1)).max())
    assert reach > 0
    text = 'model m from "m"\ndata d from "d"\ndomain from d\n'
    text += f"query yes: sensitive m to {{town}} gap {reach - 1e-9:.12f}\n"
    text += f"query no: sensitive m to {{town}} gap {reach + 1e-9:.12f}\n"
    answers = ts.check_text(text, models={"m": ts.load(model)}, data={"d": rows()[0]})
    assert str(answers["yes"].verdict) == "found"
    assert str(answers["no"].verdict) == "none"


def test_what_has_no_table_is_refused_by_name() -> None:
    x, score = rows()
    y = (score > 0.5).astype(int)
    with pytest.raises(ModelError, match="not supported") as caught:
        ts.load(linear.PoissonRegressor().fit(x[["number"]], y))
    assert "KBinsDiscretizer" in str(caught.value.remedy)


def test_a_column_that_must_not_be_missing_cannot_be_declared_so() -> None:
    text = 'model m from "m"\nfeature number: real in [-2, 2] or missing\nquery q: find a such that prob(a) >= 0.5\n'
    with pytest.raises(ts.errors.TreesensError, match="E313"):
        ts.check_text(text, models={"m": ts.load(fitted("sparse"))})
