"""Every field of a file is in the table of its library: a new one is noticed, and refused by name."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.frontends import trained, trained_catboost, trained_lightgbm, trained_onnx, trained_sklearn
from treesens.errors import ModelError
from treesens.frontends import load
from treesens.frontends.catboost.known import TABLE as CATBOOST
from treesens.frontends.h2o.known import TABLE as H2O
from treesens.frontends.interpret.known import TABLE as INTERPRET
from treesens.frontends.known_fields import ANY, Table, check_document
from treesens.frontends.lightgbm.known import TABLE as LIGHTGBM
from treesens.frontends.onnx.known import TABLE as ONNX
from treesens.frontends.pmml.known import TABLE as PMML
from treesens.frontends.sklearn.known import TABLE as SKLEARN
from treesens.frontends.sklearn.known import unknown_attributes
from treesens.frontends.spark.known import TABLE as SPARK
from treesens.frontends.treelite_fields import TABLE as TREELITE
from treesens.frontends.xgboost.known import LINEAR_TABLE as XGBOOST_LINEAR
from treesens.frontends.xgboost.known import TABLE as XGBOOST

NEW = "a_field_of_tomorrow"


@cache
def _xgboost(name: str) -> str:
    made = trained.MODELS[name]()
    booster = made.get_booster() if hasattr(made, "get_booster") else made
    return bytes(booster.save_raw("json")).decode()


@cache
def _lightgbm(name: str) -> str:
    made = trained_lightgbm.MODELS[name]()
    return json.dumps((made.booster_ if hasattr(made, "booster_") else made).dump_model())


@cache
def _catboost(name: str, folder: Path) -> str:
    path = folder / "m.json"
    trained_catboost.MODELS[name]().save_model(str(path), format="json")
    return path.read_text()


@pytest.mark.parametrize("name", trained.MODELS)
def test_xgboost_has_no_other_fields(name: str) -> None:
    check_document(XGBOOST, json.loads(_xgboost(name)), name)


@pytest.mark.parametrize("name", trained_lightgbm.MODELS)
def test_lightgbm_has_no_other_fields(name: str) -> None:
    check_document(LIGHTGBM, json.loads(_lightgbm(name)), name)


@pytest.mark.parametrize("name", trained_catboost.MODELS)
def test_catboost_has_no_other_fields(name: str, tmp_path: Path) -> None:
    check_document(CATBOOST, json.loads(_catboost(name, tmp_path)), name)


@pytest.mark.parametrize("name", trained_sklearn.MODELS)
def test_scikit_learn_has_no_other_attributes(name: str) -> None:
    assert unknown_attributes(trained_sklearn.MODELS[name]()) == []


def _objects(table: Table, value: Any, kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every object of a document with its kind, those alone that refuse unknown fields."""
    if isinstance(value, list):
        for item in value:
            yield from _objects(table, item, kind)
    elif isinstance(value, dict):
        if ANY not in table[kind]:
            yield kind, value
        for name, inner in value.items():
            meaning = table[kind].get(name)
            if meaning is not None and meaning.kind is not None:
                yield from _objects(table, inner, meaning.kind)


@pytest.mark.parametrize(
    ("make", "table", "suffix"),
    [
        (lambda _: _xgboost("dart"), XGBOOST, "json"),
        (lambda _: _xgboost("categories, both"), XGBOOST, "json"),
        (lambda _: _lightgbm("binary"), LIGHTGBM, "json"),
        (lambda folder: _catboost("two classes", folder), CATBOOST, "json"),
        (lambda folder: _catboost("level by level", folder), CATBOOST, "json"),
    ],
)
def test_a_new_field_anywhere_is_refused_by_name(
    make: Callable[[Path], str], table: Table, suffix: str, tmp_path: Path
) -> None:
    text = make(tmp_path)
    path = tmp_path / f"new.{suffix}"
    seen: set[str] = set()
    for number, (kind, _) in enumerate(_objects(table, json.loads(text), "model")):
        if kind in seen:
            continue
        seen.add(kind)
        document = json.loads(text)
        list(_objects(table, document, "model"))[number][1][NEW] = 1
        path.write_text(json.dumps(document))
        with pytest.raises(ModelError, match=NEW):
            load(path)
    assert len(seen) >= 3


@pytest.mark.parametrize("before", ["Tree=1", "feature_names="])
def test_a_new_line_of_lightgbm_text_is_refused_by_name(before: str, tmp_path: Path) -> None:
    text = trained_lightgbm.MODELS["binary"]().model_to_string()
    path = tmp_path / "m.txt"
    place = text.index(before) + (len("Tree=1\n") if before == "Tree=1" else 0)
    path.write_text(f"{text[:place]}{NEW}=1\n{text[place:]}")
    with pytest.raises(ModelError, match=NEW):
        load(path)


def test_a_new_attribute_of_onnx_is_refused_by_name() -> None:
    model = trained_onnx.by_hand()
    model.graph.node[0].attribute.append(trained_onnx.onnx.helper.make_attribute(NEW, 1))
    with pytest.raises(ModelError, match=NEW):
        load(model)


TABLES: dict[str, Table] = {
    "catboost": CATBOOST,
    "h2o": H2O,
    "interpret": INTERPRET,
    "lightgbm": LIGHTGBM,
    "onnx": ONNX,
    "pmml": PMML,
    "scikit-learn": SKLEARN,
    "spark": SPARK,
    "treelite": TREELITE,
    "xgboost": XGBOOST,
    "xgboost, linear": XGBOOST_LINEAR,
}


@pytest.mark.parametrize("name", TABLES)
def test_every_entry_says_what_becomes_of_the_field(name: str) -> None:
    table = TABLES[name]
    for kind, entries in table.items():
        for field, meaning in entries.items():
            assert meaning.what in ("used", "irrelevant", "refused"), (kind, field)
            assert bool(meaning.why) == (meaning.what != "used"), (kind, field)
            assert meaning.kind is None or (meaning.what == "used" and meaning.kind in table), (kind, field)
