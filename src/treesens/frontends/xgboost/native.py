"""Predictions of the xgboost library itself, for replay. xgboost is imported on first use."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.model import Ensemble
from treesens.compiler.model.evaluate import Predicted
from treesens.errors import ModelError

_FEW_ROWS = 64
"""Number of rows up to which one thread predicts: starting other threads would take longer than the prediction."""


class NativeXGBoost:
    """Margins and leaf ids of the saved model `data`, for its first `rounds` rounds (0: all), and for a single output if given.

    Uses a copy of the bytes instead of the live object, since further training must not change the reference of a replay. A
    library older than the version in `oldest` is refused: it would silently ignore the part of the file that `oldest` states.
    """

    def __init__(
        self, data: bytes, rounds: int, outputs: int, output: int | None, oldest: tuple[tuple[int, int], str]
    ) -> None:
        self._data, self._rounds, self._outputs = data, rounds, outputs
        self._columns = slice(None) if output is None else slice(output, output + 1)
        self._oldest = oldest
        self._booster: Any = None
        self._threads: int | None = None

    def _predict(self, rows: NDArray[np.float64], **what: bool) -> NDArray[Any]:
        try:
            import xgboost
        except ImportError:
            raise ModelError(
                "replay in XGBoost itself needs xgboost, which is not installed",
                remedy="pip install 'treesens[xgboost]'",
            ) from None
        oldest, part = self._oldest
        if tuple(map(int, xgboost.__version__.split(".")[:2])) < oldest:
            needed = ".".join(map(str, oldest))
            raise ModelError(
                f"XGBoost {needed} writes {part} in a way that {xgboost.__version__}, which is installed, does not "
                "read, so it cannot replay this model",
                remedy=f"pip install 'xgboost>={needed}'",
            )
        x = np.asarray(rows, dtype=np.float64)
        try:
            if self._booster is None:
                booster = xgboost.Booster()
                booster.load_model(bytearray(self._data))
                self._booster = booster
            # Types are those of the model: otherwise the library would recode. Columns are passed by position, without names: a
            # file may have names with `<` or `[`, which the library does not accept.
            threads = 1 if len(x) <= _FEW_ROWS else None
            if threads != self._threads:
                self._booster.set_param("nthread", threads or 0)
                self._threads = threads
            matrix = xgboost.DMatrix(x, feature_types=self._booster.feature_types, nthread=threads)
            options = {"iteration_range": (0, self._rounds), "strict_shape": True, "validate_features": False}
            return np.asarray(self._booster.predict(matrix, **options, **what))
        except (xgboost.core.XGBoostError, ValueError) as error:
            # After the first line, the message lists addresses in the library.
            reason = str(error).strip().splitlines()[0]
            raise ModelError(f"xgboost {xgboost.__version__} refuses to predict: {reason}") from None

    def margins(self, rows: NDArray[np.float64]) -> NDArray[Any]:
        """Raw margins float32[rows, n_outputs]."""
        return self._predict(rows, output_margin=True).reshape(len(rows), self._outputs)[:, self._columns]

    def predicts(self, rows: NDArray[np.float64], ensemble: Ensemble) -> Predicted:
        """The result of Booster.predict, and the class that XGBClassifier.predict derives from it (sklearn.py of XGBoost).

        With two classes, the second class is predicted if the result is above 1/2, even if the result is the raw score of
        `binary:logitraw`. `multi:softmax` returns the class itself.
        """
        found = self._predict(rows).reshape(len(rows), -1)[:, self._columns]
        if not ensemble.classes:
            return Predicted(found, None)
        if ensemble.n_outputs == 1:
            return Predicted(None if not ensemble.link.is_known else found, (found[:, 0] > 0.5).astype(np.int64))
        if found.shape[1] == 1:
            return Predicted(None, found[:, 0].astype(np.int64))
        return Predicted(found, found.argmax(axis=1).astype(np.int64))

    def leaf_ids(self, rows: NDArray[np.float64]) -> NDArray[Any]:
        """Leaf node ids int32[rows, trees], with trees in the model's order."""
        return self._predict(rows, pred_leaf=True).reshape(len(rows), -1).astype(np.int32)
