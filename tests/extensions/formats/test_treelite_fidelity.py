"""The contract for treelite: the leaves and margins of its GTIL on every input."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.extensions.formats import trained_treelite
from tests.extensions.formats.trained_treelite import MODELS
from tests.frontends import mutants
from tests.frontends.damage import refusals
from treesens.compiler.model import Ensemble
from treesens.errors import ModelError
from treesens.extensions.conformance import formats as conformance
from treesens.extensions.formats.treelite import TreeliteFrontend
from treesens.frontends import load


@cache
def made(name: str) -> Any:
    return MODELS[name]()


@pytest.mark.parametrize("name", MODELS)
def test_imported_models_are_read_exactly(name: str) -> None:
    report = conformance.check(load(made(name)), rows=100)
    report.raise_if_wrong()
    assert report.leaf_ids_checked


@pytest.mark.parametrize("name", ["xgboost, softprob", "lightgbm, categories", "forest, two classes"])
def test_checkpoints_are_read_exactly(name: str, tmp_path: Path) -> None:
    path = tmp_path / "model.tl"
    made(name).serialize(path)
    conformance.check(load(path), rows=50).raise_if_wrong()


@pytest.mark.parametrize(
    ("model", "mutant"),
    [
        ("xgboost, logistic", mutants.other_inputs),
        ("xgboost, logistic", mutants.other_comparison),
        ("xgboost, logistic", mutants.missing_turned),
        ("lightgbm, categories", mutants.sets_to_the_other_side),
        ("lightgbm, categories", mutants.unseen_turned),
        ("forest, four classes", mutants.no_average),
        ("forest, four classes", mutants.last_bits),
    ],
)
def test_wrong_readers_are_caught(model: str, mutant: Callable[[Ensemble], Ensemble]) -> None:
    loaded = load(made(model))
    assert not conformance.check(replace(loaded, ensemble=mutant(loaded.ensemble)), rows=100).ok


@pytest.mark.parametrize("field", ["target_id", "class_id"])
@pytest.mark.parametrize("output", [-2, 1, 1000])
def test_a_tree_of_an_output_that_does_not_exist_is_refused(field: str, output: int) -> None:
    """treelite writes its leaves into the outputs of the next row, or behind the last one."""
    model = trained_treelite.treelite.Model.deserialize_bytes(made("xgboost, logistic").serialize_bytes())
    header = model.get_header_accessor()
    header.set_field(field, np.array([*header.get_field(field)[:-1], output], np.int32))
    with pytest.raises(ModelError, match="an output that does not exist"):
        load(model)


def test_damaged_checkpoints_give_a_typed_error_or_a_valid_model() -> None:
    def read(data: bytes) -> Any:
        return TreeliteFrontend().load(Path("model.tl"), data)

    data = bytes(made("lightgbm, categories").serialize_bytes())
    assert refusals(data, read, files=6) > 1
    with pytest.raises(ModelError, match="cannot read the checkpoint"):
        read(data[: len(data) // 2])


def test_an_infinite_threshold_is_read_although_the_dump_lacks_it(tmp_path: Path) -> None:
    """scikit-learn splits missing values from all others at infinity, for which treelite's dump has no number."""
    ensemble = pytest.importorskip("sklearn.ensemble")
    rng = np.random.default_rng(0)
    x = rng.random((200, 2)).astype(np.float32)
    x[::3, 0] = np.nan
    model = ensemble.RandomForestClassifier(4, max_depth=3, random_state=0).fit(x, np.isnan(x[:, 0]) ^ (x[:, 1] > 0.5))
    treelite = pytest.importorskip("treelite")
    exported = treelite.sklearn.import_model(model)
    assert '"threshold":,' in exported.dump_as_json(pretty_print=False)
    exported.serialize(str(tmp_path / "m.tl"))
    for source in (exported, tmp_path / "m.tl"):
        loaded = load(source)
        assert np.array_equal(loaded.margins(x), loaded.ensemble.margins_emulated(x))
