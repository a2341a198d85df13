"""The contract for ONNX: the margins of onnxruntime on every input."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.frontends import mutants
from tests.frontends.damage import refusals
from tests.frontends.trained_onnx import MODELS, by_hand, onnx
from treesens.compiler.model import Ensemble, Link
from treesens.errors import ModelError
from treesens.frontends import conformance, load
from treesens.frontends.onnx.frontend import ONNXFrontend


@cache
def made(name: str) -> Any:
    return MODELS[name]()


@pytest.mark.parametrize("name", MODELS)
def test_converted_models_are_read_exactly(name: str, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(made(name).SerializeToString())
    for loaded in (load(path), load(made(name))):
        report = conformance.check(loaded, rows=100)
        report.raise_if_wrong()
        assert not report.refused


def test_forests_of_two_classes_predict_both_probabilities() -> None:
    e = load(made("forest, two classes")).ensemble
    assert (e.n_outputs, e.link, len(e.classes)) == (2, Link.IDENTITY, 2)


@pytest.mark.parametrize(
    ("model", "mutant"),
    [
        ("all modes", mutants.other_comparison),
        ("forest, value", mutants.one_threshold),
        ("all modes", mutants.missing_turned),
        ("all modes", mutants.no_base),
        ("forest, value", mutants.other_inputs),
        ("forest, four classes", mutants.last_bits),
        ("boosting, two classes", mutants.no_base),
    ],
)
def test_wrong_readers_are_caught(model: str, mutant: Callable[[Ensemble], Ensemble]) -> None:
    loaded = load(made(model))
    assert not conformance.check(replace(loaded, ensemble=mutant(loaded.ensemble)), rows=100).ok


def _changed(**attributes: Any) -> Any:
    model = by_hand()
    node = model.graph.node[0]
    kept = [a for a in node.attribute if a.name not in attributes]
    del node.attribute[:]
    node.attribute.extend([*kept, *(onnx.helper.make_attribute(k, v) for k, v in attributes.items())])
    return model


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"nodes_modes": ["BRANCH_EQ", "BRANCH_GTE", "BRANCH_GT", "BRANCH_LEQ", *["LEAF"] * 5]}, "mode `BRANCH_EQ`"),
        ({"nodes_values": [float("nan")] * 9}, "threshold is NaN"),
        ({"nodes_values": [0.0]}, "1 entries for 9 nodes"),
        ({"nodes_truenodeids": [99, 3, 5, 7, 0, 0, 0, 0, 0]}, "a child does not exist"),
        ({"nodes_truenodeids": [1, 0, 5, 7, 0, 0, 0, 0, 0]}, "two parents|twice"),
        ({"nodes_featureids": [9] * 9}, "feature 9 of 2"),
        ({"nodes_featureids": [-1] * 9}, "does not exist"),
        ({"nodes_nodeids": [0] * 9}, "same number"),
        ({"nodes_treeids": [1, *[0] * 8]}, "not in order"),
        ({"target_nodeids": [0, 5, 6, 7, 8]}, "belongs to no leaf"),
        ({"target_ids": [1, 0, 0, 0, 0]}, "an output does not exist"),
        ({"target_weights": [float("inf")] * 5}, "not finite"),
        ({"target_weights": [1.0]}, "differ in length"),
        ({"n_targets": 0}, "0 outputs"),
        ({"aggregate_function": "MAX"}, "`MAX` over trees"),
        ({"post_transform": "PROBIT"}, "`PROBIT` of a regressor"),
    ],
)
def test_wrong_contents_name_the_attribute(attributes: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message) as caught:
        load(_changed(**attributes))
    assert caught.value.place.startswith("<ModelProto>")


def test_graphs_that_do_more_are_refused_by_operator() -> None:
    model = by_hand()
    scaler = onnx.helper.make_node("Abs", ["x"], ["z"])
    model.graph.node[0].input[0] = "z"
    model.graph.node.insert(0, scaler)
    with pytest.raises(ModelError, match="what Abs makes of it"):
        load(model)
    model = by_hand()
    model.graph.node[0].output[0] = "z"
    model.graph.node.append(onnx.helper.make_node("Abs", ["z"], ["y"]))
    with pytest.raises(ModelError, match="Abs behind the trees"):
        load(model)
    model = by_hand()
    del model.graph.node[:]
    with pytest.raises(ModelError, match="0 tree ensembles"):
        load(model)
    model = by_hand()
    model.graph.input[0].type.tensor_type.elem_type = 11
    with pytest.raises(ModelError, match="not of type float"):
        load(model)


def test_random_damage_gives_a_typed_error_or_a_valid_model() -> None:
    def read(data: bytes) -> Any:
        return ONNXFrontend().load(Path("model.onnx"), data)

    assert refusals(made("boosting, four classes").SerializeToString(), read, seconds=3) > 10


def test_rows_are_cast_to_float32_first() -> None:
    loaded = load(made("all modes"))
    rows = np.array([[float(np.nextafter(np.float64(np.float32(0.1)), 1)), 0.0]])
    assert (loaded.margins(rows) == loaded.ensemble.margins_emulated(rows)).all()
