"""Every field of a file is in the table of its library: a new one is noticed, and refused by name."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.extensions.formats import trained_catboost, trained_onnx
from tests.extensions.formats.changed_fields import ABSENT, FORMATS, Format, changed, judge
from tests.frontends import trained, trained_lightgbm, trained_sklearn
from treesens.errors import ModelError
from treesens.extensions.formats.catboost.known import TABLE as CATBOOST
from treesens.extensions.formats.h2o.known import TABLE as H2O
from treesens.extensions.formats.interpret.known import TABLE as INTERPRET
from treesens.extensions.formats.onnx.known import TABLE as ONNX
from treesens.extensions.formats.pmml.known import TABLE as PMML
from treesens.extensions.formats.spark.known import TABLE as SPARK
from treesens.extensions.formats.treelite import TABLE as TREELITE
from treesens.frontends import load
from treesens.frontends.documents import ANY, Table, check_document
from treesens.frontends.lightgbm.known import TABLE as LIGHTGBM
from treesens.frontends.sklearn.known import TABLE as SKLEARN
from treesens.frontends.sklearn.known import unknown_attributes
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


@pytest.mark.sampled
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


@pytest.mark.parametrize("name", [name for name, form in FORMATS.items() if form.table])
def test_a_field_that_a_file_lacks_is_demanded_or_means_what_the_library_takes_it_for(
    name: str, tmp_path: Path
) -> None:
    form = FORMATS[name]
    document = form.make()
    right, path = tmp_path / f"right.{form.suffix}", tmp_path / f"changed.{form.suffix}"
    right.write_bytes(form.write(document))
    found = {True: 0, False: 0}
    for way, meaning in form.used_fields(document):
        path.write_bytes(form.write(changed(document, (way, "left out", ABSENT))))
        found[meaning.required] += 1
        if meaning.required:
            # Or by this field alone a file is known to be of the format.
            with pytest.raises(ModelError, match=f"(?i){way[-1]}|does not look like a model"):
                load(path, name.partition(",")[0])
        else:
            assert judge(str(path), str(right), form.margins)[0] in ("equal", "refused"), way
    assert min(found.values()) > 0


def test_a_field_that_a_dump_of_lightgbm_lacks_is_not_made_up(tmp_path: Path) -> None:
    # The library does not read its dumps: the judge is the model that was dumped.
    made = trained_lightgbm.MODELS["binary"]()
    rows = trained_lightgbm.numeric()[:50]
    theirs = made.predict(rows, raw_score=True)
    document, path = made.dump_model(), tmp_path / "m.json"
    form = Format(lambda: document, lambda given: json.dumps(given).encode(), "json", table=LIGHTGBM)
    for way, meaning in form.used_fields(document):
        path.write_bytes(form.write(changed(document, (way, "left out", ABSENT))))
        if meaning.required:
            with pytest.raises(ModelError, match=f"{way[-1]}|does not look like a model"):
                load(path, "lightgbm")
            continue
        with contextlib.suppress(ModelError):
            read = load(path, "lightgbm").ensemble
            assert read.margins_emulated(np.asarray(rows)).ravel().tolist() == theirs.tolist(), way


@pytest.mark.parametrize(("booster", "rounds"), [("gbtree", 0), ("gblinear", 2)])
def test_a_base_that_xgboost_took_for_two_things_is_refused(booster: str, rounds: int, tmp_path: Path) -> None:
    # A model without a round; a linear one of XGBoost 1.3 does not count its rounds.
    options, rows = {"objective": "binary:logistic", "booster": booster}, trained.numeric()
    made = trained.train(options, (trained.target() > 1).astype(int), rows, rounds)
    document, path = json.loads(bytes(made.save_raw("json"))), tmp_path / "m.json"
    document["learner"]["gradient_booster"]["model"].pop("boosted_rounds", None)
    path.write_text(json.dumps(document))
    assert judge(str(path), str(path), None) == ("equal", "")
    del document["learner"]["learner_model_param"]["boost_from_average"]
    path.write_text(json.dumps(document))
    with pytest.raises(ModelError, match="read its base_score as a prediction"):
        load(path)


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
            assert not meaning.absent or meaning.what == "used", (kind, field)
            assert not meaning.since or meaning.absent, (kind, field)
            assert meaning.kind is None or (meaning.what == "used" and meaning.kind in table), (kind, field)
