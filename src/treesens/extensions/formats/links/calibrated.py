"""Probabilities that are functions of the score; the functions are fitted after training (`calibration.py`)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.base.arrays import FloatArray, Int64Array
from treesens.compiler.model import Ensemble
from treesens.compiler.query.bounds import LogRational
from treesens.compiler.query.query import Summand
from treesens.compiler.query.shares import Exponent, Probability
from treesens.errors import InternalError
from treesens.extensions.formats.links.calibration import (
    Calibration,
    Isotonic,
    Odds,
    Sigmoid,
    bound_of_second,
    least_margin,
)
from treesens.extensions.formats.links.curve_sums import curve
from treesens.links.link import ClassRule, Link, Require, ScorePlace, second_class_rules


@dataclass(frozen=True)
class Calibrated(Link):
    """The link of calibrated models: the second class's probability is `function` of the single score or its sigmoid."""

    function: Calibration

    name = "calibrated"
    advice = "prob(P), which is calibrated, and class(P); margin(P) is the uncalibrated score"
    is_probability = True
    prefers_gaps = True
    leads_by_margin, leads_by_factor = False, True
    decides_at_zero = False
    is_noted = True

    @property
    def rises(self) -> bool:
        """False for an isotonic function, which is constant on some intervals."""
        return not isinstance(self.function, Isotonic)

    @property
    def varies_by_library(self) -> bool:
        return isinstance(self.function, Odds)

    @property
    def is_single(self) -> bool:
        return isinstance(self.function, Isotonic) and self.function.single

    @property
    def written_slack(self) -> Fraction:
        return Fraction(1, 1 << 21) if self.is_single else Fraction(1, 1 << 50)

    @property
    def of_probability(self) -> bool:
        return self.function.of_probability

    def winners(self, ensemble: Ensemble, scores: FloatArray) -> Int64Array | None:
        if ensemble.cutoff is not None:
            return None
        second = np.asarray(ensemble.probabilities(scores), np.float64)[:, -1]
        return np.asarray(second > 1 - second, np.int64)

    def predict(self, ensemble: Ensemble, scores: NDArray[Any]) -> NDArray[Any]:  # noqa: ARG002
        one = scores.dtype.type(1)
        given = one / (one + np.exp(np.negative(scores))) if self.function.of_probability else scores
        return self.function.after(given)

    def validate(self, ensemble: Ensemble, require: Require) -> None:
        require(ensemble.n_outputs == 1 and len(ensemble.classes) == 2, "calibration needs one margin and two classes")
        require(ensemble.decides_at is None, "a calibrated model must not have a score threshold for the class")

    def probability_of(self, ensemble: Ensemble, wanted: int) -> tuple[int, bool]:  # noqa: ARG002
        return 1, wanted == 0

    def least_score(self, number: Fraction, *, strict: bool) -> LogRational | bool:
        return least_margin(self.function, number, strict=strict)

    def mirrored(self, number: Fraction) -> Fraction:
        return bound_of_second(self.function, number)

    def summands(self, place: ScorePlace, output: int, factor: Fraction) -> tuple[Summand, ...] | None:  # noqa: ARG002
        if isinstance(self.function, Odds):
            if place.is_inside:
                raise InternalError("a mean of models with corrected odds")
            return None
        if not place.is_inside and isinstance(self.function, Sigmoid) and not self.function.of_probability:
            slope, intercept = Fraction(self.function.slope), Fraction(self.function.intercept)
            return (Probability(factor, (Exponent((place.term(0, slope),), intercept),)),)
        return (curve(place, 0, factor, self.function),)

    def class_rules(self, ensemble: Ensemble, wanted: int, factor: Fraction) -> tuple[ClassRule, ...]:
        return second_class_rules(ensemble.cutoff, wanted, factor)


def calibration_of(ensemble: Ensemble) -> Calibration | None:
    """The function from the score to the probability; None if the model is not calibrated."""
    return ensemble.link.function if isinstance(ensemble.link, Calibrated) else None
