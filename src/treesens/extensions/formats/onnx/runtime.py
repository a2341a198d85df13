"""Models in onnxruntime, in one thread. Whatever onnxruntime says about a model or its input becomes a ModelError."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesens.errors import ModelError


def open_session(data: bytes) -> Any:
    """A session of onnxruntime. ModelError without onnxruntime, and for a model that it refuses."""
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
    """What a session gives for rows[n, features], as float32: these outputs, or all. ModelError if it takes no such rows."""
    with np.errstate(over="ignore"):
        x = np.asarray(rows, dtype=np.float64).astype(np.float32)
    try:
        return list(session.run(outputs, {session.get_inputs()[0].name: x}))
    except _errors() as error:
        raise _refused(error) from None


def _errors() -> tuple[type[Exception], ...]:
    """The errors of onnxruntime, which have no class in common."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    found = (value for value in vars(state).values() if isinstance(value, type))
    return tuple(value for value in found if issubclass(value, Exception))


def _refused(error: Exception) -> ModelError:
    text = " ".join(str(error).split())
    return ModelError(f"onnxruntime refused the model: {text[:300]}", remedy="save the model again")
