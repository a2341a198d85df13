"""CatBoost's categories: one-hot splits and statistics of one feature or of several, as the library evaluates them."""

from __future__ import annotations

import itertools
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import treesens as ts
from tests.frontends.damage import refusals
from treesens.errors import ModelError
from treesens.extensions.conformance import formats as conformance
from treesens.extensions.formats.catboost.frontend import CatBoostFrontend
from treesens.frontends import load

catboost = pytest.importorskip("catboost", reason="the tests compare with the library; pip install treesens[catboost]")

FAR = {"depth": 6, "iterations": 60, "learning_rate": 0.3}
OPTIONS: dict[str, dict[str, Any]] = {
    "statistics of one feature": {"max_ctr_complexity": 1},
    "one-hot": {"one_hot_max_size": 10},
    "as it comes": {},
    "combinations": {**FAR, "one_hot_max_size": 1, "max_ctr_complexity": 4, "boosting_type": "Plain"},
    "combinations with conditions": {**FAR, "max_ctr_complexity": 3, "boosting_type": "Ordered"},
    "several classes": {"label": "many"},
    "several classes, buckets": {"label": "many", "simple_ctr": "Buckets", "combinations_ctr": "Buckets"},
    "value": {"label": "value"},
    "means": {
        "label": "value",
        "simple_ctr": "BinarizedTargetMeanValue",
        "combinations_ctr": "BinarizedTargetMeanValue",
    },
    "counts": {"label": "value", "simple_ctr": "Counter", "combinations_ctr": "Counter", "counter_calc_method": "Full"},
    "leaf by leaf": {"grow_policy": "Lossguide", "max_leaves": 12},
    "level by level": {"grow_policy": "Depthwise"},
}


@cache
def rows() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    n = 500
    table = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n).astype(float),
            "income": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
            "sex": rng.choice(["F", "M"], n),
            "job": rng.choice(["clerk", "nurse", "cook", "smith", "none"], n),
            "children": rng.integers(0, 5, n),
        }
    )
    return table


def labels(kind: str) -> np.ndarray:
    x = rows()
    one = ((x.age > 40) ^ x.job.isin(["clerk", "cook"]) ^ (x.sex == "F") ^ (x.children > 2)).astype(int).to_numpy()
    many = one + (x.children > 1).to_numpy()
    return {"two": one, "many": many, "value": one + 0.3 * x.age.to_numpy() / 80}[kind]


@cache
def made(name: str) -> tuple[Any, Any]:
    given = dict(OPTIONS[name])
    kind = given.pop("label", "two")
    settings = {"iterations": 30, "depth": 4, "random_seed": 1, "thread_count": 1, "verbose": 0}
    estimator = catboost.CatBoostRegressor if kind == "value" else catboost.CatBoostClassifier
    model = estimator(**{**settings, **given}, allow_writing_files=False)
    pool = catboost.Pool(rows(), labels(kind), cat_features=["sex", "job", "children"])
    return model.fit(pool), pool


def saved(name: str, folder: Path, *, names: bool = True) -> Path:
    model, pool = made(name)
    path = folder / "model.json"
    model.save_model(str(path), format="json", pool=pool if names else None)
    return path


@pytest.mark.parametrize("name", OPTIONS)
def test_every_combination_of_categories_is_read_exactly(name: str, tmp_path: Path) -> None:
    loaded = load(saved(name, tmp_path))
    conformance.check(loaded, rows=300).raise_if_wrong()
    model, _ = made(name)
    sex, job, children = ["F", "M", "X"], ["clerk", "nurse", "cook", "smith", "none", "unheard of"], [0, 1, 2, 3, 4, 9]
    places = list(itertools.product([20.0, 45.0, 70.0], [-1.0, 0.3, np.nan], sex, job, children))
    table = pd.DataFrame(places, columns=rows().columns)
    expected = model.predict(table, prediction_type="RawFormulaVal")
    codes = table.copy()
    for feature in loaded.ensemble.features:
        if feature.categories:
            known = [str(label) for label in feature.labels]
            codes[feature.name] = [
                known.index(str(v)) if str(v) in known else len(known) for v in table[feature.name].tolist()
            ]
    ours = loaded.ensemble.margins_emulated(codes.to_numpy(dtype=float))
    assert (ours == np.asarray(expected).reshape(len(table), -1)).all()


