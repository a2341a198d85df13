"""The contract for CatBoost: same leaves and margins as the library on every input."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.extensions.formats.trained_catboost import MODELS, catboost, with_categories
from tests.frontends import mutants
from tests.frontends.damage import refusals
from treesens.compiler.model import Ensemble
from treesens.errors import ModelError
from treesens.extensions.conformance import formats as conformance
from treesens.extensions.formats.catboost.frontend import CatBoostFrontend
from treesens.frontends import load


@cache
def made(name: str) -> Any:
    return MODELS[name]()


@cache
def saved(name: str, tmp: str) -> bytes:
    path = Path(tmp) / "model.json"
    made(name).save_model(str(path), format="json")
    return path.read_bytes()


def read(data: bytes) -> Any:
    return CatBoostFrontend().load(Path("model.json"), data)


@pytest.mark.parametrize("name", MODELS)
def test_trained_models_are_read_exactly(name: str, tmp_path: Path) -> None:
    loaded = load(made(name))
    report = conformance.check(loaded, rows=150)
    report.raise_if_wrong()
    assert report.leaf_ids_checked == ("by l" not in name)
    # The live model itself, without the detour through its file.
    rows = np.random.default_rng(0).normal(size=(100, loaded.ensemble.n_features))
    live = made(name).predict(rows, prediction_type="RawFormulaVal").reshape(100, -1)
    assert (live == loaded.ensemble.margins_emulated(rows)).all()
    path = tmp_path / "model.json"
    path.write_bytes(saved(name, str(tmp_path)))
    assert load(path).ensemble.source.format == "catboost-json"
    assert (load(path).ensemble.margins_emulated(rows) == live).all()


@pytest.mark.parametrize("labels", [[0.0, 1.0], [-1.0, 2.5], [0.0, 1.0, 3.0]])
def test_labels_may_be_floats(labels: list[float]) -> None:
    """The file has `1` for the label 1.0, which `predict` returns."""
    rng = np.random.default_rng(0)
    model = catboost.CatBoostClassifier(iterations=3, depth=2, verbose=0, allow_writing_files=False, thread_count=1)
    model.fit(rng.normal(size=(90, 2)), rng.permutation(np.resize(labels, 90)))
    conformance.check(load(model), rows=50).raise_if_wrong()
    assert load(model).ensemble.classes == tuple(int(x) if x.is_integer() else str(x) for x in labels)


@pytest.mark.parametrize("name", ["two classes", "four classes", "one against all", "poisson", "value"])
def test_links_lead_from_margins_to_predictions(name: str) -> None:
    loaded, rows = load(made(name)), np.random.default_rng(0).normal(size=(30, 4))
    ours = loaded.ensemble.probabilities(loaded.margins(rows))
    if loaded.ensemble.classes:
        expected = made(name).predict_proba(rows)
        ours = np.column_stack([1 - ours, ours]) if ours.shape[1] == 1 else ours
        assert list(loaded.ensemble.classes) == list(made(name).classes_)
    else:
        expected = made(name).predict(rows)[:, None]
    if name == "one against all":  # the library divides the sigmoids by their sum
        ours = ours / ours.sum(axis=1, keepdims=True) if not np.allclose(ours, expected) else ours
    assert ours == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("model", "mutant"),
    [
        ("two classes", mutants.other_inputs),
        ("two classes", mutants.other_comparison),
        ("two classes", mutants.one_threshold),
        ("two classes", mutants.missing_turned),
        ("two classes, NaN above", mutants.missing_turned),
        ("value", mutants.no_base),
        ("two classes", mutants.last_bits),
    ],
)
def test_wrong_readers_are_caught(model: str, mutant: Callable[[Ensemble], Ensemble]) -> None:
    loaded = load(made(model))
    assert not conformance.check(replace(loaded, ensemble=mutant(loaded.ensemble)), rows=150).ok


def test_the_binary_format_is_read_with_the_library(tmp_path: Path) -> None:
    path = tmp_path / "m.cbm"
    made("two classes").save_model(str(path))
    assert conformance.check(load(path), rows=50).ok
    assert load(path).ensemble.source.format == "catboost-cbm"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ModelError, match="catboost cannot read the file"):
        load(path)


def test_the_binary_format_lacks_names_of_categories(tmp_path: Path) -> None:
    with_categories().save_model(str(tmp_path / "m.cbm"))
    with pytest.raises(ModelError, match="the hashes of its categories, but not their names") as told:
        load(tmp_path / "m.cbm")
    assert "load_model('m.cbm').save_model('m.json', format='json'" in str(told.value.remedy)


@pytest.mark.parametrize("names", [[], ["no", "yes"]])
def test_files_without_class_parameters(names: list[str], tmp_path: Path) -> None:
    """Files of 2019: the names of classes are options of training, or numbers."""
    document = json.loads(saved("two classes", str(tmp_path)))
    del document["model_info"]["class_params"]
    options = document["model_info"]["params"]
    options = json.loads(options) if isinstance(options, str) else options
    options["data_processing_options"]["class_names"] = names
    document["model_info"]["params"] = json.dumps(options)
    path = tmp_path / "old.json"
    path.write_text(json.dumps(document))
    library = catboost.CatBoostClassifier().load_model(str(path), format="json")
    assert list(load(path).ensemble.classes) == list(library.classes_)
    assert conformance.check(load(path), rows=50).ok


def test_categories_without_names_and_models_without_trees_are_refused() -> None:
    with pytest.raises(ModelError, match="the hashes of its categories, but not their names") as told:
        load(with_categories())
    assert "pool=catboost.Pool(X" in str(told.value.remedy)
    with pytest.raises(ModelError, match="fit it first"):
        load(catboost.CatBoostClassifier())


def _set(*path: Any, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(d: Any) -> None:
        for key in path[:-1]:
            d = d[key]
        d[path[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_set("scale_and_bias", value=[2, [0]]), "multiplied by 2"),
        (_set("scale_and_bias", value=[1, []]), "0 outputs"),
        (_set("scale_and_bias", value=[1]), "a scale and a bias"),
        (_set("oblivious_trees", 0, "leaf_values", value=[1.0]), "1 values for"),
        (_set("oblivious_trees", 0, "leaf_values", 0, value=float("nan")), "not finite"),
        (_set("oblivious_trees", 0, "splits", 0, "border", value=float("nan")), "not a float32"),
        (_set("oblivious_trees", 0, "splits", 0, "border", value="1"), "expected a flat list"),
        (_set("oblivious_trees", 0, "splits", 0, "float_feature_index", value=99), "does not exist"),
        (
            _set("oblivious_trees", 0, "splits", 0, "split_type", value="OnlineCtr"),
            "the node's fields do not match the split",
        ),
        (_set("oblivious_trees", 0, "splits", 0, "split_type", value="Text"), "splits of kind `Text`"),
        (_set("features_info", "float_features", 0, "flat_feature_index", value=1), "not a permutation"),
        (_set("features_info", "float_features", 0, "nan_value_treatment", value="x"), "unknown treatment"),
        (_set("model_info", "class_params", "class_names", value=[1]), "1 classes"),
        (_set("model_info", "params", value="{}"), "loss_function"),
    ],
)
def test_wrong_contents_name_the_field(change: Callable[[Any], None], message: str, tmp_path: Path) -> None:
    document = json.loads(saved("two classes", str(tmp_path)))
    change(document)
    with pytest.raises(ModelError, match=message) as caught:
        read(json.dumps(document).encode())
    assert caught.value.place.startswith("model.json")


@pytest.mark.parametrize("name", ["two classes", "leaf by leaf"])
def test_random_damage_gives_a_typed_error_or_a_valid_model(name: str, tmp_path: Path) -> None:
    assert refusals(json.dumps(json.loads(saved(name, str(tmp_path)))).encode(), read) > 10
