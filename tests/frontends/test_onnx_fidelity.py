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


# --- operators before the trees ---------------------------------------------------------------------------------------------


def before(*nodes: Any, constants: dict[str, Any] | None = None, width: int | None = 2) -> Any:
    """The tree by hand behind operators from `x` to `z`."""
    model = by_hand()
    model.graph.node[0].input[0] = "z"
    for number, node in enumerate(nodes):
        model.graph.node.insert(number, node)
    for name, value in (constants or {}).items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(value, np.float32), name))
    if width is None:
        model.graph.input[0].type.tensor_type.shape.dim[1].Clear()
    return model


def operator(kind: str, source: str = "x", target: str = "z", *more: str, **attributes: Any) -> Any:
    own = kind in ("Scaler", "Imputer")
    return onnx.helper.make_node(kind, [source, *more], [target], domain="ai.onnx.ml" if own else "", **attributes)


SCALED = operator("Scaler", offset=[0.3, -7.0], scale=[0.1, 3.0])
FILLED = operator("Imputer", "x", "y1", imputed_value_floats=[0.2, -2.5], replaced_value_float=float("nan"))
FRONTS: dict[str, Callable[[], Any]] = {
    "scaled": lambda: before(SCALED),
    "one number for all": lambda: before(operator("Scaler", offset=[0.25], scale=[3.0])),
    "no width": lambda: before(SCALED, width=None),
    "filled": lambda: before(FILLED, operator("Identity", "y1")),
    "filled and scaled": lambda: before(FILLED, operator("Scaler", "y1", offset=[0.3, -7.0], scale=[0.1, 3.0])),
    "scaled and filled": lambda: before(
        operator("Scaler", "x", "y0", offset=[0.3, -7.0], scale=[0.1, 3.0]),
        operator("Imputer", "y0", imputed_value_floats=[0.7], replaced_value_float=float("nan")),
    ),
    "arithmetic": lambda: before(
        operator("Cast", "x", "y0", to=1),
        operator("Mul", "y0", "y1", "k"),
        operator("Add", "m", "y2", "y1"),
        operator("Sub", "y2", "y3", "o"),
        operator("Div", "y3", "z", "d"),
        constants={"k": [[0.1, 1e-3]], "m": [0.3, 5.0], "o": 0.7, "d": [3.0, 1e-6]},
    ),
    "tiny and huge": lambda: before(operator("Scaler", offset=[1e30, 1e-40], scale=[1e-30, 1e38])),
}


@pytest.mark.parametrize("name", FRONTS)
def test_thresholds_behind_operators_are_those_of_the_input(name: str) -> None:
    """onnxruntime judges every threshold of the input, one float to either side, and what is missing."""
    loaded = load(FRONTS[name]())
    assert loaded.ensemble.n_features == 2
    conformance.check(loaded, rows=200).raise_if_wrong()
    whole = onnxruntime_scores(FRONTS[name](), rows := np.random.default_rng(3).normal(0, 4, (60, 2)))
    assert loaded.ensemble.margins_emulated(rows)[:, 0].tolist() == whole


def onnxruntime_scores(model: Any, rows: np.ndarray) -> list[float]:
    """What the whole graph says."""
    import onnxruntime

    session = onnxruntime.InferenceSession(model.SerializeToString())
    return [float(x) for x in session.run(None, {"x": rows.astype(np.float32)})[0].ravel()]


def test_a_threshold_behind_a_scaler_is_the_last_float_that_goes_left() -> None:
    """By the arithmetic of the reference, in float32: (x - offset) * scale."""
    e = load(before(SCALED)).ensemble
    offset, scale = np.float32([0.3, -7.0]), np.float32([0.1, 3.0])
    inner = np.flatnonzero(e.node_feature >= 0)
    behind = load(by_hand()).ensemble
    for node in inner.tolist():
        f, t = int(e.node_feature[node]), np.float32(e.threshold[node])
        wanted = np.float32(behind.threshold[node])
        assert (t - offset[f]) * scale[f] <= wanted < (np.nextafter(t, np.float32(np.inf)) - offset[f]) * scale[f]


