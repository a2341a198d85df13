"""Converts rows of codes and numbers to the input of scikit-learn estimators, with raw categories, names, and ModelErrors."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.model import Ensemble
from treesens.compiler.model.evaluate import Predicted, positions
from treesens.errors import ModelError


@dataclass(frozen=True, eq=False)
class RowMaker:
    """`categories` holds the raw categories of coded columns; `names` is set if the estimator was fitted on a data frame.

    `marks` holds the mark of a missing value for each coded column, `None` or `NaN`: an encoder fitted with one mark treats the
    other mark as an unknown category. Columns whose encoder was fitted with neither mark are not listed.
    """

    categories: Mapping[int, Sequence[Any]]
    names: Sequence[str] | None
    marks: Mapping[int, str] = field(default_factory=dict)
    calculated: frozenset[str] = frozenset()
    """The features with whose numbers steps calculate, in the type of their column; rows are float64 here."""

    def __call__(self, rows: NDArray[np.float64]) -> Any:
        """Input for predict: a matrix, or a data frame with the column names of training."""
        x = np.asarray(rows, dtype=np.float64)
        columns = {f: _decoded(x[:, f], values, self.marks.get(f)) for f, values in self.categories.items()}
        if self.names is not None:
            try:
                import pandas
            except ImportError:
                raise ModelError(
                    "the model was trained on a data frame; its replay needs pandas", remedy="pip install pandas"
                ) from None
            # pandas 3 converts objects to texts, and None to NaN.
            columns = {f: pandas.Series(c, dtype=c.dtype) for f, c in columns.items()}
            return pandas.DataFrame({name: columns.get(f, x[:, f]) for f, name in enumerate(self.names)})
        mixed = any(column.dtype == object for column in columns.values())
        x = x.astype(object) if mixed else x.copy()
        for f, column in columns.items():
            x[:, f] = column
        return x


NAN_ALONE = "train it again with NaN as the only missing value"


def _decoded(codes: NDArray[np.float64], values: Sequence[Any], mark: str | None) -> NDArray[Any]:
    """The raw categories for `codes`; NaN becomes the mark of a missing value; other numbers become an unknown category."""
    numeric = all(isinstance(v, (int, float, np.number)) and not isinstance(v, bool) for v in values)
    known = (codes >= 0) & (codes < len(values))
    index = np.where(known, codes, 0).astype(np.int64)
    if numeric:
        table = np.array([float(v) for v in values])
        unseen = np.abs(table).max(initial=0.0) + 1
        numbers = np.where(np.isnan(codes), np.nan, np.where(known, table[index], unseen))
        return np.where(np.isnan(codes), None, numbers) if mark == "None" else numbers  # type: ignore[call-overload]
    unseen_text = "unseen" + "_" * max(len(str(v)) for v in values)
    result, lost = np.empty(len(codes), dtype=object), None if mark == "None" else np.nan
    for i, code in enumerate(codes):
        result[i] = lost if np.isnan(code) else values[index[i]] if known[i] else unseen_text
    return result


def replayer(estimator: Any, make_rows: Callable[[NDArray[np.float64]], Any], ensemble: Ensemble) -> Any:
    """A function that converts float64 rows to Predicted with the estimator's own `predict` and `predict_proba`."""
    labels = predictor(estimator, make_rows, lambda e, x: e.predict(x), None)
    shown = labels
    if ensemble.classes:
        known = ensemble.link.is_known and not ensemble.link.votes and hasattr(estimator, "predict_proba")
        shown = predictor(estimator, make_rows, lambda e, x: e.predict_proba(x), None) if known else None

    def predicts(rows: NDArray[np.float64]) -> Predicted:
        width = len(ensemble.classes) if ensemble.link.averages else ensemble.n_outputs
        found = None if shown is None else shown(rows).reshape(len(rows), -1)[:, -width:]
        return Predicted(found, positions(labels(rows), ensemble.classes) if ensemble.classes else None)

    return predicts


def predictor(
    estimator: Any,
    make_rows: Callable[[NDArray[np.float64]], Any],
    call: Callable[[Any, Any], Any],
    outputs: int | None,
) -> Any:
    """A function from float64 rows to the result of `call(estimator, input)`, as [rows, outputs] if `outputs` is set. The call
    runs in one thread, so that the order of additions is fixed."""
    fixed = copy.copy(estimator)
    if getattr(fixed, "n_jobs", 1) not in (1, None):
        fixed.n_jobs = 1

    def predict(rows: NDArray[np.float64]) -> NDArray[Any]:
        with warnings.catch_warnings():
            # Unknown categories and overflowing casts are intended here, so their warnings are suppressed.
            warnings.simplefilter("ignore")
            try:
                found = np.asarray(call(fixed, make_rows(rows)))
                return found if outputs is None else found.reshape(len(rows), outputs)
            except (AttributeError, TypeError, ValueError) as error:
                # scikit-learn raises these for attributes and arguments if another version has saved the model.
                raise ModelError(
                    f"scikit-learn refused to predict: {str(error).splitlines()[0]}",
                    remedy="save the model again with the installed version of scikit-learn",
                ) from None

    return predict
