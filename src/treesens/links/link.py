"""The base class of link functions.

A link turns the raw scores of a model into its predictions, and states what can be proved about these in terms of the scores:
the score at which a prediction reaches a number (`least_score`), its prediction as a sum of functions that the compiler can
bound (`summands`), and the classes that follow from predictions (`class_rules`). The defaults are those of a model of which
nothing but its raw scores is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.base.arrays import FloatArray, Int64Array
from treesens.compiler.model import Ensemble
from treesens.compiler.model.calibration import Calibration, Learnt
from treesens.compiler.query.bounds import LogRational
from treesens.compiler.query.predicted_classes import STEEPEST
from treesens.compiler.query.query import Curve, ScoreTerm, Summand

Operator = Literal[">=", ">", "<=", "<"]
Refusal = tuple[str, str]
"""A message and a remedy."""
Require = Callable[[object, str], None]
"""Raises ModelError with the message unless the condition holds."""


@dataclass(frozen=True)
class ScorePlace:
    """The scores of a model at a point: all scores of `whole`, or those of its member `model`, which begin at `first`."""

    point: int
    whole: Ensemble
    model: Ensemble
    first: int = 0

    @property
    def is_inside(self) -> bool:
        """True for a member of a model of models."""
        return self.model is not self.whole

    def term(self, output: int, coefficient: Fraction) -> ScoreTerm:
        """A score of the model times a number; scores of typed questions are sums before averaging."""
        return ScoreTerm(self.point, self.first + output, coefficient / self.whole.average)

    def curve(self, output: int, factor: Fraction, calibration: Learnt | None) -> Curve:
        """factor * calibration(score), or factor * score without a calibration."""
        low, high = score_range(self.whole, self.first + output)
        return Curve(factor, (self.term(output, Fraction(1)),), calibration, low, high)


@dataclass(frozen=True)
class ClassRule:
    """A class is predicted if the sum of coefficient * probability, by class, compares so with `number`."""

    terms: Mapping[int, Fraction]
    operator: Operator
    number: Fraction


@dataclass(frozen=True)
class Link:
    """How raw scores become predictions, and what can be proved about that. Subclasses override what they need."""

    name: ClassVar[str]
    """The word for the link in records and messages."""
    advice: ClassVar[str] = ""
    """Which questions a model with this link answers, for `treesens info`; empty if it answers all."""

    is_known: ClassVar[bool] = True
    """False if the library's predictions are no known function of the scores."""
    is_linear: ClassVar[bool] = False
    """True if a score is itself the prediction."""
    is_probability: ClassVar[bool] = False
    """True if predictions of classes are probabilities, which the link makes of the scores."""
    grows: ClassVar[bool] = False
    """True if predictions grow exponentially with the score: sums of them have no bound that the compiler can use."""
    is_share: ClassVar[bool] = False
    """True if the prediction of a class is its share of a sum over all classes, which rises with the score of the class."""
    ratios_are_exponential: ClassVar[bool] = False
    """True if the ratio of two predictions with the same other scores is e to the difference of their scores."""
    averages: ClassVar[bool] = False
    """True if the scores belong to several models, whose probabilities are averaged."""
    votes: ClassVar[bool] = False
    """True if the scores belong to several models, whose classes are compared or counted; nothing but a class comes out."""
    compares_members: ClassVar[bool] = False
    """True if each of these models has the score of one class."""
    several: ClassVar[str] = ""
    """The predicate of a sentence about a model that has no score of its own: "averages the probabilities of several"."""
    prefers_gaps: ClassVar[bool] = False
    """True if users state distances between predictions in probability; otherwise in raw score."""
    decides_at_zero: ClassVar[bool] = True
    """True if one score of two classes decides for the second class from about 0 on."""
    leads_by_margin: ClassVar[bool] = True
    """False if a class leads by its probability alone."""
    leads_by_factor: ClassVar[bool] = False
    """True if the ratio of two probabilities of one input is known, from scores (e to their difference) or `class_rules`."""
    is_noted: ClassVar[bool] = False
    """True if rows about one prediction note the probability, whose digits the library compares (`AtLeast.shown`)."""
    has_log_loss: ClassVar[bool] = False
    """True if training minimises the logarithm of the probability."""

    @property
    def calibration(self) -> Calibration | None:
        """The function from the score to the probability, if it was learnt after training."""
        return None

    @property
    def of_several(self) -> bool:
        """True if the scores belong to several models."""
        return self.averages or self.votes

    @property
    def rises(self) -> bool:
        """True if the prediction is a strictly increasing function of one score."""
        return False

    @property
    def varies_by_library(self) -> bool:
        """True if libraries round the same prediction in different ways."""
        return False

    def is_like(self, other: Link) -> bool:
        """True for links of one kind, whatever their parameters are."""
        return type(self) is type(other)

    # --- numbers ------------------------------------------------------------------------------------------------------------

    def predict(self, ensemble: Ensemble, scores: NDArray[Any]) -> NDArray[Any]:  # noqa: ARG002 - for subclasses
        """The library's predictions [rows, n] for scores [rows, n_outputs], in the number type of the scores."""
        return scores

    def winners(self, ensemble: Ensemble, scores: FloatArray) -> Int64Array | None:  # noqa: ARG002
        """The predicted classes int64[rows] for scores float64[rows, n_outputs]; None if they follow from predictions."""
        return None

    def score_at(self, prediction: float) -> float | None:  # noqa: ARG002
        """The score at which one prediction is this number, in floats; None if the link has no closed inverse."""
        return None

    def flatness(self, score: float) -> float:
        """An upper bound of 1 / slope of one prediction at any score no further from 0: of a sigmoid, e**|score|."""
        return math.exp(min(abs(score), STEEPEST))

    def validate(self, ensemble: Ensemble, require: Require) -> None:
        """Checks what the link needs of its ensemble."""

    # --- constraints --------------------------------------------------------------------------------------------------------

    def score_of(self, output: int) -> int:  # noqa: ARG002
        """The number of the score that belongs to a prediction."""
        return 0

    def probability_of(self, ensemble: Ensemble, wanted: int) -> tuple[int, bool] | None:  # noqa: ARG002
        """The prediction that is the probability of a class, and whether it has to be subtracted from 1; None if none is."""
        return None

    def least_score(self, number: Fraction, *, strict: bool) -> LogRational | bool | None:  # noqa: ARG002
        """The score from which the prediction is at least `number` (above it, if `strict`), exactly.

        True or False if all scores reach it, or none; None if no bound of one score says it.
        """
        return None

    def mirrored(self, number: Fraction) -> Fraction:
        """The bound of the second class's probability that is `number` as 1 minus a bound of the first one's."""
        return number

    def refuse_number(self, number: Fraction) -> Refusal | None:  # noqa: ARG002
        """Why no prediction is ever `number`; None if one may be."""
        return None

    def refuse_margin(self, point: str) -> Refusal | None:  # noqa: ARG002
        """Why a question cannot use the margin of a point; None if it can."""
        return None

    def refuse_probability(self, point: str) -> Refusal:
        """Why a question cannot use a probability of a point."""
        return "the model predicts a raw margin, not a probability", f"write `margin({point})`"

    def refuse_lead(self, point: str, factor: Fraction, margin: Fraction) -> Refusal | None:  # noqa: ARG002
        """Why a class has no lead by this factor of probabilities and this margin; None if it has."""
        if margin and not self.leads_by_margin:
            message = "a calibrated model, or a mean of several, leads by a probability, and not by a margin"
            return message, "write `by factor g`, or compare `prob(P)` with a number"
        if factor > 1 and self.is_probability and not self.leads_by_factor:
            return f"the link `{self.name}` bounds no ratio of probabilities", "compare `prob(P)` with a number"
        return None

    def summands(self, place: ScorePlace, output: int, factor: Fraction) -> tuple[Summand, ...] | None:  # noqa: ARG002
        """factor * prediction as a sum of bounded functions of scores; None if it is no such sum."""
        return None

    def class_rules(self, ensemble: Ensemble, wanted: int, factor: Fraction) -> tuple[ClassRule, ...] | None:  # noqa: ARG002
        """When a class is predicted whose probability is `factor` times that of every other one, as rules that all hold.

        None if the class follows from the scores.
        """
        return None


