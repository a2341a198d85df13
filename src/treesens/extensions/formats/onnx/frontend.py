"""ONNX models: one TreeEnsembleClassifier or TreeEnsembleRegressor, read with the onnx package, replayed in onnxruntime.

How onnxruntime evaluates (tree_ensemble_common.h, tree_ensemble_aggregator.h): float32 inputs against float32 values by the
mode of each node; NaN takes the false branch unless missing_value_tracks_true. Scores are summed in float32 from 0 in the
order of the trees, then averaged if asked for, then base_values are added, then the transform is applied.
"""

from __future__ import annotations

import hashlib
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.base.floats import NumberType
from treesens.compiler.model import Accumulation, Ensemble, Link, ModelSource
from treesens.compiler.model.predicted import Predicted, positions
from treesens.errors import ModelError
from treesens.extensions.formats.onnx.behind import Behind, read_behind
from treesens.extensions.formats.onnx.runtime import open_session, run_session
from treesens.frontends.base import LoadedModel

_OPERATORS = ("TreeEnsembleClassifier", "TreeEnsembleRegressor")
_FLOAT, _INTEGER, _TEXT = 1, 7, 8
_EXTERNAL = 1
"""TensorProto.EXTERNAL."""


class ONNXFrontend:
    """Reads graphs in which the trees see the input as it is, or scaled and filled."""

    name = "onnx"
    library = "onnxruntime"
    reads_with = "onnx"

    def recognises_bytes(self, head: bytes) -> bool:
        # ModelProto: field 1 (ir_version), a small varint, then a length-delimited field. The operator names it.
        return head[:1] == b"\x08" and (b"TreeEnsemble" in head or b"ai.onnx" in head or b"onnx" in head[:200])

    def recognises_object(self, obj: object) -> bool:
        return type(obj).__name__ == "ModelProto" and type(obj).__module__.startswith("onnx")

    def load(self, path: Path, data: bytes) -> LoadedModel:
        return self._read(_parsed(data, str(path)), data, str(path), path.stem)

    def from_object(self, obj: Any) -> LoadedModel:
        return self._read(obj, obj.SerializeToString(), "<ModelProto>", "model")

    def _read(self, model: Any, data: bytes, place: str, name: str) -> LoadedModel:
        # Files of other formats are sniffed without the readers of this one.
        from treesens.extensions.formats.onnx.steps import before_steps, longest, steps_of
        from treesens.extensions.formats.onnx.trees import Attributes, read_trees
        from treesens.frontends.columns import MAX_FEATURES, ensemble_of, feature_tuple

        node, width, before, _ = _tree_node(model, place)
        read = read_trees(node.op_type, Attributes(node, place))
        largest = max(int(read.nodes.feature.max(initial=0)), 0 if width else longest(model.graph, before) - 1)
        if max(largest + 1, width or 0) > MAX_FEATURES:
            raise ModelError(f"{max(largest + 1, width or 0):,} features make no sense", place=place)
        if width is None:
            width = largest + 1
        elif largest >= width:
            raise ModelError(f"a split uses feature {largest} of {width}", place=place, remedy="the file is damaged")
        steps = steps_of(model.graph, before, width, place)
        ensemble = ensemble_of(
            before_steps(read.nodes, steps, place) if steps else read.nodes,
            feature_tuple([f"f{i}" for i in range(width)], place),
            place,
            name=name,
            number_type=NumberType.FLOAT32,
            comparison="<=",
            tree_output=read.tree_output,
            tree_weight=np.ones(len(read.nodes.tree_offset) - 1),
            base=read.base,
            link=read.link,
            task=read.task,
            accumulation=Accumulation.FLOAT32_BASE_LAST,
            average=read.average,
            classes=read.classes,
            decides_at=read.decides_at,
            ranks_scores=True,
            source=ModelSource(
                "onnx", version=str(model.ir_version), sha256=hashlib.sha256(data).hexdigest(), path=place
            ),
        )
        library = NativeONNX(data, ensemble.n_outputs)
        return LoadedModel(
            ensemble,
            self.name,
            library.margins,
            None,
            read.notes,
            predicts=partial(library.predicts, ensemble=ensemble),
        )


def _onnx(place: str) -> Any:
    try:
        import onnx
    except ImportError:
        raise ModelError(
            "reading an ONNX model needs onnx, which is not installed",
            place=place,
            remedy="pip install 'treesens[onnx]'",
        ) from None
    return onnx


def _parsed(data: bytes, place: str) -> Any:
    onnx = _onnx(place)
    from google.protobuf.message import DecodeError

    try:
        return onnx.load_model_from_string(data)
    except (DecodeError, ValueError) as error:
        raise ModelError(f"not a valid ONNX file: {error}", place=place, remedy="save the model again") from None


def _refuse_no_text(graph: Any, place: str) -> None:
    """Texts that are not UTF-8 come as bytes, and everybody else takes them for texts."""
    texts = [name for n in graph.node for name in (n.op_type, n.name, n.domain, *n.input, *n.output)]
    texts += [attribute.name for n in graph.node for attribute in n.attribute]
    texts += [value.name for value in (*graph.initializer, *graph.input, *graph.output)]
    if not all(isinstance(text, str) for text in texts):
        raise ModelError("a name in the graph is not UTF-8", place=place, remedy="save the model again")


