"""`CalibratedClassifierCV` of scikit-learn: a model inside, whose score becomes a probability.

A mean over several folds is one of several such models (`blends.py`). Of more than two classes each has a calibrator
(`calibrated_classes.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.model import Ensemble, Link
from treesens.compiler.model.calibration import Isotonic, Learnt, Sigmoid
from treesens.errors import ModelError
from treesens.frontends.base import LoadedModel

_NAME = "CalibratedClassifierCV"
_INSIDE = "give the model inside it, and ask about its own probability"


def is_calibrated(obj: Any) -> bool:
    """Whether an object is scikit-learn's calibration of another one."""
    return type(obj).__name__ == _NAME and type(obj).__module__.startswith("sklearn.")


def folds_of(obj: Any) -> Sequence[Any]:
    """The models that were calibrated, one per fold; none if it has not been fitted."""
    return getattr(obj, "calibrated_classifiers_", None) or ()


def calibration_of(obj: Any, place: str, fold: int = 0) -> tuple[Any, Learnt]:
    """The model inside one fold of a calibration, and its calibrator. ModelError for what is no function of one score."""
    inner, (calibration,) = _fold(obj, place, fold, 1)
    return inner, calibration


def calibrations_of(obj: Any, place: str, fold: int = 0) -> tuple[Any, tuple[Learnt, ...]]:
    """The model inside one fold of a calibration of several classes, and the calibrator of each class. ModelError for what is
    no function of one score of each class.
    """
    return _fold(obj, place, fold, len(obj.classes_))


def _fold(obj: Any, place: str, fold: int, scores: int) -> tuple[Any, tuple[Learnt, ...]]:
    """The model inside one fold, and the calibrators of so many scores."""
    folds = folds_of(obj)
    if not folds:
        raise ModelError("the CalibratedClassifierCV has not been fitted", place=place, remedy="fit it first")
    inner, calibrators = folds[fold].estimator, folds[fold].calibrators
    if list(inner.classes_) != list(obj.classes_):
        message = f"the model inside knows {len(inner.classes_)} classes, and the calibration {len(obj.classes_)}"
        raise ModelError(message, place=place, remedy="train it on rows of all classes")
    if type(_last(inner)).__name__.startswith("AdaBoost"):
        message = "calibrated AdaBoost is not supported: its decision function is divided by the sum of its weights"
        raise ModelError(message, place=place, remedy=_INSIDE)
    # scikit-learn calibrates the decision function of models that have one, and the probability of others.
    of_probability = not hasattr(inner, "decision_function")
    read = tuple(_read(calibrator, of_probability, place) for calibrator in calibrators)
    if len(read) != scores:
        raise ModelError(f"{len(read)} calibrators for {scores} scores", place=place, remedy="fit it again")
    return inner, read


def _last(estimator: Any) -> Any:
    """The estimator that predicts in the end, inside of pipelines, searches, cut-offs and frozen ones."""
    while True:
        kind = type(estimator).__name__
        if kind == "Pipeline":
            estimator = estimator.steps[-1][1]
        elif kind.endswith(("SearchCV", "ThresholdClassifier", "ThresholdClassifierCV", "FrozenEstimator")):
            inside = (getattr(estimator, name, None) for name in ("best_estimator_", "estimator_", "estimator"))
            estimator = next((found for found in inside if found is not None), None)
        else:
            return estimator


def _read(calibrator: Any, of_probability: bool, place: str) -> Learnt:
    name = type(calibrator).__name__
    if name == "_SigmoidCalibration":
        slope, intercept = float(calibrator.a_), float(calibrator.b_)
        if not (np.isfinite([slope, intercept]).all() and slope < 0):
            message = f"the calibrator turns the order of the scores round, or ends it (slope {slope:g})"
            raise ModelError(message, place=place, remedy=_INSIDE)
        return Sigmoid(slope, intercept, of_probability)
    if name != "IsotonicRegression":
        message = f"calibration by {getattr(calibrator, 'method', name)} is not supported"
        raise ModelError(message, place=place, remedy="use method='sigmoid' or method='isotonic'")
    scores, values = (np.asarray(a) for a in (calibrator.X_thresholds_, calibrator.y_thresholds_))
    _check_knots(scores, values, place)
    single = bool(scores.dtype == np.float32)
    # The shortest decimals of a float32 are those of the float32, not of the double it is.
    written = [float(str(v)) for v in values] if single else values.tolist()
    return Isotonic(tuple(scores.tolist()), tuple(map(float, written)), of_probability, single)


def _check_knots(scores: NDArray[Any], values: NDArray[Any], place: str) -> None:
    fine = scores.ndim == values.ndim == 1 and 0 < len(scores) == len(values)
    fine = fine and bool(np.isfinite(scores).all() and np.isfinite(values).all())
    if not (fine and (np.diff(scores) > 0).all() and (np.diff(values) >= 0).all()):
        raise ModelError("the knots of the isotonic calibrator do not ascend", place=place, remedy="fit it again")


def calibrated(model: LoadedModel, calibration: Learnt, place: str) -> LoadedModel:
    """A model whose probability is calibrated; its margin stays what the calibrator takes."""
    e = model.ensemble
    if len(e.classes) != 2:
        raise ModelError("calibration needs a model of two classes", place=place, remedy=_INSIDE)
    if e.link is Link.IDENTITY and e.n_outputs == 2 and calibration.of_probability:
        return replace(
            model,
            ensemble=_second_class(e, replace(calibration, of_probability=False)),
            margins=lambda rows: np.asarray(model.margins(rows))[:, 1:],
        )
    if e.n_outputs != 1 or (calibration.of_probability and e.link is not Link.LOGISTIC):
        raise ModelError("the scores that are calibrated are no sums of leaves here", place=place, remedy=_INSIDE)
    return replace(
        model, ensemble=replace(e, link=Link.CALIBRATED, calibration=calibration, cutoff=None, class_at_zero=0)
    )


def _second_class(e: Ensemble, calibration: Learnt) -> Ensemble:
    """A forest whose one score is the share of votes of the second class."""
    return replace(
        e,
        leaf_value=e.leaf_value[:, 1:],
        tree_output=np.zeros(e.n_trees, np.int32),
        base=e.base[1:],
        link=Link.CALIBRATED,
        calibration=calibration,
        cutoff=None,
    ).validate()
