"""What onnxruntime makes of an input with the whole graph of a model, whatever is behind the trees."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesens.errors import ModelError


def graph_scores(data: bytes, row: NDArray[np.float64]) -> list[float] | None:
    """The numbers of the last output of floats for one row; None without onnxruntime. ModelError if there is no such output."""
    try:
        import onnxruntime
    except ImportError:
        return None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(data, options)
    with np.errstate(over="ignore"):
        x = np.asarray(row, dtype=np.float64).astype(np.float32).reshape(1, -1)
    found: list[Any] = session.run(None, {session.get_inputs()[0].name: x})
    for output in reversed(found):
        if isinstance(output, list) and output and isinstance(output[0], dict):  # of a ZipMap: by class
            return [float(score) for score in output[0].values()]
        if isinstance(output, np.ndarray) and output.dtype.kind == "f":
            return [float(score) for score in output.reshape(-1)]
    raise ModelError("the graph has no output of floats", remedy="convert the model with its scores")