@pytest.mark.parametrize("kind", ["two", "value"])
def test_a_model_of_categories_alone_is_read(kind: str, tmp_path: Path) -> None:
    """Its file has no list of numbers."""
    table = rows()[["sex", "job"]]
    estimator = catboost.CatBoostRegressor if kind == "value" else catboost.CatBoostClassifier
    model = estimator(iterations=8, depth=2, random_seed=1, thread_count=1, verbose=0, allow_writing_files=False)
    pool = catboost.Pool(table, labels(kind), cat_features=["sex", "job"])
    path = tmp_path / "model.json"
    model.fit(pool).save_model(str(path), format="json", pool=pool)
    document = json.loads(path.read_text())
    assert "float_features" not in document["features_info"]
    assert document["features_info"]["ctrs"]
    loaded = load(path)
    conformance.check(loaded, rows=50).raise_if_wrong()
    for row in itertools.product(["F", "M", "X"], ["clerk", "nurse", "cook", "smith", "none", "unheard of"]):
        known = [[str(label) for label in f.labels] for f in loaded.ensemble.features]
        codes = [names.index(v) if v in names else len(names) for names, v in zip(known, row, strict=True)]
        expected = model.predict(pd.DataFrame([row], columns=table.columns), prediction_type="RawFormulaVal")
        assert loaded.ensemble.margins_emulated(np.array([codes], dtype=float))[0, 0] == np.ravel(expected)[0]


def test_some_models_have_combinations(tmp_path: Path) -> None:
    elements = []
    for name in ("combinations", "combinations with conditions"):
        document = json.loads(saved(name, tmp_path).read_text())
        elements += [ctr["elements"] for ctr in document["features_info"]["ctrs"]]
    kinds = {element["combination_element"] for one in elements for element in one}
    assert kinds >= {"cat_feature_value", "float_feature"}
    assert max(map(len, elements)) > 2


def test_categories_have_their_names(tmp_path: Path) -> None:
    features = {f.name: f.labels for f in load(saved("statistics of one feature", tmp_path)).ensemble.features}
    assert features["job"] == ("clerk", "cook", "none", "nurse", "smith")
    assert features["children"] == (0, 1, 2, 3, 4)
    assert set(features["sex"]) >= {"F", "M"}


def test_a_question_about_a_category_is_answered(tmp_path: Path) -> None:
    path = saved("as it comes", tmp_path)
    found = ts.sensitivity(str(path), data=rows(), vary=["job"], gap=0.02, replay="library")
    assert found.verdict == "found"
    model, _ = made("as it comes")
    one, other = model.predict_proba(found.pair)[:, 1]
    assert min(one, other) <= 0.48
    assert max(one, other) >= 0.52
    assert set(found.pair["job"]) <= set(rows().job)


def test_without_names_the_remedy_is_to_save_them(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="not their names") as caught:
        load(saved("as it comes", tmp_path, names=False))
    assert "pool=catboost.Pool(" in str(caught.value.remedy)
    with pytest.raises(ModelError, match="not their names"):
        load(made("as it comes")[0])


def test_a_file_of_numbers_that_was_saved_with_its_rows_is_read(tmp_path: Path) -> None:
    table = rows()[["age", "income"]]
    pool = catboost.Pool(table, labels("two"))
    model = catboost.CatBoostClassifier(iterations=3, depth=2, verbose=0, allow_writing_files=False).fit(pool)
    path = tmp_path / "m.json"
    model.save_model(str(path), format="json", pool=pool)
    conformance.check(load(path)).raise_if_wrong()


