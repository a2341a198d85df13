"""Reads `CalibratedClassifierCV` of scikit-learn, which maps a model's score to a probability.

Each fold maps a score in this way; the probabilities of several folds are averaged (`blends.py`).

With more than two classes, each class has a score (its decision function or share of votes) and a calibrator. The probability
of a class is its calibrated score divided by the sum of all calibrated scores; the class with the greatest probability is
predicted. All classes have the same divisor, so comparisons are between functions of one score each (`binder/scores.py`). Folds
have different divisors: folds are members of a mean (`blends.py`) whose probabilities are means of quotients (`quotients.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.model import Ensemble, ModelSource, Task
from treesens.errors import ModelError
from treesens.extensions.formats.blending import blend_of
from treesens.extensions.formats.links.blend import Way
from treesens.extensions.formats.links.calibrated import Calibrated
from treesens.extensions.formats.links.calibration import Isotonic, Learnt, Sigmoid
from treesens.extensions.formats.links.several import Compared
from treesens.extensions.formats.sklearn.columns import rows_of_members
from treesens.frontends.base import LoadedModel, of_output
from treesens.frontends.sklearn.model import names_of, plain_classes
from treesens.frontends.sklearn.rows import replayer
from treesens.links import Logistic

_NAME = "CalibratedClassifierCV"
_INSIDE = "pass the wrapped model, and use its probability"

_NOTE = (
    "each class has a calibrated score, and the probabilities are these divided by their sum: use classes instead of "
    "probabilities or margins"
)


def is_calibrated(obj: Any) -> bool:
    """True if an object is a calibrated model of scikit-learn."""
    return type(obj).__name__ == _NAME and type(obj).__module__.startswith("sklearn.")


def folds_of(obj: Any) -> Sequence[Any]:
    """The calibrated models, one per fold; empty before fitting."""
    return getattr(obj, "calibrated_classifiers_", None) or ()


def calibration_of(obj: Any, place: str, fold: int = 0) -> tuple[Any, Learnt]:
    """The model of one fold of a calibration, and the fold's calibrator. Raises ModelError for several calibrators."""
    inner, (calibration,) = _fold(obj, place, fold, 1)
    return inner, calibration


def _fold(obj: Any, place: str, fold: int, scores: int) -> tuple[Any, tuple[Learnt, ...]]:
    """The model and the calibrators of one fold. Raises ModelError unless there are `scores` calibrators, one per score."""
    folds = folds_of(obj)
    if not folds:
        raise ModelError("the CalibratedClassifierCV has not been fitted", place=place, remedy="fit it first")
    inner, calibrators = folds[fold].estimator, folds[fold].calibrators
    if list(inner.classes_) != list(obj.classes_):
        message = f"the model inside has {len(inner.classes_)} classes, but the calibration {len(obj.classes_)}"
        raise ModelError(message, place=place, remedy="train it on rows of all classes")
    if type(last_of(inner)).__name__.startswith("AdaBoost"):
        message = "calibrated AdaBoost is not supported: its decision function is divided by the sum of its weights"
        raise ModelError(message, place=place, remedy=_INSIDE)
    # scikit-learn calibrates the decision function if the model has one, and otherwise probabilities.
    of_probability = not hasattr(inner, "decision_function")
    read = tuple(_read(calibrator, of_probability, place) for calibrator in calibrators)
    if len(read) != scores:
        raise ModelError(f"{len(read)} calibrators for {scores} scores", place=place, remedy="fit it again")
    return inner, read


def last_of(estimator: Any) -> Any:
    """The final estimator inside pipelines, searches, cut-offs and frozen estimators."""
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
            message = f"the calibrator does not preserve the order of the scores (slope {slope:g})"
            raise ModelError(message, place=place, remedy=_INSIDE)
        return Sigmoid(slope, intercept, of_probability)
    if name != "IsotonicRegression":
        message = f"calibration by {getattr(calibrator, 'method', name)} is not supported"
        raise ModelError(message, place=place, remedy="use method='sigmoid' or method='isotonic'")
    scores, values = (np.asarray(a) for a in (calibrator.X_thresholds_, calibrator.y_thresholds_))
    _check_knots(scores, values, place)
    single = bool(scores.dtype == np.float32)
    # A float32 is printed with fewer digits than the same number as a double.
    written = [float(str(v)) for v in values] if single else values.tolist()
    return Isotonic(tuple(scores.tolist()), tuple(map(float, written)), of_probability, single)


