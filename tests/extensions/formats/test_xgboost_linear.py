"""Linear boosters of XGBoost: the library's own predictions judge the kit, and all inputs of small domains."""

from __future__ import annotations

import itertools
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treesens as ts
from tests.command import run_command
from tests.frontends.versions import since
from treesens.compiler.model.numbers import closed_over
from treesens.compiler.query.predicted_classes import sure_classes
from treesens.errors import ModelError, TreesensError
from treesens.extensions.conformance import formats as conformance
from treesens.extensions.formats.numbers.tables import MOST_TERMS

xgboost = pytest.importorskip("xgboost")

# What its base_score means has changed then, so that files of earlier versions are refused.
LOGITRAW = since("xgboost", "3.1")
RAW = pytest.param("binary:logitraw", marks=LOGITRAW)
NAMES = ["age", "debt", "gone"]
AGES, DEBTS = range(18, 30), range(8)
DOMAIN = "feature age: integer in [18, 29]\nfeature debt: integer in [0, 7]\nfeature gone: integer in [0, 1]\n"


@cache
def booster(objective: str = "binary:logistic", **options: Any) -> Any:
    random, n = np.random.default_rng(4), 200
    x = np.stack([random.choice(AGES, n), random.choice(DEBTS, n), random.choice([0, 1, np.nan], n)], axis=1)
    y = x[:, 0] / 4 - x[:, 1] + np.nan_to_num(x[:, 2]) + random.normal(0, 0.5, n)
    label = y - y.min() if objective.startswith(("reg:sq", "count")) else (y > np.median(y)).astype(float)
    data = xgboost.DMatrix(x, label, feature_names=NAMES)
    return xgboost.train({"booster": "gblinear", "objective": objective, **options}, data, 8)


def every() -> np.ndarray:
    return np.array(list(itertools.product(AGES, DEBTS, (0, 1))), np.float64)


@pytest.mark.parametrize("objective", ["binary:logistic", RAW, "binary:hinge", "count:poisson"])
def test_the_kit_finds_no_difference(objective: str, tmp_path: Path) -> None:
    booster(objective).save_model(tmp_path / "m.json")
    loaded = ts.load(tmp_path / "m.json")
    assert loaded.ensemble.open_features == ts.load(booster(objective)).ensemble.open_features == tuple(NAMES)
    conformance.check(loaded, rows=10).raise_if_wrong()


def closed(objective: str) -> Any:
    values = {"age": np.array(AGES, np.float64), "debt": np.array(DEBTS, np.float64), "gone": np.array([0.0, 1.0])}
    return closed_over(ts.load(booster(objective)).ensemble, values)


def test_sums_are_within_the_band_of_those_of_the_library() -> None:
    ensemble, rows = closed("binary:logistic"), every()
    matrix = xgboost.DMatrix(rows, feature_names=NAMES)
    margins = booster().predict(matrix, output_margin=True)
    off = [abs(a - type(a)(float(b))) for a, b in zip(ensemble.margins_exact(rows)[:, 0], margins, strict=True)]
    assert 0 < max(off) <= ensemble.bands()[0]
    assert ensemble.bands()[0] < 1e-4


@pytest.mark.parametrize(
    ("objective", "cut"),
    [("binary:logistic", 0.0), ("binary:hinge", 0.0), pytest.param("binary:logitraw", 0.5, marks=LOGITRAW)],
)
def test_a_class_beside_its_cut_off_is_not_sure(objective: str, cut: float) -> None:
    """Products that are rounded, or not, may lie on the other side."""
    ensemble = closed(objective)
    band = float(ensemble.bands()[0])
    margins = np.array([[cut + move * band] for move in (-9, -1.5, 1.5, 9)])
    assert sure_classes(ensemble, margins) == [0, None, None, 1]


