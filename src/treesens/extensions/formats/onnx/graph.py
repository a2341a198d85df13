"""Reads the graph of an ONNX file: the operator with the trees, and the operators before and after it.

Operators after the trees may only copy scores and rewrite labels: a graph that rounds or selects scores, or renames classes,
differs from its trees in its results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from treesens.errors import ModelError

_TYPES: dict[int, Any] = {1: np.float32, 6: np.int32, 7: np.int64, 8: np.str_, 9: np.bool_, 11: np.float64}
_FLOAT, _TEXT, _DOUBLE = 1, 8, 11
_BEHIND = ("Cast", "Identity", "ZipMap", "Reshape", "ArrayFeatureExtractor")
_OF_TREES = ("ZipMap", "ArrayFeatureExtractor")
_TREES = ("TreeEnsembleClassifier", "TreeEnsembleRegressor")
_EXTERNAL = 1
"""TensorProto.EXTERNAL."""
_REMEDY = "convert the tree model alone"


@dataclass(frozen=True)
class Behind:
    """The values after the trees. `scores` lists the values with a score per output; `maps` lists the outputs of a ZipMap."""

    scores: frozenset[str]
    maps: frozenset[str]
    classes: tuple[str | int, ...]


def parsed_model(data: bytes, place: str) -> Any:
    """The ModelProto in a file. Raises ModelError for other files."""
    onnx = onnx_library(place)
    from google.protobuf.message import DecodeError

    try:
        return onnx.load_model_from_string(data)
    except (DecodeError, ValueError) as error:
        raise ModelError(f"not a valid ONNX file: {error}", place=place, remedy="save the model again") from None


def onnx_library(place: str) -> Any:
    """The package onnx. Raises ModelError if onnx is not installed."""
    try:
        import onnx
    except ImportError:
        raise ModelError(
            "reading an ONNX model needs onnx, which is not installed",
            place=place,
            remedy="pip install 'treesens[onnx]'",
        ) from None
    return onnx


def parsed_graph(data: bytes) -> tuple[Any, Behind]:
    """The graph of a file, and the values that follow the trees."""
    model = parsed_model(data, "")
    return model.graph, tree_node(model, "")[3]


def tree_node(model: Any, place: str) -> tuple[Any, int | None, list[Any], Behind]:
    """The operator with the trees, the number of features, the operators before the trees, and the values after the trees.

    Raises ModelError if the graph has other operators.
    """
    from treesens.extensions.formats.onnx.steps import nodes_before

    graph = model.graph
    _refuse_no_text(graph, place)
    _refuse_other_files(graph, place)
    if model.functions:
        raise ModelError(
            "the file defines its own operators (functions)", place=place, remedy="convert the tree model alone"
        )
    trees = [node for node in graph.node if node.op_type in _TREES and node.domain == "ai.onnx.ml"]
    if len(trees) != 1:
        found = ", ".join(sorted({node.op_type for node in graph.node})) or "nothing"
        raise ModelError(
            f"the graph has {len(trees)} tree ensembles; it consists of {found}",
            place=place,
            remedy=f"supported: one {' or '.join(_TREES)}",
        )
    node = trees[0]
    wanted = 2 if node.op_type == "TreeEnsembleClassifier" else 1
    if len(node.output) != wanted or not all(node.output):
        raise ModelError(
            f"{node.op_type} must have {wanted} outputs, not {len(list(filter(None, node.output)))}",
            place=place,
            remedy="the file is damaged; convert the model again",
        )
    constants = {i.name for i in graph.initializer}
    inputs = [i for i in graph.input if i.name not in constants]
    if len(inputs) != 1:
        raise ModelError(
            f"the graph has {len(inputs)} inputs", place=place, remedy="convert the model with one numeric matrix"
        )
    before = nodes_before(graph, node, inputs[0].name, place)
    behind = read_behind(graph, node, before, place)
    kind = inputs[0].type.tensor_type
    if kind.elem_type != _FLOAT:
        raise ModelError("the input is not of type float", place=place, remedy="convert the model with a float32 input")
    shape = kind.shape.dim
    if kind.HasField("shape") and len(shape) != 2:
        raise ModelError(
            f"the input has {len(shape)} dimensions", place=place, remedy="convert the model with one numeric matrix"
        )
    width = shape[1].dim_value if shape else 0
    return node, width if width > 0 else None, before, behind


def _refuse_no_text(graph: Any, place: str) -> None:
    """Refuses names that are not UTF-8, because onnx returns such names as bytes instead of text."""
    texts = [name for n in graph.node for name in (n.op_type, n.name, n.domain, *n.input, *n.output)]
    texts += [attribute.name for n in graph.node for attribute in n.attribute]
    texts += [value.name for value in (*graph.initializer, *graph.input, *graph.output)]
    if not all(isinstance(text, str) for text in texts):
        raise ModelError("a name in the graph is not UTF-8", place=place, remedy="save the model again")


def _refuse_other_files(graph: Any, place: str) -> None:
    """Refuses tensors in other files: the SHA-256 and the copies of the model file do not include such tensors, and a library
    that loads the model from bytes searches for them in the current folder.
    """
    held = (t for n in graph.node for a in n.attribute for t in (a.t, *a.tensors))
    for tensor in (*graph.initializer, *held):
        if tensor.data_location == _EXTERNAL or tensor.external_data:
            where = next((e.value for e in tensor.external_data if e.key == "location"), "")
            raise ModelError(
                f"the tensor `{tensor.name[:60]}` is in another file (`{where[:100]}`); a model must be a single file",
                place=place,
                remedy="onnx.save_model(onnx.load(FILE), FILE, save_as_external_data=False) stores it in the model file",
            )


def read_behind(graph: Any, trees: Any, before: Sequence[Any], place: str) -> Behind:
    """The values after the operator `trees`. Raises ModelError if an operator changes scores or labels."""
    _check_order(graph, place)
    classes = _classes(trees)
    constants = {value.name: value for value in graph.initializer}
    scores, maps = {trees.output[-1]}, set[str]()
    labels: dict[str, tuple[Any, ...]] = {trees.output[0]: classes} if len(trees.output) > 1 else {}
    for node in graph.node:
        if node is trees or node in before:
            continue
        what = f"the operator {node.op_type} after the trees"
        if node.op_type not in _BEHIND or node.domain not in (
            ("ai.onnx.ml",) if node.op_type in _OF_TREES else ("", "ai.onnx")
        ):
            raise ModelError(f"{what} is not supported", place=place, remedy=_REMEDY)
        given = [name for name in node.input if name in scores or name in labels or name in maps]
        if not given:
            continue  # the operator uses only the input or constants
        if given[0] in labels:
            named = _relabelled(node, labels[given[0]], constants)
            if named is None or len(given) > 1:
                raise ModelError(f"{what} changes the labels", place=place, remedy=_REMEDY)
            labels.update(dict.fromkeys(node.output, named))
        elif given[0] in maps or len(given) > 1 or not _repeats(node, classes):
            raise ModelError(f"{what} changes the scores", place=place, remedy=_REMEDY)
        else:
            (maps if node.op_type == "ZipMap" else scores).update(node.output)
    return Behind(frozenset(scores), frozenset(maps), classes)


def _check_order(graph: Any, place: str) -> None:
    """Refuses graphs that are not in topological order, which the format requires, although onnxruntime accepts any order."""
    later = {name for node in graph.node for name in node.output if name}
    for node in graph.node:
        if not later.isdisjoint(node.input):
            raise ModelError(
                f"the operator {node.op_type} precedes the operator that computes its input", place=place,
                remedy="save the graph with its operators in topological order",
            )  # fmt: skip
        later.difference_update(node.output)


def _classes(trees: Any) -> tuple[str | int, ...]:
    named = {a.name: a for a in trees.attribute}
    texts = named["classlabels_strings"].strings if "classlabels_strings" in named else ()
    numbers = named["classlabels_int64s"].ints if "classlabels_int64s" in named else ()
    return tuple(text.decode("utf-8", "replace") for text in texts) or tuple(int(number) for number in numbers)


def _to(node: Any) -> int:
    return next((int(a.i) for a in node.attribute if a.name == "to"), 0)


def _repeats(node: Any, classes: tuple[str | int, ...]) -> bool:
    """True if an operator leaves the values and the order of the scores unchanged."""
    if node.op_type == "ZipMap":
        return _classes(node) == classes
    return node.op_type in ("Identity", "Reshape") or (node.op_type == "Cast" and _to(node) in (_FLOAT, _DOUBLE))


def _relabelled(node: Any, labels: tuple[Any, ...], constants: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """The labels after an operator; None if the operator merges two labels or changes a number."""
    match node.op_type:
        case "Identity" | "Reshape":
            return labels
        case "Cast" if _to(node) in _TYPES:
            try:
                made = tuple(np.array(labels).astype(_TYPES[_to(node)]).tolist())
            except (ValueError, OverflowError):
                return None
            same = _to(node) == _TEXT or made == labels
        case "ArrayFeatureExtractor" if node.input[0] in constants:
            from onnx import numpy_helper

            made = tuple(np.asarray(numpy_helper.to_array(constants[node.input[0]])).ravel().tolist())
            made = tuple(item.decode("utf-8", "replace") if isinstance(item, bytes) else item for item in made)
            same = labels == tuple(range(len(made))) and (made == labels or all(isinstance(item, str) for item in made))
        case _:
            return None
    return made if same and len(set(made)) == len(made) else None
