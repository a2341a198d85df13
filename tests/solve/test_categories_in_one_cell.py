"""Fault 1: categories that no split of the model lists shared one cell, so that questions could not tell them apart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import treesens as ts
from tests.asking import ask, verdict

xgb = pytest.importorskip("xgboost")
lgb = pytest.importorskip("lightgbm")
pytestmark = pytest.mark.fault
DECLARED = "feature c: category {A = 0, B = 1, C = 2, D = 3}"


@pytest.fixture(scope="module")
def booster(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Its only split sends the codes 0 and 1 one way; 2 and 3 stand in no set."""
    codes = np.repeat([0.0, 1.0, 2.0, 3.0], 25)[:, None]
    data = xgb.DMatrix(
        codes, label=(codes[:, 0] >= 2).astype(int), feature_names=["c"], feature_types=["c"], enable_categorical=True
    )
    model = xgb.train(
        {"objective": "binary:logistic", "max_depth": 1, "max_cat_to_onehot": 1, "base_score": 0.5}, data, 1
    )
    path: Path = tmp_path_factory.mktemp("m") / "m.json"
    model.save_model(path)
    tree = json.loads(path.read_text())["learner"]["gradient_booster"]["model"]["trees"][0]
    assert set(tree["categories"]) <= {0, 1} or set(tree["categories"]) <= {2, 3}
    return model


def probability(booster: Any, code: float) -> float:
    data = xgb.DMatrix(np.array([[code]]), feature_names=["c"], feature_types=["c"], enable_categorical=True)
    return float(booster.predict(data)[0])


@pytest.mark.parametrize("backend", ["native", "cpsat", "z3", "highs"])
@pytest.mark.parametrize(
    ("constraint", "codes"),
    [("a.c in {A, D}", [0, 3]), ("a.c != C", [0, 1, 3]), ("a.c = D", [3]), ("a.c in {A, B}", [0, 1])],
)
@pytest.mark.sampled
def test_each_category_is_told_apart(booster: Any, backend: str, constraint: str, codes: list[int]) -> None:
    expected = "found" if any(probability(booster, c) >= 0.5 for c in codes) else "none"
    assert verdict(booster, f"find a such that {constraint}; prob(a) >= 0.5", DECLARED, backend=backend) == expected


def test_a_row_prints_its_own_category(booster: Any) -> None:
    rows = pd.DataFrame({"c": [3.0, 2.0, 1.0, 0.0]})
    for row, name in enumerate("DCBA"):
        assert ask(booster, f"find a such that a = row {row} of d", DECLARED, rows).points["a"]["c"] == name


def test_rows_are_counted_by_their_own_category(booster: Any) -> None:
    rows = pd.DataFrame({"c": [3.0, 2.0, 1.0, 0.0, 3.0]})
    for name, code in zip("ABCD", range(4), strict=True):
        expected = int((rows["c"] == code).sum())
        assert len(ask(booster, f"count rows of d as a such that a.c = {name}", DECLARED, rows).count.rows) == expected


def test_codes_of_the_data_that_the_model_has_never_seen_are_values(booster: Any) -> None:
    rows = pd.DataFrame({"c": [0.0, 1.0, 2.0, 3.0, 5.0]})
    found = ask(booster, "find a such that a.c = 5", "domain from d", rows)
    assert found.points["a"]["c"] == 5
    assert found.to_dict()["scores"]["a"]["prob"] == pytest.approx(probability(booster, 5.0), abs=1e-6)


def test_two_models_that_know_different_numbers_of_categories() -> None:
    def trained(seen: int) -> Any:
        codes = np.tile(np.arange(seen), 60)
        options = {"min_data_in_leaf": 1, "min_data_per_group": 1, "cat_smooth": 0, "min_data_in_bin": 1, "verbose": -1}
        rows = lgb.Dataset(
            codes[:, None] * 1.0, codes % 2, feature_name=["c"], categorical_feature=["c"], params=options
        )
        return lgb.train({"objective": "binary", **options}, rows, 3)

    old, new = trained(3), trained(5)
    values = np.arange(6.0)[:, None]
    differ = (old.predict(values) > 0.5) != (new.predict(values) > 0.5)
    text = (
        'model old from "old"\nmodel new from "new"\nfeature c: category {0, 1, 2, 3, 4, 5}\n'
        "query q: find a in old, b in new such that a = b; class(a) != class(b)\n  top 10\n"
    )
    answers = ts.check_text(text, models={"old": old, "new": new})
    assert (str(answers["q"].verdict) == "found") == bool(differ.any())
    if differ.any():
        assert bool(differ[int(answers["q"].points["a"]["c"])])
