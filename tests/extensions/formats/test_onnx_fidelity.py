"""The contract for ONNX: the margins of onnxruntime on every input."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.extensions.formats.trained_onnx import MODELS, by_hand, onnx
from tests.frontends import mutants
from tests.frontends.damage import refusals
from tests.frontends.versions import since
from treesens.compiler.model import Ensemble
from treesens.errors import ModelError
from treesens.extensions.conformance import formats as conformance
from treesens.extensions.formats.onnx.frontend import ONNXFrontend
from treesens.extensions.formats.onnx.library import graph_scores
from treesens.frontends import load
from treesens.links import Identity


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
    assert (e.n_outputs, e.link, len(e.classes)) == (2, Identity(), 2)


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
        ({"nodes_truenodeids": [1, 0, 5, 7, 0, 0, 0, 0, 0]}, "two parents|twice|another root"),
        ({"nodes_featureids": [9] * 9}, "feature 9, but the input has only 2 features"),
        ({"nodes_featureids": [-1] * 9}, "does not exist"),
        ({"nodes_nodeids": [0] * 9}, "same number"),
        ({"nodes_treeids": [1, *[0] * 8]}, "not in order"),
        ({"target_nodeids": [0, 5, 6, 7, 8]}, "belongs to no leaf"),
        ({"target_ids": [1, 0, 0, 0, 0]}, "an output does not exist"),
        ({"target_weights": [float("inf")] * 5}, "not finite"),
        ({"target_weights": [1.0]}, "differ in length"),
        ({"n_targets": 0}, "0 outputs"),
        ({"aggregate_function": "MAX"}, "found `MAX`"),
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
    with pytest.raises(ModelError, match="the output of Abs"):
        load(model)
    model = by_hand()
    model.graph.node[0].output[0] = "z"
    model.graph.node.append(onnx.helper.make_node("Abs", ["z"], ["y"]))
    with pytest.raises(ModelError, match="Abs after the trees"):
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

    from tests.extensions.formats.trained_onnx import converted
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
    (lambda: before(operator("Cast", to=11)), "a type other than float32"),
    (lambda: before(operator("Add", "x", "z", "x")), "the output of another input"),
    (lambda: before(operator("Sub", "k", "z", "x"), constants={"k": [1.0]}), "a constant minus or divided by a column"),
    (lambda: before(operator("Mul", "x", "z", "k"), constants={"k": [1.0, 2.0, 3.0]}), "of shape \\[3\\]"),
    (lambda: before(operator("Div", "x", "z", "k"), constants={"k": [1.0, 0.0]}), "multiplied by 0 or less"),
    (lambda: before(operator("Normalizer", norm="L2")), "the output of Normalizer"),
    (lambda: before(operator("Identity", "z")), "the output of Identity"),
]


@pytest.mark.parametrize("case", range(len(OTHERS)))
def test_other_operators_before_the_trees_are_refused_by_name(case: int) -> None:
    make, message = OTHERS[case]
    with pytest.raises(ModelError, match=message) as caught:
        load(make())
    assert caught.value.remedy


@pytest.mark.parametrize("attributes", [{"offset": [0.5, 1.0], "scale": [2.0]}, {"scale": [2.0]}, {"offset": [1.0]}])
def test_scalers_that_onnxruntime_refuses_are_refused(attributes: dict[str, Any]) -> None:
    model = before(operator("Scaler", **attributes))
    with pytest.raises(Exception, match=r"onnxruntime::ml::ScalerOp.* scale"):
        onnxruntime_scores(model, np.zeros((1, 2)))
    with pytest.raises(ModelError, match="differ in length"):
        load(model)


def test_damage_before_the_trees_gives_a_typed_error_or_a_valid_model() -> None:
    def read(data: bytes) -> Any:
        return ONNXFrontend().load(Path("model.onnx"), data)

    for name in ("filled and scaled", "arithmetic"):
        assert refusals(FRONTS[name]().SerializeToString(), read) > 10


# --- operators after the trees ----------------------------------------------------------------------------------------------


def output_info(name: str, kind: int) -> Any:
    """An output of this type of numbers; 0 is what a ZipMap makes."""
    if kind:
        return onnx.helper.make_tensor_value_info(name, kind, None)
    scores = onnx.helper.make_map_type_proto(7, onnx.helper.make_tensor_type_proto(1, None))
    return onnx.helper.make_value_info(name, onnx.helper.make_sequence_type_proto(scores))


def behind(*nodes: Any, outputs: dict[str, int], constants: dict[str, Any] | None = None) -> Any:
    """A classifier of the labels `l` (0, 1, 2) and scores `s` for one input, with operators behind it."""
    leaves = [(leaf, label) for leaf in (1, 2) for label in range(3)]
    trees = onnx.helper.make_node(
        "TreeEnsembleClassifier", ["x"], ["l", "s"], domain="ai.onnx.ml",
        nodes_treeids=[0] * 3, nodes_nodeids=[0, 1, 2], nodes_featureids=[0] * 3, nodes_values=[0.5, 0.0, 0.0],
        nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"], nodes_truenodeids=[1, 0, 0], nodes_falsenodeids=[2, 0, 0],
        nodes_missing_value_tracks_true=[0] * 3, class_treeids=[0] * 6, class_nodeids=[leaf for leaf, _ in leaves],
        class_ids=[label for _, label in leaves], class_weights=[2.75, 1.5, 0.25, 0.25, 0.5, 3.25],
        classlabels_int64s=[0, 1, 2], post_transform="NONE",
    )  # fmt: skip
    graph = onnx.helper.make_graph(
        [trees, *nodes], "g", [onnx.helper.make_tensor_value_info("x", 1, [None, 1])],
        [output_info(name, kind) for name, kind in outputs.items()],
        [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()],
    )  # fmt: skip
    opsets = [onnx.helper.make_opsetid("", 15), onnx.helper.make_opsetid("ai.onnx.ml", 1)]
    return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8)


def all_outputs(model: Any) -> list[list[Any]]:
    """What onnxruntime gives for 0 and for 1, output by output."""
    import onnxruntime

    session = onnxruntime.InferenceSession(model.SerializeToString())
    return [np.asarray(found).tolist() for found in session.run(None, {"x": np.array([[0], [1]], np.float32)})]


def of_trees(kind: str, given: list[str], made: str, **attributes: Any) -> Any:
    return onnx.helper.make_node(kind, given, [made], domain="ai.onnx.ml", **attributes)


SCORES = [[2.75, 1.5, 0.25], [0.25, 0.5, 3.25]]
SAME: dict[str, tuple[Callable[[], Any], list[Any]]] = {
    "scores of 64 bits": (
        lambda: behind(operator("Cast", "s", "z", to=11), outputs={"l": 7, "z": 11}),
        [[0, 2], SCORES],
    ),
    "repeated": (lambda: behind(operator("Identity", "s"), outputs={"l": 7, "z": 1}), [[0, 2], SCORES]),
    "in another shape": (
        lambda: behind(operator("Reshape", "s", "z", "n"), outputs={"z": 1}, constants={"n": [-1]}),
        [[*SCORES[0], *SCORES[1]]],
    ),
    "labels as floats": (lambda: behind(operator("Cast", "l", to=1), outputs={"s": 1, "z": 1}), [SCORES, [0.0, 2.0]]),
    "labels as texts": (lambda: behind(operator("Cast", "l", to=8), outputs={"s": 1, "z": 8}), [SCORES, ["0", "2"]]),
    "labels by name": (
        lambda: behind(
            of_trees("ArrayFeatureExtractor", ["n", "l"], "z"),
            outputs={"s": 1, "z": 8},
            constants={"n": np.array([["no", "maybe", "yes"]], object)},
        ),
        [SCORES, [["no", "yes"]]],
    ),
    "not about the trees": (lambda: behind(operator("Identity"), outputs={"s": 1, "z": 1}), [SCORES, [[0.0], [1.0]]]),
}
CHANGED: dict[str, tuple[Callable[[], Any], list[Any], str]] = {
    "whole scores": (
        lambda: behind(operator("Cast", "s", to=7), outputs={"l": 7, "z": 7}),
        [[0, 2], [[2, 1, 0], [0, 0, 3]]],
        "Cast after the trees changes the scores",
    ),
    "whole scores as floats": (
        lambda: behind(operator("Cast", "s", "y", to=7), operator("Cast", "y", to=1), outputs={"z": 1}),
        [[[2.0, 1.0, 0.0], [0.0, 0.0, 3.0]]],
        "Cast after the trees changes the scores",
    ),
    "whole scores before what they are made of": (
        lambda: behind(operator("Cast", "y", "z", to=7), operator("Identity", "s", "y"), outputs={"l": 7, "z": 7}),
        [[0, 2], [[2, 1, 0], [0, 0, 3]]],
        "Cast precedes the operator that computes its input",
    ),
    "other order": (
        lambda: behind(
            of_trees("ArrayFeatureExtractor", ["s", "n"], "z"), outputs={"l": 7, "z": 1}, constants={"n": [2, 1, 0]}
        ),
        [[0, 2], [row[::-1] for row in SCORES]],
        "ArrayFeatureExtractor after the trees changes the scores",
    ),
    "other names": (
        lambda: behind(of_trees("ZipMap", ["s"], "z", classlabels_int64s=[2, 1, 0]), outputs={"l": 7, "z": 0}),
        [[0, 2], [{2: 2.75, 1: 1.5, 0: 0.25}, {2: 0.25, 1: 0.5, 0: 3.25}]],
        "ZipMap after the trees changes the scores",
    ),
    "labels turned": (
        lambda: behind(
            of_trees("ArrayFeatureExtractor", ["n", "l"], "z"), outputs={"s": 1, "z": 7}, constants={"n": [2, 1, 0]}
        ),
        [SCORES, [[2, 0]]],
        "ArrayFeatureExtractor after the trees changes the labels",
    ),
    "labels that become one": (
        lambda: behind(operator("Cast", "l", to=9), outputs={"s": 1, "z": 9}),
        [SCORES, [False, True]],
        "Cast after the trees changes the labels",
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_operators_that_repeat_scores_and_labels_are_read(name: str) -> None:
    make, outputs = SAME[name]
    model = make()
    assert all_outputs(model) == outputs
    loaded = load(model)
    assert loaded.ensemble.margins_emulated(np.array([[0.0], [1.0]])).tolist() == SCORES


@pytest.mark.parametrize("name", CHANGED)
def test_operators_that_change_scores_or_labels_are_refused_by_name(name: str) -> None:
    make, outputs, message = CHANGED[name]
    model = make()
    found = all_outputs(model)
    assert found == outputs
    assert SCORES not in found or [0, 2] not in found
    with pytest.raises(ModelError, match=message) as caught:
        load(model)
    assert caught.value.remedy


def test_operators_that_a_file_defines_itself_are_refused() -> None:
    """A function of the file may be called Cast and do anything."""
    model = by_hand()
    ids = [onnx.helper.make_opsetid("", 15)]
    model.functions.append(
        onnx.helper.make_function("own", "Cast", ["a"], ["b"], [onnx.helper.make_node("Abs", ["a"], ["b"])], ids)
    )
    model.opset_import.append(onnx.helper.make_opsetid("own", 1))
    model.graph.node[0].output[0] = "z"
    model.graph.node.append(onnx.helper.make_node("Cast", ["z"], ["y"], domain="own"))
    with pytest.raises(ModelError, match="its own operators"):
        load(model)


@pytest.mark.parametrize("rows", [1, 7])
def test_graphs_that_take_a_fixed_number_of_rows_are_replayed(rows: int) -> None:
    model = by_hand()
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = rows
    conformance.check(load(model), rows=20).raise_if_wrong()
    asked = np.random.default_rng(5).normal(0, 2, (rows, 2))
    row = np.array(asked[0])
    assert graph_scores(model.SerializeToString(), row) == onnxruntime_scores(model, asked)[:1]


def _without_opset(model: Any) -> None:
    del model.opset_import[1]


def _of_version(model: Any) -> None:
    model.ir_version = 99


def _of_tomorrow(model: Any) -> None:
    model.opset_import[1].version = 99


_NO_OPSET = pytest.param(_without_opset, marks=since("onnxruntime", "1.18"))


@pytest.mark.parametrize("damage", [_NO_OPSET, _of_version, _of_tomorrow])
def test_what_onnxruntime_refuses_is_one_error(damage: Callable[[Any], None]) -> None:
    model = by_hand()
    damage(model)
    loaded = load(model)
    for ask in (lambda: loaded.margins(np.zeros((1, 2))), lambda: graph_scores(model.SerializeToString(), np.zeros(2))):
        with pytest.raises(ModelError, match="onnxruntime refused the model"):
            ask()


def _no_outputs(model: Any) -> None:
    del model.graph.node[0].output[:]


def _two_outputs(model: Any) -> None:
    model.graph.node[0].output.append("w")


def _one_dimension(model: Any) -> None:
    del model.graph.input[0].type.tensor_type.shape.dim[0]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_no_outputs, "must have 1 outputs, not 0"),
        (_two_outputs, "must have 1 outputs, not 2"),
        (_one_dimension, "the input has 1 dimensions"),
    ],
)
def test_graphs_that_no_runtime_takes_are_refused(damage: Callable[[Any], None], message: str) -> None:
    model = by_hand()
    damage(model)
    with pytest.raises(ModelError, match=message):
        load(model)


def test_random_damage_gives_a_typed_error_or_a_valid_model() -> None:
    def read(data: bytes) -> Any:
        return ONNXFrontend().load(Path("model.onnx"), data)

    assert refusals(made("boosting, four classes").SerializeToString(), read) > 10


def test_rows_are_cast_to_float32_first() -> None:
    loaded = load(made("all modes"))
    rows = np.array([[float(np.nextafter(np.float64(np.float32(0.1)), 1)), 0.0]])
    assert (loaded.margins(rows) == loaded.ensemble.margins_emulated(rows)).all()


@pytest.mark.parametrize("location", ["factor.bin", "../factor.bin", "/factor.bin"])
def test_a_tensor_in_another_file_is_refused(location: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two files of that name, one next to the model and one in the current folder, the library takes the first; a reader of
    bytes took the second.
    """
    model = before(onnx.helper.make_node("Mul", ["x", "c"], ["y0"]), constants={"c": [2.0]})
    (tmp_path / "here").mkdir()
    for folder, number in ((tmp_path, 2.0), (tmp_path / "here", 3.0)):
        np.asarray([number], np.float32).tofile(folder / "factor.bin")
    (tensor,) = model.graph.initializer
    onnx.external_data_helper.set_external_data(tensor, location)
    tensor.ClearField("raw_data")
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(ModelError, match="is in another file"):
        load(path)
    with pytest.raises(ModelError, match="is in another file"):
        load(model)
