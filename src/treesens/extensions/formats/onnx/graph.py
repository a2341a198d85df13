"""What onnxruntime makes of an input with the whole graph of a model, whatever is behind the trees."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from treesens.errors import ModelError
from treesens.extensions.formats.onnx.frontend import parsed_graph
from treesens.extensions.formats.onnx.runtime import open_session, run_session


def graph_scores(data: bytes, row: NDArray[np.float64]) -> list[float] | None:
    """The scores of one row, by the output `score_output` of the whole graph; None without onnxruntime."""
    if find_spec("onnxruntime") is None:
        return None
    name, classes = score_output(data)
    session = open_session(data)
    batch = session.get_inputs()[0].shape[:1]  # a number if the graph takes so many rows at a time
    rows = np.repeat(np.reshape(row, (1, -1)), batch[0] if batch and isinstance(batch[0], int) else 1, axis=0)
    (found,) = run_session(session, rows, [name])
    if classes:  # of a ZipMap, which sorts its classes
        return [float(found[0][label]) for label in classes]
    return [float(score) for score in np.asarray(found).reshape(len(rows), -1)[0]]


def score_output(data: bytes) -> tuple[str, tuple[str | int, ...]]:
    """The first output of a graph with the scores of its trees, and the classes if it is a map of a ZipMap.

    ModelError if there is no such output.
    """
    graph, behind = parsed_graph(data)
    outputs = [value.name for value in graph.output]
    for names, classes in ((behind.scores, ()), (behind.maps, behind.classes)):
        if found := next((name for name in outputs if name in names), None):
            return found, classes
    raise ModelError("the graph has no output with the scores of its trees", remedy="convert the model with its scores")