@dataclass(frozen=True)
class Raw(Link):
    """Scores that rank the classes, and of which no known function is the library's probability."""

    name = "raw"
    advice = "margin(P), class(P): its probabilities are another function of the margin, so give --margin and not --gap"
    is_known = False


def score_range(ensemble: Ensemble, output: int) -> tuple[Fraction, Fraction]:
    """The margin of an output lies between these: the sums of the least and of the greatest leaf of each tree, exactly."""
    scaled = ensemble.scaled_contributions
    values = scaled.values[:, output if scaled.values.shape[1] > 1 else 0]
    mine = (ensemble.tree_output == output) | (ensemble.tree_output == -1)
    starts = np.searchsorted(ensemble.leaf_tree, np.arange(ensemble.n_trees))
    ends = []
    for fold in (np.minimum, np.maximum):
        best = fold.reduceat(values, starts)[mine] if len(values) else values
        total = Fraction(sum(int(v) for v in best.tolist()), 1 << max(scaled.shift, 0)) * (1 << max(-scaled.shift, 0))
        ends.append(total / ensemble.average + Fraction(float(ensemble.base[output])))
    return ends[0], ends[1]


def decimal(number: Fraction) -> str:
    """A number in a message."""
    return str(int(number)) if number.denominator == 1 else f"{float(number):g}"


def second_class_rules(link_cut: Fraction | None, wanted: int, factor: Fraction) -> tuple[ClassRule, ...]:
    """The rules of two classes by the probability of the second one: above 1/2, or from a cut-off on."""
    past: Operator = ">" if link_cut is None else ">="
    below: Operator = "<=" if link_cut is None else "<"
    cut = Fraction(1, 2) if link_cut is None else link_cut
    rules = [ClassRule({1: Fraction(1)}, past if wanted == 1 else below, cut)]
    if factor > 1:
        share = factor / (1 + factor)
        first: Operator = ">=" if wanted == 1 else "<="
        rules.append(ClassRule({1: Fraction(1)}, first, share if wanted == 1 else 1 - share))
    return tuple(rules)
