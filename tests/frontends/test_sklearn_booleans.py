"""Boolean columns, and categories that an encoder does not know: what the estimator predicts, or one sentence with a remedy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import treesens as ts
from treesens.errors import TreesensError

ensemble = pytest.importorskip("sklearn.ensemble")
compose = pytest.importorskip("sklearn.compose")
pipeline = pytest.importorskip("sklearn.pipeline")
preprocessing = pytest.importorskip("sklearn.preprocessing")

pytestmark = pytest.mark.extensions


def table() -> tuple[pd.DataFrame, np.ndarray]:
    random = np.random.default_rng(0)
    x = pd.DataFrame({"x": random.integers(0, 6, 200), "b": random.integers(0, 2, 200).astype(bool)})
    x["c"] = random.choice(["u", "v", "w"], 200)
    return x, ((x.x > 2) ^ x.b ^ (random.random(200) < 0.1)).astype(int).to_numpy()


def forest() -> Any:
    return ensemble.RandomForestClassifier(5, max_depth=4, random_state=0)


def encoded(encoder: Any, columns: list[str]) -> Any:
    return compose.ColumnTransformer([("codes", encoder, columns)], remainder="passthrough")


HOT = preprocessing.OneHotEncoder
MODELS: dict[str, tuple[Any, list[str]]] = {
    "as they are": (forest, ["x", "b"]),
    "histogram": (lambda: ensemble.HistGradientBoostingClassifier(max_iter=4), ["x", "b"]),
    "scaled": (lambda: pipeline.make_pipeline(preprocessing.StandardScaler(), forest()), ["x", "b"]),
    "one-hot": (lambda: pipeline.make_pipeline(encoded(HOT(), ["b", "c"]), forest()), ["x", "b", "c"]),
    "ordinal": (
        lambda: pipeline.make_pipeline(encoded(preprocessing.OrdinalEncoder(), ["b", "c"]), forest()),
        ["x", "b", "c"],
    ),
    "passed through": (lambda: pipeline.make_pipeline(encoded(HOT(), ["c"]), forest()), ["x", "b", "c"]),
}
NAMED = ("one-hot", "ordinal")
"""Models that read a boolean column as a category with the names False and True."""


@pytest.mark.parametrize("name", MODELS)
def test_boolean_columns(name: str) -> None:
    x, y = table()
    make, columns = MODELS[name]
    model, rows = make().fit(x[columns], y), x[columns]
    chance = model.predict_proba(rows)[:, 1]
    other = model.predict_proba(rows.assign(b=~rows.b))[:, 1]
    true = "True" if name in NAMED else "1"
    text = f"""model m from "m"
data d from "d"
domain from d
query high: count rows of d as a such that prob(a) >= 0.501
query when: count rows of d as a such that a.b = {true}
query flips: count rows of d as a, b such that a = b except b; prob(a) >= 0.6; prob(b) <= 0.4
"""
    found = ts.check_text(text, models={"m": model}, data={"d": rows})
    assert list(found["high"].count.rows) == np.flatnonzero(chance >= 0.501).tolist()
    assert list(found["when"].count.rows) == np.flatnonzero(rows.b).tolist()
    assert list(found["flips"].count.rows) == np.flatnonzero((chance >= 0.6) & (other <= 0.4)).tolist()
    audit = ts.audit(model, rows, vary=["b"], gap=[0.1])
    both = np.maximum(chance, other) >= 0.6, np.minimum(chance, other) <= 0.4
    assert audit["rows_flipped"] == [int((both[0] & both[1]).sum())]


def test_the_other_name_of_a_truth_value_is_explained() -> None:
    x, y = table()
    asked = 'model m from "m"\nquery q: find a such that a.b = {}'
    number, named = (MODELS[name][0]().fit(x[MODELS[name][1]], y) for name in ("scaled", "one-hot"))
    with pytest.raises(TreesensError, match="`b` is a number, but `True` is a name") as caught:
        ts.check_text(asked.format("True"), models={"m": number})["q"]
    assert "write a number" in str(caught.value)
    with pytest.raises(TreesensError, match="no category with this number") as caught:
        ts.check_text(asked.format("1"), models={"m": named})["q"]
    assert "`False`, `True`" in str(caught.value)


@pytest.mark.parametrize("ignored", [False, True])
def test_unknown_categories(ignored: bool) -> None:
    """A category that no encoder knows: named in a question it is a mistake, and so is a row that has it."""
    x, y = table()
    encoder = HOT(handle_unknown="ignore" if ignored else "error")
    model = pipeline.make_pipeline(encoded(encoder, ["b", "c"]), forest()).fit(x, y)
    text = 'model m from "m"\ndata d from "d"\ndomain from d\nquery q: count rows of d as a such that prob(a) >= 0.501'
    with pytest.raises(TreesensError, match="no category `zzz`") as caught:
        ts.check_text(text.replace("prob(a) >= 0.501", "a.c = zzz"), models={"m": model}, data={"d": x})["q"]
    assert "`u`, `v`, `w`" in str(caught.value)
    strange = x.assign(c=["zzz", *x.c[1:]])
    with pytest.raises(TreesensError, match="zzz") as caught:
        ts.check_text(text, models={"m": model}, data={"d": strange})["q"]
    assert "help:" in str(caught.value)
