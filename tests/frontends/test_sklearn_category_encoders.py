"""Pipelines with encoders of category_encoders and feature-engine, compared with the pipeline's own predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline

import treesens as ts
from treesens.data.tables import align_table, read_table
from treesens.errors import ModelError
from treesens.extensions.studies.losses import rows_of
from treesens.frontends import load

pytestmark = pytest.mark.filterwarnings("ignore")
ENCODERS = [
    *(
        ("category_encoders", name)
        for name in ("CountEncoder", "JamesSteinEncoder", "MEstimateEncoder", "OrdinalEncoder")
    ),
    *(("category_encoders", name) for name in ("TargetEncoder", "WOEEncoder")),
    *(("feature_engine.encoding", name) for name in ("CountFrequencyEncoder", "MeanEncoder", "WoEEncoder")),
]


def rows() -> tuple[pd.DataFrame, pd.Series[int]]:
    rng = np.random.default_rng(0)
    x = pd.DataFrame(
        {"age": rng.random(300), "job": rng.choice(list("abcd"), 300), "town": rng.choice(["n", "s"], 300)}
    )
    return x, (x.job.isin(["a", "d"]) ^ (x.age > 0.5) ^ (rng.random(300) > 0.8)).astype(int)


@pytest.mark.parametrize(("library", "name"), ENCODERS)
def test_predictions_are_those_of_the_pipeline(library: str, name: str) -> None:
    encoder: Any = getattr(pytest.importorskip(library), name)()
    x, y = rows()
    made = make_pipeline(encoder, RandomForestClassifier(5, random_state=0)).fit(x, y)
    model = load(made)
    matrix = rows_of(model, align_table(model, read_table(x)))
    assert np.array_equal(model.ensemble.margins_emulated(matrix), made.predict_proba(x))
    assert np.array_equal(model.margins(matrix), made.predict_proba(x))
    if library == "category_encoders":
        other = x.assign(job=x.job.where(x.age > 0.3, None))
        matrix = rows_of(model, align_table(model, read_table(other)))
        assert np.array_equal(model.ensemble.margins_emulated(matrix), made.predict_proba(other))
    assert ts.audit(made, x, vary=["job"], gap=0.05)["verdict"] == ["found"]


def test_encoders_that_drop_columns_are_refused() -> None:
    x, y = rows()
    encoder = pytest.importorskip("category_encoders").OrdinalEncoder(drop_invariant=True)
    with pytest.raises(ModelError, match="may drop columns"):
        load(make_pipeline(encoder, RandomForestClassifier(3)).fit(x, y))