@pytest.mark.parametrize("name", ["combinations with conditions", "leaf by leaf"])
def test_random_damage_gives_a_typed_error_or_a_valid_model(name: str, tmp_path: Path) -> None:
    def read(data: bytes) -> Any:
        return CatBoostFrontend().load(Path("model.json"), data)

    assert refusals(saved(name, tmp_path).read_bytes(), read) > 5


def test_texts_are_refused_by_name() -> None:
    words = pd.DataFrame({"age": rows().age, "words": ["a b c", "d e f"] * 250})
    pool = catboost.Pool(words, labels("two"), text_features=["words"])
    model = catboost.CatBoostClassifier(iterations=2, verbose=0, allow_writing_files=False).fit(pool)
    with pytest.raises(ModelError, match="text features"):
        load(model)


@pytest.mark.parametrize("form", ["a.h = {}", "a.h in {{{}}}", "not a.h != {}", 'a.h = "{}"'])
def test_a_declared_name_that_is_a_number_needs_no_quotes(form: str, tmp_path: Path) -> None:
    """A column that no tree asks about has no table in the file: its names are those that are declared."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"g": rng.integers(0, 6, 400).astype(str), "h": rng.integers(0, 2, 400).astype(str)})
    frame["z"] = rng.normal(size=400)
    target = ((frame.g.astype(int) % 2 == 1) & (frame.z > -0.5)).astype(int)
    model = catboost.CatBoostClassifier(
        iterations=5, depth=2, verbose=0, allow_writing_files=False, thread_count=1, one_hot_max_size=2
    )
    model.fit(frame, target, cat_features=["g", "h"])
    model.save_model(tmp_path / "m.json", format="json", pool=catboost.Pool(frame, target, cat_features=["g", "h"]))
    text = 'model m from "m"\nfeature h: category {"0", "1"}\nfeature z: real in [0, 1]\n'
    for number in (0, 1):
        asked = f"query q: find a such that {form.format(number)}; class(a) = 1\n"
        answer = ts.check_text(text + asked, models={"m": tmp_path / "m.json"})["q"]
        assert (str(answer.verdict), str(answer.points["a"]["h"])) == ("found", str(number))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_live_model_takes_the_names_from_the_rows_of_the_call(library: str) -> None:
    table = rows()
    label = (table["age"] > 50).astype(int) ^ (table["sex"] == "F")
    model = catboost.CatBoostClassifier(iterations=5, depth=3, verbose=0, allow_writing_files=False, thread_count=1)
    model.fit(table, label, cat_features=["sex", "job"])
    frame = table if library == "pandas" else pytest.importorskip("polars").from_pandas(table)
    read = load(model, rows=frame)
    assert conformance.check(read, rows=50).ok
    one, other = (ts.audit(given, frame, vary=["sex"], gap=0.05) for given in (model, read))
    assert one["rows_flipped"] == other["rows_flipped"]
    assert set(ts.sensitivity(model, vary="sex", gap=0.05, data=frame).pair["sex"]) == {"F", "M"}
    assert [ts.sensitivity(model, data=frame, vary="sex", gap=0.05).verdict] == list(one["verdict"])
    with pytest.raises(ModelError, match="not their names"):
        load(model, rows=table[["age", "job"]])


def test_two_columns_share_a_name() -> None:
    """A one-hot column without a split on a name has the name also if another column's table contains it."""
    table = rows().assign(phone=np.where(rows()["age"] > 50, "yes", "none"))
    label = (table["phone"] == "yes").astype(int) ^ (table["job"] == "none")
    model = catboost.CatBoostClassifier(
        iterations=30, depth=2, verbose=0, allow_writing_files=False, thread_count=1, max_ctr_complexity=1
    ).fit(table, label, cat_features=["sex", "job", "phone"])
    values = [model.predict_proba(table.assign(phone=value))[:, 1] for value in ("none", "yes")]
    flipped = int(((np.minimum(*values) <= 0.4) & (np.maximum(*values) >= 0.6)).sum())
    assert ts.audit(model, table, vary=["phone"], gap=0.1)["rows_flipped"] == [flipped]