def _check_knots(scores: NDArray[Any], values: NDArray[Any], place: str) -> None:
    fine = scores.ndim == values.ndim == 1 and 0 < len(scores) == len(values)
    fine = fine and bool(np.isfinite(scores).all() and np.isfinite(values).all())
    if not (fine and (np.diff(scores) > 0).all() and (np.diff(values) >= 0).all()):
        raise ModelError("the knots of the isotonic calibrator are not ascending", place=place, remedy="fit it again")


def calibrated(model: LoadedModel, calibration: Learnt, place: str) -> LoadedModel:
    """The model with a calibrated probability; its margin is the calibrator's input."""
    e = model.ensemble
    if len(e.classes) != 2:
        raise ModelError("calibration needs a model of two classes", place=place, remedy=_INSIDE)
    if e.link.is_linear and e.n_outputs == 2 and calibration.of_probability:
        return replace(
            model,
            ensemble=_second_class(e, replace(calibration, of_probability=False)),
            margins=lambda rows: np.asarray(model.margins(rows))[:, 1:],
        )
    if e.n_outputs != 1 or (calibration.of_probability and not isinstance(e.link, Logistic)):
        raise ModelError("the calibrated scores of this model are not sums of leaves", place=place, remedy=_INSIDE)
    return replace(model, ensemble=replace(e, link=Calibrated(calibration), cutoff=None, class_at_zero=0))


def _second_class(e: Ensemble, calibration: Learnt) -> Ensemble:
    """The forest with the second class's share of the votes as its only score."""
    return replace(
        e,
        leaf_value=e.leaf_value[:, 1:],
        tree_output=np.zeros(e.n_trees, np.int32),
        base=e.base[1:],
        link=Calibrated(calibration),
        cutoff=None,
    ).validate()


def read_calibrated_classes(
    obj: Any, load: Callable[[Any], LoadedModel], source: ModelSource, name: str
) -> LoadedModel:
    """The model of a fitted calibration with one fold. Raises ModelError unless class scores are sums of leaves."""
    model = read_fold(obj, load, source, name)
    rows = rows_of_members(obj, [model], model.ensemble, source.path)
    kind = f"CalibratedClassifierCV of {len(model.ensemble.classes)} classes: {model.notes[0]}"
    return replace(
        model, notes=(kind, _NOTE, *model.notes[1:]), predicts=replayer(obj, rows, model.ensemble), inputs=rows
    )


def read_fold(
    obj: Any, load: Callable[[Any], LoadedModel], source: ModelSource, name: str, fold: int = 0
) -> LoadedModel:
    """The model of one fold of a calibration of several classes; the first note is the format of the calibrated model."""
    place = source.path
    inner, calibrations = _fold(obj, place, fold, len(obj.classes_))
    model, classes = load(inner), plain_classes(obj, place)
    members = [_of_class(model.ensemble, k, calibration, place) for k, calibration in enumerate(calibrations)]
    ensemble = blend_of(
        members,
        [Fraction(1)] * len(members),
        Way.COMPARE,
        names_of(obj),
        place,
        is_sum=False,
        name=name,
        source=source,
        classes=classes,
        link=Compared(),
        task=Task.MULTICLASS,
    )
    notes = (model.ensemble.source.format, *model.notes)
    return LoadedModel(ensemble, "sklearn", model.margins, None, notes, inputs=model.inputs)


def _of_class(e: Ensemble, k: int, calibration: Learnt, place: str) -> Ensemble:
    """The calibrated score of class `k`, as an ensemble."""
    shares = e.link.is_linear
    if e.blend is not None or e.n_outputs != len(e.classes) or calibration.of_probability is not shares:
        raise ModelError(
            "each calibrated probability depends on the scores of all classes (a softmax)"
            if calibration.of_probability
            else "this model does not have, for each class, a calibrated score that is a sum of leaves",
            place=place,
            remedy="calibrate a forest, or a model that has a decision function (HistGradientBoostingClassifier, LightGBM); "
            "or pass the model inside it",
        )
    whole = replace(e, cutoff=None, ties=None, ranks_scores=False, ranks_sums=False)
    return replace(
        of_output(whole, k),
        classes=(0, 1),
        task=Task.BINARY,
        link=Calibrated(replace(calibration, of_probability=False)),
        class_at_zero=0,
    ).validate()
