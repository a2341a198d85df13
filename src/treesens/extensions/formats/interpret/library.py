"""Predictions of InterpretML itself, from a live estimator or its JSON."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.model import Ensemble
from treesens.compiler.model.evaluate import Predicted, positions
from treesens.errors import ModelError
from treesens.frontends.sklearn.rows import RowMaker


class NativeAdditive:
    """The estimator of a model; the library is imported on first use."""

    def __init__(self, document: Any, live: Any, labels: Mapping[int, Sequence[Any]], outputs: int) -> None:
        self._document, self._live, self._outputs = document, live, outputs
        self.rows = RowMaker(labels, None)
        """Converts float64 rows with codes to the estimator's form."""

    def _estimator(self) -> Any:
        if self._live is None:
            try:
                from interpret import glassbox
            except ImportError:
                raise ModelError(
                    "replay in InterpretML itself needs interpret-core, which is not installed",
                    remedy="pip install 'treesens[interpret]'",
                ) from None
            classifier = self._document["ebm"]["outputs"][0]["task"] == "classification"
            kind = glassbox.ExplainableBoostingClassifier if classifier else glassbox.ExplainableBoostingRegressor
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a warning that the JSON may change; a table lists its fields
                self._live = kind()._from_jsonable(_complete(self._document))
        return self._live

    def _ask(self, name: str, rows: NDArray[np.float64]) -> NDArray[Any]:
        estimator = self._estimator()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a warning about unseen categories, which are used on purpose
            try:
                return np.asarray(getattr(estimator, name)(self.rows(rows)))
            except ValueError as error:
                raise ModelError(f"interpret refused to predict: {str(error).splitlines()[0]}") from None

    def margins(self, rows: NDArray[np.float64]) -> NDArray[Any]:
        """Scores before the link, float64[rows, outputs]."""
        return self._ask("_predict_score", rows).reshape(len(rows), self._outputs)

    def predicts(self, rows: NDArray[np.float64], ensemble: Ensemble) -> Predicted:
        """The results of `predict_proba` and `predict`."""
        if not ensemble.classes:
            return Predicted(self._ask("predict", rows).reshape(len(rows), 1), None)
        shown = self._ask("predict_proba", rows).reshape(len(rows), -1)[:, -self._outputs :]
        return Predicted(shown, positions(self._ask("predict", rows), ensemble.classes))


def _complete(document: Any) -> Any:
    """The document with added statistics, which the library's reader requires but no prediction uses."""
    ebm = {"bag_weights": [], "best_iteration": [], "implementation": "python"} | document["ebm"]
    output = {"link_param": "nan", "min_target": "nan", "max_target": "nan"}
    feature = {"num_unique_vals": 0, "min": 0.0, "max": 1.0, "histogram_weights": [0.0] * 3}
    statistics = ("standard_deviations", "bagged_scores", "bin_weights")
    term: dict[str, list[float]] = {name: [] for name in statistics}
    ebm["outputs"] = [output | given for given in ebm["outputs"]]
    ebm["features"] = [feature | given for given in ebm["features"]]
    ebm["terms"] = [term | given for given in ebm["terms"]]
    return {**document, "ebm": ebm}
