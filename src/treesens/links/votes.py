"""Classes by votes: several models' predicted classes are counted, or the calibrated score of each class is compared."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from treesens.compiler.base.arrays import FloatArray, Int64Array
from treesens.compiler.model import Ensemble
from treesens.compiler.model.calibration import Learnt
from treesens.compiler.query.query import Curve, Quotient, Summand
from treesens.links.link import Link, Refusal, Require, ScorePlace
from treesens.links.mean import require_members


@dataclass(frozen=True)
class Votes(Link):
    """The class that most members predict. There is no other prediction."""

    name = "counted"
    advice = (
        "class(P), `audit`, `why`, `reasons`, `robust`: it counts the classes of several models, or compares calibrated "
        "scores of its classes, and has neither probabilities nor margins here"
    )
    votes = True
    several = "counts the classes of several"
    lacks = "the model counts the classes that several models predict, and has neither probabilities nor margins"
    inside, instead = "one of the models inside", "train it with voting='soft'"
    decide = "votes for classes are counted"

    def winners(self, ensemble: Ensemble, scores: FloatArray) -> Int64Array:
        assert ensemble.blend is not None
        return ensemble.blend.winners(np.asarray(scores, np.float64), len(ensemble.classes))

    def validate(self, ensemble: Ensemble, require: Require) -> None:
        require_members(ensemble, require)
        require(len(ensemble.classes) > 1 and ensemble.cutoff is None, "votes are for classes")

    def refuse_margin(self, point: str) -> Refusal:
        return self.lacks, f"write `class({point}) = C`, or ask about {self.inside}"

    def refuse_probability(self, point: str) -> Refusal:
        return self.lacks, f"write `class({point}) = C`, or {self.instead}"

    def refuse_lead(self, point: str, factor: Fraction, margin: Fraction) -> Refusal | None:
        message = f"the {self.decide}, and no class leads by a probability or a margin"
        return None if factor == 1 and not margin else (message, f"write `class({point}) = C` alone")


@dataclass(frozen=True)
class Compared(Votes):
    """The class with the greatest calibrated score; each member provides one class's score."""

    compares_members = True
    several = "compares the calibrated scores of its classes"
    lacks = "the model compares the calibrated scores of its classes: no probability or margin can be asked about"
    inside, instead = "the model inside", "calibrate one class against the others"
    decide = "calibrated scores of classes are compared"

    def summands(self, place: ScorePlace, output: int, factor: Fraction) -> tuple[Summand, ...]:
        """A class's share of the sum of all calibrated scores."""
        weights = tuple(Fraction(int(i == output)) for i in range(place.model.n_outputs))
        return (Quotient(factor, weights, tuple(score_of_class(place, i) for i in range(len(weights)))),)


def score_of_class(place: ScorePlace, number: int, factor: Fraction = Fraction(1)) -> Curve:
    """factor * a class's calibrated score, for a model that compares these."""
    assert place.model.blend is not None
    calibration = place.model.blend.members[number].calibration
    assert isinstance(calibration, Learnt)
    return place.curve(number, factor, calibration)
