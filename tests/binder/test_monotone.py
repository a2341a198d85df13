"""`expect increasing(M, F)`: judged by the library over all inputs of a small domain, for every kind of score."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xgboost
from sklearn.ensemble import RandomForestClassifier, VotingClassifier

import treesens as ts
from tests.corpus import boosted
from treesens.errors import TreesensError

INPUTS = np.array(list(itertools.product(range(4), repeat=3)), np.float32)
NAMES = ["x", "y", "z"]
DOMAIN = "".join(f"feature {n}: integer in [0, 3]\n" for n in NAMES)


def falls(scores: np.ndarray, feature: int) -> bool:
    """Whether a score falls anywhere while one feature rises, over the grid of all inputs."""
    grid = np.moveaxis(scores.reshape(4, 4, 4), feature, 0)
    return any((grid[high] < grid[low]).any() for low, high in itertools.combinations(range(4), 2))


def expected(scores: np.ndarray) -> dict[str, str]:
    return {
        f"{way}[{name}]": "found" if falls(sign * scores, f) else "none"
        for f, name in enumerate(NAMES)
        for way, sign in (("up", 1), ("down", -1))
    }


def asked(model: Any, extra: str = "") -> dict[str, str]:
    text = f'model m from "m"\n{DOMAIN}'
    for way, word in (("up", "increasing"), ("down", "decreasing")):
        text += f"for each f in features:\n  query {way}: expect {word}(m, f{extra})\n"
    answers = ts.check_text(text, models={"m": model})
    for name in answers:
        assert answers[name].to_dict()["as_expected"] is (answers[name].verdict == "none")
    return {name: str(answers[name].verdict) for name in answers}


def labels(seed: int, classes: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    latent = INPUTS[:, 0] - INPUTS[:, 1] + rng.normal(size=len(INPUTS)) / 2
    return np.digitize(latent, np.quantile(latent, np.arange(1, classes) / classes))


@pytest.mark.parametrize("seed", range(3))
def test_binary_and_regression(seed: int) -> None:
    for objective in ("binary:logistic", "reg:squarederror"):
        data = xgboost.DMatrix(INPUTS, labels(seed, 2), feature_names=NAMES)
        settings = {"objective": objective, "max_depth": 3, "monotone_constraints": "(1,-1,0)"}
        booster = xgboost.train(settings, data, 4)
        truth = expected(booster.predict(data, output_margin=True))
        assert truth["up[x]"] == truth["down[y]"] == "none"
        assert "found" in truth.values()
        assert asked(booster) == truth


def test_classes() -> None:
    data = xgboost.DMatrix(INPUTS, labels(1, 3), feature_names=NAMES)
    booster = xgboost.train({"objective": "multi:softprob", "num_class": 3, "max_depth": 2}, data, 3)
    scores = booster.predict(data, output_margin=True)
    for c in range(3):
        assert asked(booster, f", {c}") == expected(scores[:, c])


@pytest.mark.extensions
def test_means_of_models() -> None:
    forests = [(str(s), RandomForestClassifier(2, max_depth=2, random_state=s)) for s in range(2)]
    boosted = xgboost.XGBClassifier(n_estimators=2, max_depth=2)
    vote = VotingClassifier([*forests, ("b", boosted)], voting="soft").fit(INPUTS, labels(2, 2))
    names = dict(zip(NAMES, ("x0", "x1", "x2"), strict=True))
    scores = vote.predict_proba(INPUTS)[:, 1]
    model = ts.load(vote)
    columns = model.ensemble.feature_names
    text = 'model m from "m"\n' + "".join(f"feature `{n}`: integer in [0, 3]\n" for n in columns)
    text += "".join(f"query q{i}: expect increasing(m, `{n}`)\n" for i, n in enumerate(columns))
    answers = ts.check_text(text, models={"m": model})
    assert len(names) == len(columns)
    for f in range(3):
        assert (answers[f"q{f}"].verdict == "found") is falls(np.round(scores, 9), f)


def test_two_features_are_refused(tmp_path: Path) -> None:
    booster = boosted(INPUTS, labels(0, 2), 2, 2, names=NAMES)
    text = 'model m from "m"\nfor each f in pairs:\n  query q: expect increasing(m, f)\n'
    with pytest.raises(TreesensError, match="for a single feature"):
        ts.check_text(text, models={"m": booster})["q[x+y]"]


@pytest.mark.extensions
def test_built_as_objects() -> None:
    data = xgboost.DMatrix(INPUTS, labels(0, 2), feature_names=NAMES)
    booster = xgboost.train(
        {"objective": "binary:logistic", "max_depth": 2, "monotone_constraints": "(1,-1,0)"}, data, 2
    )
    up = ts.query.increasing(booster, "x")
    truth = expected(booster.predict(data, output_margin=True))
    for name in NAMES:
        assert ts.query.increasing(booster, name).answer().verdict == truth[f"up[{name}]"]
        assert ts.query.decreasing(booster, name).answer().verdict == truth[f"down[{name}]"]
    with pytest.raises(TreesensError, match="already"):
        up.expect("some")