def _refuse_other_files(graph: Any, place: str) -> None:
    """Refuse tensors in other files: neither the SHA-256 of this file nor a copy of it covers them, and a library that loads
    bytes looks for them in the current folder.
    """
    held = (t for n in graph.node for a in n.attribute for t in (a.t, *a.tensors))
    for tensor in (*graph.initializer, *held):
        if tensor.data_location == _EXTERNAL or tensor.external_data:
            where = next((e.value for e in tensor.external_data if e.key == "location"), "")
            raise ModelError(
                f"the tensor `{tensor.name[:60]}` is in another file (`{where[:100]}`), and a model here is one file",
                place=place,
                remedy="onnx.save_model(onnx.load(FILE), FILE, save_as_external_data=False) puts it into this one",
            )


def parsed_graph(data: bytes) -> tuple[Any, Behind]:
    """The graph of a file, and what repeats the scores of its trees."""
    model = _parsed(data, "")
    return model.graph, _tree_node(model, "")[3]


def _tree_node(model: Any, place: str) -> tuple[Any, int | None, list[Any], Behind]:
    """The operator with the trees, the number of features, and the operators before and behind it.

    ModelError for graphs that do more.
    """
    from treesens.extensions.formats.onnx.steps import nodes_before

    graph = model.graph
    _refuse_no_text(graph, place)
    _refuse_other_files(graph, place)
    if model.functions:
        raise ModelError(
            "the file has operators of its own (functions)", place=place, remedy="convert the tree model alone"
        )
    trees = [node for node in graph.node if node.op_type in _OPERATORS and node.domain == "ai.onnx.ml"]
    if len(trees) != 1:
        found = ", ".join(sorted({node.op_type for node in graph.node})) or "nothing"
        raise ModelError(
            f"the graph has {len(trees)} tree ensembles; it consists of {found}",
            place=place,
            remedy=f"supported: one {' or '.join(_OPERATORS)}",
        )
    node = trees[0]
    wanted = 2 if node.op_type == "TreeEnsembleClassifier" else 1
    if len(node.output) != wanted or not all(node.output):
        raise ModelError(
            f"{node.op_type} has {wanted} outputs, and not {len(list(filter(None, node.output)))}",
            place=place,
            remedy="the file is damaged; convert again",
        )
    constants = {i.name for i in graph.initializer}
    inputs = [i for i in graph.input if i.name not in constants]
    if len(inputs) != 1:
        raise ModelError(
            f"the graph has {len(inputs)} inputs", place=place, remedy="convert the model with one matrix of numbers"
        )
    before = nodes_before(graph, node, inputs[0].name, place)
    behind = read_behind(graph, node, before, place)
    kind = inputs[0].type.tensor_type
    if kind.elem_type != _FLOAT:
        raise ModelError("the input is not of type float", place=place, remedy="convert the model with a float32 input")
    shape = kind.shape.dim
    if kind.HasField("shape") and len(shape) != 2:
        raise ModelError(
            f"the input has {len(shape)} dimensions", place=place, remedy="convert the model with one matrix of numbers"
        )
    width = shape[1].dim_value if shape else 0
    return node, width if width > 0 else None, before, behind


class NativeONNX:
    """What onnxruntime makes of the operator with the trees, and of what stands before it, in one thread."""

    def __init__(self, data: bytes, outputs: int) -> None:
        self._data, self._outputs = data, outputs
        self._sessions: dict[bool, Any] = {}

    def _open(self, *, transformed: bool) -> Any:
        """A session: the operator with its own post_transform, or with NONE."""
        onnx = _onnx("")
        model = onnx.load_model_from_string(self._data)
        node, _, before, _ = _tree_node(model, "")
        alone = onnx.helper.make_node(node.op_type, list(node.input), list(node.output), domain=node.domain)
        alone.attribute.extend(a for a in node.attribute if transformed or a.name != "post_transform")
        if not transformed:
            alone.attribute.append(onnx.helper.make_attribute("post_transform", "NONE"))
        constants = {i.name for i in model.graph.initializer}
        text = any(a.name == "classlabels_strings" and a.strings for a in node.attribute)
        kinds = [_FLOAT] if len(node.output) == 1 else [_TEXT if text else _INTEGER, _FLOAT]
        (given,) = (i for i in model.graph.input if i.name not in constants)
        for dim in given.type.tensor_type.shape.dim[:1]:
            dim.Clear()  # any number of rows, whatever the file says
        graph = onnx.helper.make_graph(
            [*before, alone],
            "trees",
            [given],
            [onnx.helper.make_tensor_value_info(n, kind, None) for n, kind in zip(node.output, kinds, strict=True)],
            [i for i in model.graph.initializer if any(i.name in other.input for other in before)],
        )
        made = onnx.helper.make_model(graph, opset_imports=list(model.opset_import), ir_version=model.ir_version)
        return open_session(made.SerializeToString())

    def _run(self, rows: NDArray[np.float64], *, transformed: bool) -> list[Any]:
        if transformed not in self._sessions:
            self._sessions[transformed] = self._open(transformed=transformed)
        return run_session(self._sessions[transformed], rows)

    def margins(self, rows: NDArray[np.float64]) -> NDArray[Any]:
        """Scores float32[rows, n_outputs] before the transform; of two classes with one score the second column."""
        found = np.asarray(self._run(rows, transformed=False)[-1]).reshape(len(rows), -1)
        return found[:, -1:] if self._outputs == 1 else found

    def predicts(self, rows: NDArray[np.float64], ensemble: Ensemble) -> Predicted:
        """The scores after the transform, and the label."""
        found = self._run(rows, transformed=True)
        scores = np.asarray(found[-1]).reshape(len(rows), -1)
        scores = scores[:, -1:] if self._outputs == 1 else scores
        shown = None if ensemble.link is Link.RAW else scores
        return Predicted(shown, positions(np.asarray(found[0]), ensemble.classes) if ensemble.classes else None)
