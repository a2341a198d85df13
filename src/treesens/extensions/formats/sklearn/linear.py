"""Reads linear models after encoders and bins: a coefficient times a column with finitely many values is a table.

Regressions, linear SVMs, ridges and perceptrons differ only in the function that is applied to the sum. Each column becomes a
tree over its values, and the model is the sum of these trees with the coefficients as weights, as in a scorecard. With three or
more classes, each class has a sum over the same columns. A numeric column remains open until a question defines a domain for it
(`treesens.extensions.formats.numbers.tables`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.model import Accumulation, Ensemble, Feature, ModelSource, Task
from treesens.compiler.model.numbers import OpenNumber
from treesens.errors import ModelError
from treesens.extensions.formats.additive import Axis, Categories, Numbers
from treesens.extensions.formats.blending import blend_of
from treesens.extensions.formats.links.blend import Way
from treesens.extensions.formats.numbers.tables import number_term, table_of_feature
from treesens.extensions.formats.sklearn.columns import Column, thresholds_of
from treesens.frontends.sklearn.model import plain_classes
from treesens.links import Identity, Link, Logistic, Raw, Softmax

LINEAR = ("ElasticNet", "ElasticNetCV", "Lasso", "LassoCV", "LinearRegression", "Ridge", "RidgeCV")
LOGISTIC = ("LogisticRegression", "LogisticRegressionCV")
_VALUES = (
    *LINEAR,
    "ARDRegression",
    "BayesianRidge",
    "HuberRegressor",
    "LinearSVR",
    "SGDRegressor",
    "TheilSenRegressor",
)
_CLASSES = (
    *LOGISTIC,
    "LinearSVC",
    "PassiveAggressiveClassifier",
    "Perceptron",
    "RidgeClassifier",
    "RidgeClassifierCV",
    "SGDClassifier",
)
_HOMES = ("sklearn.linear_model", "sklearn.svm")
_ONE_EACH = "pass one model per target or label, with dense columns"


@dataclass(frozen=True, eq=False)
class Linear:
    """A linear model, and the function that computes its margins."""

    ensemble: Ensemble
    margins: Callable[[Any, Any], Any]


def is_linear(estimator: Any) -> bool:
    """True if a scikit-learn estimator predicts with a single product of columns and coefficients."""
    kind = type(estimator)
    return kind.__module__.startswith(_HOMES) and kind.__name__ in (*_VALUES, *_CLASSES)


def is_softmax(final: Any, classes: int) -> bool:
    """True if a logistic regression is a softmax of one sum per class, and not one-vs-rest."""
    own = getattr(final, "multi_class", "auto")
    return (
        len(final.classes_) == classes > 2
        and final.solver != "liblinear"
        and own in ("auto", "multinomial", "deprecated")
    )


def _link_of(estimator: Any, classes: int) -> Link:
    """The link from sums to probabilities, or `Raw` if the model has only margins (SVMs, perceptrons, ridges, and one-vs-rest
    models, whose probabilities are quotients of several sums).
    """
    name = type(estimator).__name__
    if name in _VALUES:
        return Identity()
    if classes > 2:
        return Softmax() if name in LOGISTIC and is_softmax(estimator, classes) else Raw()
    logistic = name in LOGISTIC or (name == "SGDClassifier" and estimator.loss in ("log_loss", "log"))
    return Logistic() if logistic else Raw()


def check_finite(estimator: Any, place: str) -> None:
    """Raises ModelError if a coefficient or the intercept is not finite."""
    if not all(np.isfinite(np.asarray(part, np.float64)).all() for part in (estimator.coef_, estimator.intercept_)):
        raise ModelError("a coefficient is not finite", place=place, remedy="the file is damaged; fit it again")


def read_linear(
    estimator: Any, columns: Sequence[Column], features: tuple[Feature, ...], place: str, *, sparse: bool
) -> Linear:
    """The model over the table's columns. Raises ModelError for several targets or labels, and for inexact numbers."""
    if not hasattr(estimator, "coef_"):
        raise ModelError("the linear model has not been fitted", place=place, remedy="fit it first")
    classifier = type(estimator).__name__ in _CLASSES
    if getattr(getattr(estimator, "_label_binarizer", None), "y_type_", "").startswith("multilabel"):
        raise ModelError("a linear model of several labels is not supported", place=place, remedy=_ONE_EACH)
    classes = plain_classes(estimator, place) if classifier else ()
    weights, intercepts = (
        np.asarray(estimator.coef_, np.float64),
        np.ravel(np.asarray(estimator.intercept_, np.float64)),
    )
    scores = len(classes) if len(classes) > 2 else 1
    if weights.size != scores * len(columns) or len(intercepts) not in (1, scores):
        message = f"there are {weights.size} coefficients and {len(intercepts)} intercepts for {len(columns)} columns: "
        message += "the model has several targets, or was fitted on other columns"
        raise ModelError(message, place=place, remedy=_ONE_EACH)
    check_finite(estimator, place)
    needs = {column.source for column in columns if np.isnan(column.missing)}
    known = tuple(replace(f, needs_value=i in needs) for i, f in enumerate(features))
    members, names = [_table(column, known, place) for column in columns], [f.name for f in features]
    way = Way.SPARSE if sparse else Way.DECISION if weights.ndim == 2 else Way.LINEAR
    task = Task.MULTICLASS if scores > 1 else Task.BINARY if classifier else Task.REGRESSION
    facts: dict[str, Any] = {
        "name": "model",
        "source": ModelSource(format="sklearn", path=place),
        "classes": classes,
        "link": _link_of(estimator, len(classes)),
        "task": task,
        "ranks_scores": True,
    }

    def added_up(row: list[float], intercept: float, way: Way, **facts: Any) -> Ensemble:
        shares = [Fraction(w) for w in row]
        return blend_of(members, shares, way, names, place, weights=row, intercept=intercept, is_sum=True, **facts)

    if scores == 1:
        ensemble = added_up(weights.ravel().tolist(), float(intercepts[0]), way, **facts)
    else:
        inside = {**facts, "classes": (), "link": Identity(), "task": Task.REGRESSION, "ranks_scores": False}
        rows = zip(weights.reshape(scores, -1).tolist(), np.broadcast_to(intercepts, scores).tolist(), strict=True)
        of_classes = [added_up(row, intercept, Way.LINEAR, **inside) for row, intercept in rows]
        ensemble = blend_of(of_classes, [Fraction(1)] * scores, Way.MATRIX, names, place, is_sum=False, **facts)
        # One product computes all scores, possibly for sparse rows, in an unknown order of additions.
        ensemble = replace(ensemble, accumulation=Accumulation.FLOAT64_ANY_ORDER)
    return Linear(ensemble, (lambda e, x: e.decision_function(x)) if classifier else (lambda e, x: e.predict(x)))


