"""What stands behind the trees in a graph of ONNX. It may repeat the scores and write the labels in another way, and no more: a
graph that rounds its scores, picks some of them or gives classes other names predicts something else than its trees.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from treesens.errors import ModelError

_TYPES: dict[int, Any] = {1: np.float32, 6: np.int32, 7: np.int64, 8: np.str_, 9: np.bool_, 11: np.float64}
_FLOAT, _TEXT, _DOUBLE = 1, 8, 11
_OPERATORS = ("Cast", "Identity", "ZipMap", "Reshape", "ArrayFeatureExtractor")
_OF_TREES = ("ZipMap", "ArrayFeatureExtractor")
_REMEDY = "convert the tree model alone"


@dataclass(frozen=True)
class Behind:
    """The names of all values that are the scores, one for each output of the trees; of `maps` each is a map of a ZipMap."""

    scores: frozenset[str]
    maps: frozenset[str]
    classes: tuple[str | int, ...]


def read_behind(graph: Any, trees: Any, before: Sequence[Any], place: str) -> Behind:
    """What repeats the scores of the operator `trees`. ModelError for operators that change scores or labels."""
    _check_order(graph, place)
    classes = _classes(trees)
    constants = {value.name: value for value in graph.initializer}
    scores, maps = {trees.output[-1]}, set[str]()
    labels: dict[str, tuple[Any, ...]] = {trees.output[0]: classes} if len(trees.output) > 1 else {}
    for node in graph.node:
        if node is trees or node in before:
            continue
        what = f"the operator {node.op_type} behind the trees"
        if node.op_type not in _OPERATORS or node.domain not in (
            ("ai.onnx.ml",) if node.op_type in _OF_TREES else ("", "ai.onnx")
        ):
            raise ModelError(f"{what} is not supported", place=place, remedy=_REMEDY)
        given = [name for name in node.input if name in scores or name in labels or name in maps]
        if not given:
            continue  # it is about the input, or about constants
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
    """The format wants operators behind those that make their inputs; onnxruntime takes them in any order."""
    later = {name for node in graph.node for name in node.output if name}
    for node in graph.node:
        if not later.isdisjoint(node.input):
            raise ModelError(
                f"the operator {node.op_type} stands before one that makes its input", place=place,
                remedy="save the graph with its operators in their order",
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
    """Whether an operator of the scores gives the same numbers in the same order."""
    if node.op_type == "ZipMap":
        return _classes(node) == classes
    return node.op_type in ("Identity", "Reshape") or (node.op_type == "Cast" and _to(node) in (_FLOAT, _DOUBLE))


def _relabelled(node: Any, labels: tuple[Any, ...], constants: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """What an operator makes of the labels; None if two of them become one, or a number becomes another number."""
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
