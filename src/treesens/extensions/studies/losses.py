"""Losses of margins on labelled rows, and other figures of a price."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from treesens.binder.domains import number_codes
from treesens.binder.terms import predicts_probabilities
from treesens.compiler.base.arrays import FloatArray
from treesens.compiler.model import Ensemble, Task
from treesens.data.tables import Categories, Table
from treesens.errors import DataError, UsageError
from treesens.extensions.studies.groups_search import Group, groups_of_rows
from treesens.frontends.base import LoadedModel

LossName = Literal["log loss", "squared error", "Brier score"]


@dataclass(frozen=True, eq=False)
class Labelled:
    """Rows, float64[rows, features], as the model reads them, and their labels, float64[rows]: class indices, or values.
    `groups` lists parts of the rows whose prices are reported separately.
    """

    rows: FloatArray
    labels: FloatArray
    groups: tuple[Group, ...] = ()


def loss_name(ensemble: Ensemble) -> LossName:
    """The loss in which a price is measured. Raises UsageError for models that are trained on another loss."""
    if ensemble.task is Task.REGRESSION and ensemble.link.is_linear and ensemble.n_outputs == 1:
        return "squared error"
    binary = ensemble.task is Task.BINARY and ensemble.link.has_log_loss and ensemble.n_outputs == 1
    several = ensemble.task is Task.MULTICLASS and ensemble.link.has_log_loss and ensemble.link.is_share
    if binary or several:
        return "log loss"
    if predicts_probabilities(ensemble):
        return "Brier score"  # forests often predict a probability of 0, for which the log loss is not finite
    raise UsageError(
        f"a model of the task `{ensemble.task.value}` with the link `{ensemble.link.name}` has no loss for prices",
        remedy="prices and repairs are for classifiers with probabilities (logistic, softmax, forests) and plain regressors",
    )


def labelled(model: LoadedModel, table: Table, label: str, by: Sequence[Sequence[str]] = ()) -> Labelled:
    """The rows and labels of an aligned table, with the groups of some columns. Raises DataError for an invalid label (with its
    row) and for a table without rows; raises UsageError for columns that form no groups.
    """
    ensemble = model.ensemble
    if label not in table.columns:
        raise DataError(
            f"the table has no column `{label}`", place=table.name, remedy="name the label column: --label NAME"
        )
    if table.rows == 0:
        raise DataError("the table has no rows", place=table.name, remedy="pass the rows that the model was trained on")
    rows = rows_of(model, table)
    column = table.columns[label]
    if loss_name(ensemble) == "squared error":
        labels = table.numbers(label) if column.dtype == object else column
        bad = np.flatnonzero(~np.isfinite(labels))
    else:
        labels = classes_of_labels(ensemble, column, model.meaning.classes)
        bad = np.flatnonzero(labels < 0)
    if len(bad):
        row = int(bad[0])
        named = model.meaning.classes
        known = (
            ", ".join(f"`{c}`" + (f" or `{named[str(c)]}`" if str(c) in named else "") for c in ensemble.classes[:8])
            or "a finite number"
        )
        raise DataError(
            f"`{str(column[row])[:40]}` is not a label of the model",
            place=f"{table.name}, row {row}, column `{label}`",
            remedy=f"a label is {'one of ' if ensemble.classes else ''}{known}; name another label column"
            + (
                f', or write classes = {{{ensemble.classes[0]} = "NAME", ..}} in treesens.toml'
                if ensemble.classes
                else ""
            ),
        )
    groups = tuple(group for columns in by for group in groups_of_rows(table, columns))
    return Labelled(rows, np.asarray(labels, dtype=np.float64), groups)


def rows_of(model: LoadedModel, table: Table) -> FloatArray:
    """The rows of an aligned table, float64[rows, features]."""
    return table.matrix(model.ensemble.feature_names, _stored_categories(model.ensemble))


def _stored_categories(ensemble: Ensemble) -> dict[str, Categories]:
    """The categories by which columns of categorical features are read."""
    return {
        feature.name: Categories(
            {str(label): float(code) for code, label in enumerate(feature.labels or ())},
            number_codes(feature.labels),
            digits=not feature.labels,
            unsure=feature.unsure,
            mark=feature.mark,
        )
        for feature in ensemble.features
        if feature.labels or feature.unsure or feature.mark
    }


def classes_of_labels(ensemble: Ensemble, column: Any, called: Mapping[str, str]) -> FloatArray:
    """The index of each value's class, or -1 for other values. Values are matched by text or by number; the stated name of a
    class counts only if the model has no label with this text.
    """
    labels = np.full(len(column), -1.0)
    if column.dtype == object:
        for number, name in enumerate(ensemble.classes):
            labels[[value is not None and value == called.get(str(name)) for value in column]] = number
    for number, name in enumerate(ensemble.classes):
        if column.dtype == object:
            labels[[value is not None and str(value) == str(name) for value in column]] = number
        else:
            labels[column == _number(name)] = number
    return labels


def _number(name: str | int) -> float:
    """The number that a class label states, or NaN. (Labels of scikit-learn such as 1.0 are text here.)"""
    try:
        return float(name)
    except ValueError:
        return np.nan


def losses(name: LossName, margins: FloatArray, labels: FloatArray) -> FloatArray:
    """The loss of every row, float64[rows], for margins float64[rows, outputs]."""
    if name == "squared error":
        return np.asarray((margins[:, 0] - labels) ** 2)
    if name == "Brier score":
        return np.asarray(((margins - np.eye(margins.shape[1])[labels.astype(np.int64)]) ** 2).sum(axis=1))
    if margins.shape[1] == 1:
        return np.asarray(np.logaddexp(0.0, margins[:, 0]) - labels * margins[:, 0])
    high = margins.max(axis=1, keepdims=True)
    total = high[:, 0] + np.log(np.exp(margins - high).sum(axis=1))
    return np.asarray(total - margins[np.arange(len(margins)), labels.astype(np.int64)])


def expected_loss(name: LossName, margins: FloatArray, target: FloatArray) -> float:
    """The mean loss of `margins` if labels are distributed as `target` predicts, both float64[rows, outputs]."""
    if name != "log loss":
        return float(((margins - target) ** 2).sum(axis=1).mean())
    if margins.shape[1] == 1:
        return float((np.logaddexp(0.0, margins) - _shares(target) * margins).mean())
    high = margins.max(axis=1, keepdims=True)
    total = high[:, 0] + np.log(np.exp(margins - high).sum(axis=1))
    return float((total - (_shares(target) * margins).sum(axis=1)).mean())


def expected_slopes(name: LossName, margins: FloatArray, target: FloatArray) -> FloatArray:
    """The derivative of each row's expected loss with respect to each margin, float64[rows, outputs]."""
    if name != "log loss":
        return np.asarray(2 * (margins - target))
    return np.asarray(_shares(margins) - _shares(target))


def _shares(margins: FloatArray) -> FloatArray:
    """The predicted probabilities for margins, float64[rows, outputs]."""
    if margins.shape[1] == 1:
        return np.asarray(1 / (1 + np.exp(-np.clip(margins, -500, 500))))
    shares = np.exp(margins - margins.max(axis=1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def curvature(name: LossName) -> float:
    """An upper bound on the second derivative of the loss with respect to a margin."""
    return 0.25 if name == "log loss" else 2.0


def area_under_curve(scores: FloatArray, labels: FloatArray) -> float | None:
    """The share of (positive, negative) pairs of rows that the scores rank correctly (ties count half); None without pairs."""
    positive = labels == 1
    many, few = int(positive.sum()), int((~positive).sum())
    if not many or not few:
        return None
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[place]
    return float((ranks[positive].sum() - many * (many + 1) / 2) / (many * few))