def test_answers_are_those_of_all_inputs() -> None:
    shown = booster().predict(xgboost.DMatrix(every(), feature_names=NAMES)).reshape(len(AGES), len(DEBTS), 2)
    debts = float(np.minimum(shown.max(axis=1) - 0.5, 0.5 - shown.min(axis=1)).max())
    text = f'model m from "m"\n{DOMAIN}'
    for name, move in (("yes", -1e-5), ("no", 1e-5)):
        text += f"query {name}_best: find a such that prob(a) >= {shown.max() + move:.9f}\n"
        text += f"query {name}_least: find a such that prob(a) <= {shown.min() - move:.9f}\n"
        text += f"query {name}_debt: sensitive m to {{debt}} gap {debts + move:.9f}\n"
    answers = ts.check_text(text, models={"m": ts.load(booster())})
    asked = ["best", "least", "debt"]
    assert [str(answers[f"yes_{name}"].verdict) for name in asked] == ["found"] * len(asked)
    assert [str(answers[f"no_{name}"].verdict) for name in asked] == ["none"] * len(asked)


@pytest.mark.parametrize("suffix", ["json", "ubj"])
def test_certificates_are_about_trees_over_the_domain(suffix: str, tmp_path: Path) -> None:
    """The file has none, and so the checker reads a file of trees, which it says to be trusted."""
    booster().save_model(tmp_path / f"m.{suffix}")
    shown = booster().predict(xgboost.DMatrix(every(), feature_names=NAMES))
    text = f'model m from "m.{suffix}"\n{DOMAIN}query no: find a such that prob(a) >= {shown.max() + 1e-5:.9f}\n'
    text += f"query yes: find a such that prob(a) >= {shown.max() - 1e-5:.9f}\n"
    text += "query best: find a, b such that a = b except debt  maximize margin(a) - margin(b)\n"
    (tmp_path / "q.sens").write_text(text, encoding="utf-8")
    done = run_command(tmp_path, "check", "q.sens", "--json", "--certificate", "out", "--require-certificate")
    results = json.loads(done.stdout)["results"]
    assert [one["verdict"] for one in results] == ["none", "found", "found"]
    assert [bool(claim["file"]) for one in results for claim in one["certificates"]] == [True] * 4, done.stderr
    verified = run_command(tmp_path, "verify", "out", "--model", f"m.{suffix}")
    assert verified.returncode == 0, verified.stdout
    assert verified.stdout.count(": accepted") == 4


def test_sums_that_may_be_infinite_are_refused() -> None:
    text = 'model m from "m"\n' + DOMAIN.replace("debt: integer in [0, 7]", "debt: category {0, 3e38}")
    with pytest.raises(TreesensError, match="largest float32") as caught:
        ts.check_text(text + "query q: find a such that prob(a) >= 0.9\n", models={"m": ts.load(booster())})
    assert "smaller domains" in str(caught.value)


def test_what_is_no_one_sum_is_refused_by_name(tmp_path: Path) -> None:
    document = json.loads(bytes(booster().save_raw("json")))
    model = document["learner"]["gradient_booster"]["model"]

    def refused(message: str) -> None:
        (tmp_path / "m.json").write_text(json.dumps(document), encoding="utf-8")
        with pytest.raises(ModelError, match=message) as caught:
            ts.load(tmp_path / "m.json")
        assert caught.value.remedy

    several = {"booster": "gblinear", "objective": "multi:softprob", "num_class": 3}
    data = xgboost.DMatrix(every(), np.arange(len(every())) % 3)
    with pytest.raises(ModelError, match="several outputs"):
        ts.load(xgboost.train(several, data, 2))
    with pytest.raises(ModelError, match="without training rounds") as caught:
        ts.load(xgboost.train({"booster": "gblinear", "objective": "binary:logistic"}, data, 0))
    assert "damaged" not in str(caught.value)
    model["surprise"] = 1
    refused("surprise")
    del model["surprise"]
    document["learner"]["feature_types"] = ["c", "q", "q"]
    refused("on categorical data")
    document["learner"]["feature_types"] = []
    model["weights"] = model["weights"][:-1]
    refused("3 weights for 3 features and a bias")
    model["weights"] = [0.0] * (MOST_TERMS + 2)
    document["learner"]["feature_names"] = []
    document["learner"]["learner_model_param"]["num_feature"] = str(MOST_TERMS + 1)
    refused(f"more than {MOST_TERMS} features")
