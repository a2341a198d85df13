"""Runs the operator with the trees, or the whole graph, in onnxruntime with one thread.

onnxruntime's errors about a model or its input become ModelErrors.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.model import Ensemble
from treesens.compiler.model.evaluate import Predicted, positions
from treesens.errors import ModelError
from treesens.extensions.formats.onnx.graph import onnx_library, parsed_graph, tree_node

_FLOAT, _INTEGER, _TEXT = 1, 7, 8


def open_session(data: bytes) -> Any:
    """A session of onnxruntime. Raises ModelError if onnxruntime is not installed, or does not accept the model."""
    try:
        import onnxruntime
    except ImportError:
        raise ModelError(
            "replay of ONNX models needs onnxruntime, which is not installed", remedy="pip install 'treesens[onnx]'"
        ) from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        return onnxruntime.InferenceSession(data, options)
    except _errors() as error:
        raise _refused(error) from None


def run_session(session: Any, rows: NDArray[np.float64], outputs: list[str] | None = None) -> list[Any]:
    """The session's `outputs` (all if None) for `rows`, [n, features], cast to float32. Raises ModelError for refused rows."""
    with np.errstate(over="ignore"):
        x = np.asarray(rows, dtype=np.float64).astype(np.float32)
    try:
        return list(session.run(outputs, {session.get_inputs()[0].name: x}))
    except _errors() as error:
        raise _refused(error) from None


def _errors() -> tuple[type[Exception], ...]:
    """The classes of onnxruntime's errors, which have no common base class."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    found = (value for value in vars(state).values() if isinstance(value, type))
    return tuple(value for value in found if issubclass(value, Exception))


def _refused(error: Exception) -> ModelError:
    text = " ".join(str(error).split())
    return ModelError(f"onnxruntime refused the model: {text[:300]}", remedy="save the model again")


class NativeONNX:
    """Predictions by onnxruntime, which runs the operator with the trees and the operators before it."""

    def __init__(self, data: bytes, outputs: int) -> None:
        self._data, self._outputs = data, outputs
        self._sessions: dict[bool, Any] = {}

    def _open(self, *, transformed: bool) -> Any:
        """A session for the operator, with the operator's own post_transform or, if not `transformed`, with NONE."""
        onnx = onnx_library("")
        model = onnx.load_model_from_string(self._data)
        node, _, before, _ = tree_node(model, "")
        alone = onnx.helper.make_node(node.op_type, list(node.input), list(node.output), domain=node.domain)
        alone.attribute.extend(a for a in node.attribute if transformed or a.name != "post_transform")
        if not transformed:
            alone.attribute.append(onnx.helper.make_attribute("post_transform", "NONE"))
        constants = {i.name for i in model.graph.initializer}
        text = any(a.name == "classlabels_strings" and a.strings for a in node.attribute)
        kinds = [_FLOAT] if len(node.output) == 1 else [_TEXT if text else _INTEGER, _FLOAT]
        (given,) = (i for i in model.graph.input if i.name not in constants)
        for dim in given.type.tensor_type.shape.dim[:1]:
            dim.Clear()  # the session accepts any number of rows, whatever the file declares
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
        """Scores before the transform, float32[rows, n_outputs]; for two classes that share a score, only the second column."""
        found = np.asarray(self._run(rows, transformed=False)[-1]).reshape(len(rows), -1)
        return found[:, -1:] if self._outputs == 1 else found

    def predicts(self, rows: NDArray[np.float64], ensemble: Ensemble) -> Predicted:
        """The scores after the transform, and the label."""
        found = self._run(rows, transformed=True)
        scores = np.asarray(found[-1]).reshape(len(rows), -1)
        scores = scores[:, -1:] if self._outputs == 1 else scores
        shown = None if not ensemble.link.is_known else scores
        return Predicted(shown, positions(np.asarray(found[0]), ensemble.classes) if ensemble.classes else None)


def graph_scores(data: bytes, row: NDArray[np.float64]) -> list[float] | None:
    """The scores of one row, from the whole graph's output selected by `score_output`; None if onnxruntime is not installed."""
    if find_spec("onnxruntime") is None:
        return None
    name, classes = score_output(data)
    session = open_session(data)
    batch = session.get_inputs()[0].shape[:1]  # an integer if the graph has a fixed number of rows
    rows = np.repeat(np.reshape(row, (1, -1)), batch[0] if batch and isinstance(batch[0], int) else 1, axis=0)
    (found,) = run_session(session, rows, [name])
    if classes:  # a ZipMap sorts its classes
        return [float(found[0][label]) for label in classes]
    return [float(score) for score in np.asarray(found).reshape(len(rows), -1)[0]]


def score_output(data: bytes) -> tuple[str, tuple[str | int, ...]]:
    """The first graph output that holds the scores of the trees, and the classes if the output is a map of a ZipMap.

    Raises ModelError if no output has the scores.
    """
    graph, behind = parsed_graph(data)
    outputs = [value.name for value in graph.output]
    for names, classes in ((behind.scores, ()), (behind.maps, behind.classes)):
        if found := next((name for name in outputs if name in names), None):
            return found, classes
    raise ModelError("the graph has no output with the scores of its trees", remedy="convert the model with its scores")
