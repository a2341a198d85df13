"""Unwraps scikit-learn estimators around one fitted model: parameter searches, decision cut-offs, calibration."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from treesens.errors import ModelError
from treesens.extensions.formats.links.calibration import Learnt
from treesens.extensions.formats.sklearn.calibrated import calibration_of, folds_of, is_calibrated

_SEARCHES = ("GridSearchCV", "RandomizedSearchCV", "HalvingGridSearchCV", "HalvingRandomSearchCV")
_CUTOFFS = ("FixedThresholdClassifier", "TunedThresholdClassifierCV")


@dataclass(frozen=True)
class Unwrapped:
    """The wrapped model, its wrappers from outermost to innermost, the outermost cut-off, and the calibration of the score."""

    model: Any
    wrappers: tuple[str, ...] = ()
    threshold: Fraction | None = None
    calibration: Learnt | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes about the wrappers, for users."""
        if not self.wrappers:
            return ()
        cut = "" if self.threshold is None else f", which decides by probability >= {float(self.threshold):g}"
        notes = (f"the model inside {' of '.join(self.wrappers)}{cut}",)
        return notes if self.calibration is None else (*notes, "prob(P) is calibrated, margin(P) is not")


def unwrap(obj: Any, place: str) -> Unwrapped:
    """The model inside all wrappers. Raises ModelError for a search without a fitted model, or a cut-off on another score."""
    wrappers: list[str] = []
    threshold: Fraction | None = None
    calibration: Learnt | None = None
    while (name := _name(obj)) is not None:
        where = ".".join((place, *wrappers[1:])) if wrappers else place
        wrappers.append(name)
        if name in _SEARCHES:
            obj = _fitted(obj, "best_estimator_", where, "fit it with refit=True, which keeps the best estimator")
        elif name == "CalibratedClassifierCV":
            if calibration is not None:
                raise ModelError("the model is calibrated twice", place=where, remedy="calibrate it once")
            obj, calibration = calibration_of(obj, where)
        elif name in _CUTOFFS:
            # A calibration ignores the cut-off of the wrapped model.
            threshold = threshold if threshold is not None or calibration else _cutoff(obj, name, where)
            obj = getattr(obj, "estimator_", None) or _fitted(obj, "estimator", where, "fit it first")
        else:
            obj = _fitted(obj, "estimator", where, "fit it first")
    return Unwrapped(obj, tuple(wrappers), threshold, calibration)


def _name(obj: Any) -> str | None:
    kind = type(obj)
    known = kind.__name__ in (*_SEARCHES, *_CUTOFFS, "FrozenEstimator")
    # Means over folds and comparisons of several classes are models rather than wrappers.
    known = known or (is_calibrated(obj) and len(folds_of(obj)) <= 1 and len(getattr(obj, "classes_", ())) <= 2)
    return kind.__name__ if known and kind.__module__.startswith("sklearn.") else None


def _fitted(obj: Any, name: str, place: str, remedy: str) -> Any:
    inner = getattr(obj, name, None)
    if inner is None:
        raise ModelError(f"the {type(obj).__name__} has no `{name}`", place=place, remedy=remedy)
    return inner


def _cutoff(obj: Any, name: str, place: str) -> Fraction:
    """The least probability at which the second class is predicted, read as a decimal: 2 of 10 votes reach 0.2."""
    given = _fitted(obj, "best_threshold_", place, "fit it first") if name == _CUTOFFS[1] else obj.threshold
    if getattr(obj, "response_method", "auto") == "decision_function":
        raise ModelError(
            "the cut-off is a raw score",
            place=place,
            remedy="use response_method='predict_proba', or pass the wrapped model itself",
        )
    inner = getattr(obj, "estimator_", None) or obj.estimator
    if not hasattr(inner, "predict_proba"):
        raise ModelError("the wrapped model predicts no probabilities", place=place, remedy="pass the model inside")
    positive = _positive(obj, name)
    if positive is not None and positive != inner.classes_[1]:
        raise ModelError(
            f"the cut-off is a probability of {positive!r}, the first class",
            place=place,
            remedy=f"use pos_label={inner.classes_[1]!r} and one minus the cut-off, or pass the wrapped model itself",
        )
    threshold = Fraction(1, 2) if given == "auto" else Fraction(repr(float(given)))
    if not 0 < threshold < 1:
        raise ModelError(f"the cut-off {given} is not a probability", place=place, remedy="pass the model inside")
    return threshold


def _positive(obj: Any, name: str) -> Any:
    if name == _CUTOFFS[0]:
        return obj.pos_label
    scorer = getattr(obj, "_curve_scorer", None)
    return None if scorer is None else scorer._get_pos_label()