def _table(column: Column, features: tuple[Feature, ...], place: str) -> Ensemble:
    """The values of a column as a tree over one feature, or as an open number."""
    if column.images is None and column.levels is None:
        return number_term(_number(column), features, place)
    axis, values = _axis(column)
    return table_of_feature(axis, values, column.missing, features, place)


def _axis(column: Column) -> tuple[Axis, NDArray[np.float64]]:
    """The bins of a column, and the column's values in the bins."""
    if column.images is not None:
        known = np.where(np.isnan(column.images), 0.0, column.images)
        values, bins = np.unique(known, return_inverse=True)
        return Categories(column.source, bins.astype(np.int64) + 1), values
    assert column.levels is not None
    levels = np.unique(column.levels)
    below = thresholds_of(column, lambda x: x <= levels[:-1], len(levels) - 1)
    values = levels if column.picks is None else column.picks[np.searchsorted(column.levels, levels)]
    cuts = np.nextafter(below, np.inf)
    # A level that no number reaches has no bin.
    kept = np.isfinite(cuts) & (np.append(cuts[1:], np.inf) > cuts) if len(cuts) else np.zeros(0, np.bool_)
    return Numbers(column.source, cuts[kept]), np.append(values[:1], values[1:][kept])


def _number(column: Column) -> OpenNumber:
    """A numeric column as an open number."""
    return OpenNumber(column.source, column.present, column.missing)