@pytest.mark.parametrize("front", ["scaled", "filled and scaled", "min-max", "robust"])
@pytest.mark.parametrize("kind", ["forest, two classes", "boosting, four classes", "histogram, value"])
def test_converted_pipelines_are_read_exactly(front: str, kind: str) -> None:
    from sklearn import ensemble, impute, pipeline, preprocessing

    from tests.frontends.trained_onnx import converted
    from tests.frontends.trained_sklearn import BOOST, FOREST

    steps = {
        "scaled": [preprocessing.StandardScaler()],
        "filled and scaled": [impute.SimpleImputer(), preprocessing.StandardScaler()],
        "min-max": [preprocessing.MinMaxScaler()],
        "robust": [preprocessing.RobustScaler()],
    }[front]
    model, label = {
        "forest, two classes": (ensemble.RandomForestClassifier(**FOREST), "two"),
        "boosting, four classes": (ensemble.GradientBoostingClassifier(**BOOST), "four"),
        "histogram, value": (ensemble.HistGradientBoostingRegressor(max_iter=6), "value"),
    }[kind]
    conformance.check(load(converted(pipeline.make_pipeline(*steps, model), label)), rows=60).raise_if_wrong()


OTHERS: list[tuple[Callable[[], Any], str]] = [
    (lambda: before(operator("Scaler", offset=[0.0, 0.0], scale=[0.0, 1.0])), "multiplied by 0 or less"),
    (lambda: before(operator("Scaler", offset=[0.0], scale=[-1.0])), "multiplied by 0 or less"),
    (lambda: before(operator("Scaler", offset=[0.0] * 3, scale=[1.0])), "3 numbers for 2 columns"),
    (lambda: before(operator("Scaler", offset=[float("nan")], scale=[1.0])), "not finite"),
    (lambda: before(operator("Scaler", offset=[0.0], scale=[1.0], tomorrow=1)), "`tomorrow`"),
    (lambda: before(operator("Imputer", imputed_value_floats=[0.0], replaced_value_float=-1.0)), "replaces -1"),
    (lambda: before(operator("Imputer", imputed_value_floats=[0.0])), "replaces 0"),
    (lambda: before(operator("Imputer", replaced_value_float=float("nan"))), "0 numbers for 2 columns"),
    (lambda: before(operator("Cast", to=11)), "another type than float32"),
    (lambda: before(operator("Add", "x", "z", "x")), "another input makes of it"),
    (lambda: before(operator("Sub", "k", "z", "x"), constants={"k": [1.0]}), "a constant with a column"),
    (lambda: before(operator("Mul", "x", "z", "k"), constants={"k": [1.0, 2.0, 3.0]}), "the shape \\[3\\]"),
    (lambda: before(operator("Div", "x", "z", "k"), constants={"k": [1.0, 0.0]}), "multiplied by 0 or less"),
    (lambda: before(operator("Normalizer", norm="L2")), "what Normalizer makes of it"),
    (lambda: before(operator("Identity", "z")), "what Identity makes of it"),
]


@pytest.mark.parametrize("case", range(len(OTHERS)))
def test_other_operators_before_the_trees_are_refused_by_name(case: int) -> None:
    make, message = OTHERS[case]
    with pytest.raises(ModelError, match=message) as caught:
        load(make())
    assert caught.value.remedy


def test_damage_before_the_trees_gives_a_typed_error_or_a_valid_model() -> None:
    def read(data: bytes) -> Any:
        return ONNXFrontend().load(Path("model.onnx"), data)

    for name in ("filled and scaled", "arithmetic"):
        assert refusals(FRONTS[name]().SerializeToString(), read, seconds=2) > 10


def test_random_damage_gives_a_typed_error_or_a_valid_model() -> None:
    def read(data: bytes) -> Any:
        return ONNXFrontend().load(Path("model.onnx"), data)

    assert refusals(made("boosting, four classes").SerializeToString(), read, seconds=3) > 10


def test_rows_are_cast_to_float32_first() -> None:
    loaded = load(made("all modes"))
    rows = np.array([[float(np.nextafter(np.float64(np.float32(0.1)), 1)), 0.0]])
    assert (loaded.margins(rows) == loaded.ensemble.margins_emulated(rows)).all()
