"""The base class of link functions.

A link maps a model's raw scores to predictions, and states provable facts about predictions in terms of scores: the score at
which a prediction reaches a number (`least_score`), a prediction as a sum of functions that the compiler can bound
(`summands`), and the classes that follow from predictions (`class_rules`). The defaults are for models of which only raw scores
are known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.base.arrays import FloatArray, Int64Array
from treesens.compiler.model import Ensemble
from treesens.compiler.query.bounds import LogRational
from treesens.compiler.query.predicted_classes import STEEPEST
from treesens.compiler.query.query import ScoreTerm, Summand
from treesens.compiler.query.shares import Linear

if TYPE_CHECKING:
    from treesens.binder.scope import Pending, Scope

OfMember: TypeAlias = "Callable[[ScorePlace, int, bool], Pending]"
"""Maps (a member's scores, class, flag) to a constraint: the member predicts the class or, if the flag is False, does not."""
Operator = Literal[">=", ">", "<=", "<"]
Refusal = tuple[str, str]
"""The message and the remedy of an error."""
Require = Callable[[object, str], None]
"""Raises ModelError with this message unless the condition holds."""


@dataclass(frozen=True)
class ScorePlace:
    """The scores of a model at a point: all scores of `whole`, or the scores of its member `model`, starting at `first`."""

    point: int
    whole: Ensemble
    model: Ensemble
    first: int = 0

    @property
    def is_inside(self) -> bool:
        """True for a member of a model of models."""
        return self.model is not self.whole

    def term(self, output: int, coefficient: Fraction) -> ScoreTerm:
        """coefficient * score of the model, as a term; scores in typed questions are sums before averaging."""
        return ScoreTerm(self.point, self.first + output, coefficient / self.whole.average)

    def linear(self, output: int, factor: Fraction) -> Linear:
        """factor * score, as a term of a sum of probabilities."""
        low, high = score_range(self.whole, self.first + output)
        return Linear(factor, (self.term(output, Fraction(1)),), low, high)


@dataclass(frozen=True)
class ClassRule:
    """A condition for predicting a class: the sum over classes of coefficient * probability, compared with `number`."""

    terms: Mapping[int, Fraction]
    operator: Operator
    number: Fraction


@dataclass(frozen=True)
class Link:
    """The map from raw scores to predictions, with provable facts about this map. Subclasses override parts."""

    name: ClassVar[str]
    """The name of the link in records and messages."""
    advice: ClassVar[str] = ""
    """The questions supported by models with this link, for `treesens info`; empty if all questions are supported."""

    is_known: ClassVar[bool] = True
    """False if predictions are not a known function of the scores."""
    is_linear: ClassVar[bool] = False
    """True if scores are themselves the predictions."""
    is_probability: ClassVar[bool] = False
    """True if predictions for classes are probabilities that the link computes from the scores."""
    grows: ClassVar[bool] = False
    """True if predictions grow exponentially with the score, so that the compiler has no bound for sums of predictions."""
    is_share: ClassVar[bool] = False
    """True if the prediction of a class is the class's share of a sum over all classes, increasing in the class's score."""
    ratios_are_exponential: ClassVar[bool] = False
    """True if the ratio of two predictions with equal other scores is e to the power of the difference of their scores."""
    averages: ClassVar[bool] = False
    """True if the scores belong to several models, whose probabilities are averaged."""
    votes: ClassVar[bool] = False
    """True if the scores belong to several models, whose classes are compared or counted; the only prediction is a class."""
    compares_members: ClassVar[bool] = False
    """True if each of the several models has the score of one class."""
    least_lead: ClassVar[Fraction] = Fraction(0)
    """The least difference between these scores, relative to their sum, that the library certainly distinguishes."""
    several: ClassVar[str] = ""
    """The predicate of a sentence about a model without its own score: "averages the probabilities of several"."""
    prefers_gaps: ClassVar[bool] = False
    """True if users state distances between predictions in terms of probabilities instead of raw scores."""
    decides_at_zero: ClassVar[bool] = True
    """True if, with one score for two classes, the second class is predicted for scores above about 0."""
    leads_by_margin: ClassVar[bool] = True
    """False if only probabilities define a class's lead."""
    leads_by_factor: ClassVar[bool] = False
    """True if the ratio of two probabilities at one input is known, from scores (e**difference) or `class_rules`."""
    is_noted: ClassVar[bool] = False
    """True if rows about one prediction record the probability, whose digits the library compares (`AtLeast.shown`)."""
    has_log_loss: ClassVar[bool] = False
    """True if training minimises the logarithm of the probability."""

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

    @property
    def is_single(self) -> bool:
        """True if the link itself rounds its predictions to float32."""
        return False

    @property
    def written_slack(self) -> Fraction | None:
        """The decimal rounding of a prediction that was fitted after training and is compared as written; else None."""
        return None

    @property
    def of_probability(self) -> bool:
        """True if the link rounds a sigmoid of the score, and computes the prediction from the rounded value."""
        return False

    def is_like(self, other: Link) -> bool:
        """True if both links are of the same kind; their parameters may differ."""
        return type(self) is type(other)

    # --- numbers ------------------------------------------------------------------------------------------------------------

    def predict(self, ensemble: Ensemble, scores: NDArray[Any]) -> NDArray[Any]:  # noqa: ARG002 - for subclasses
        """The library's predictions [rows, n] for scores [rows, n_outputs], in the number type of the scores."""
        return scores

    def winners(self, ensemble: Ensemble, scores: FloatArray) -> Int64Array | None:  # noqa: ARG002
        """The predicted classes int64[rows] for scores float64[rows, n_outputs]; None if predictions define the classes."""
        return None

    def sure_winners(self, ensemble: Ensemble, scores: FloatArray) -> list[int | None] | None:  # noqa: ARG002
        """The classes that certainly win (None for a row that rounding decides); None if predictions define the classes."""
        return None

    def slack(self, ensemble: Ensemble, term: ScoreTerm) -> Fraction | None:  # noqa: ARG002
        """The difference of scores that rounding may hide in a row about two classes; None if predictions define the class."""
        return None

    def score_at(self, prediction: float) -> float | None:  # noqa: ARG002
        """The score, in floats, at which a prediction is this number; None if the link has no closed inverse."""
        return None

    def flatness(self, score: float) -> float:
        """An upper bound on 1 / slope of a prediction at scores up to this absolute value: for a sigmoid, e**|score|."""
        return math.exp(min(abs(score), STEEPEST))

    def validate(self, ensemble: Ensemble, require: Require) -> None:
        """Checks the link's requirements on its ensemble."""

    # --- constraints --------------------------------------------------------------------------------------------------------

    def score_of(self, output: int) -> int:  # noqa: ARG002
        """The index of the score for a prediction."""
        return 0

    def probability_of(self, ensemble: Ensemble, wanted: int) -> tuple[int, bool] | None:  # noqa: ARG002
        """The prediction that gives a class's probability, with True if the prediction is subtracted from 1; or None."""
        return None

    def least_score(self, number: Fraction, *, strict: bool) -> LogRational | bool | None:  # noqa: ARG002
        """The exact bound on the score that is equivalent to a prediction of at least `number` (above `number`, if `strict`).

        True if all scores reach the number, False if no score does, and None if the condition is not a bound on one score.
        """
        return None

    def mirrored(self, number: Fraction) -> Fraction:
        """The bound on the second class's probability that matches a bound of 1 - `number` on the first class's probability."""
        return number

    def refuse_number(self, number: Fraction) -> Refusal | None:  # noqa: ARG002
        """The reason why no prediction equals `number`; None if some prediction may."""
        return None

    def refuse_margin(self, point: str) -> Refusal | None:  # noqa: ARG002
        """The reason why a question cannot use a point's margin, or None."""
        return None

    def refuse_probability(self, point: str) -> Refusal:
        """The reason why a question cannot use a point's probability."""
        return "the model predicts a raw margin, not a probability", f"write `margin({point})`"

    def refuse_lead(self, point: str, factor: Fraction, margin: Fraction) -> Refusal | None:  # noqa: ARG002
        """The reason why a class cannot lead by this factor of probabilities and this margin, or None."""
        if margin and not self.leads_by_margin:
            message = "classes of a calibrated model, or of a mean of models, lead by a probability, not a margin"
            return message, "write `by factor g`, or compare `prob(P)` with a number"
        if factor > 1 and self.is_probability and not self.leads_by_factor:
            return f"the link `{self.name}` bounds no ratio of probabilities", "compare `prob(P)` with a number"
        return None

    def summands(self, place: ScorePlace, output: int, factor: Fraction) -> tuple[Summand, ...] | None:  # noqa: ARG002
        """factor * prediction as a sum of bounded functions of scores; None if the prediction has no such form."""
        return None

    def predicts(self, scope: Scope, voter: ScorePlace, wanted: int, positive: bool, each: OfMember) -> Pending | None:  # noqa: ARG002
        """The constraint that a class is predicted (or not), from constraints on members; None if scores determine it."""
        return None

    def class_rules(self, ensemble: Ensemble, wanted: int, factor: Fraction) -> tuple[ClassRule, ...] | None:  # noqa: ARG002
        """The rules, all required, by which a class is predicted with `factor` times the probability of every other class.

        None if the class follows from the scores.
        """
        return None


@dataclass(frozen=True)
class Raw(Link):
    """Scores that rank the classes, but whose relation to the library's probabilities is unknown."""

    name = "raw"
    advice = "margin(P), class(P): its probabilities are another function of the margin, so give --margin and not --gap"
    is_known = False


def score_range(ensemble: Ensemble, output: int) -> tuple[Fraction, Fraction]:
    """Exact bounds of an output's margin: the sums of the least and of the greatest leaf of each tree."""
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
    """A number as text in a message."""
    return str(int(number)) if number.denominator == 1 else f"{float(number):g}"


def second_class_rules(link_cut: Fraction | None, wanted: int, factor: Fraction) -> tuple[ClassRule, ...]:
    """The rules for two classes in terms of the second class's probability: above 1/2, or at least a cut-off."""
    past: Operator = ">" if link_cut is None else ">="
    below: Operator = "<=" if link_cut is None else "<"
    cut = Fraction(1, 2) if link_cut is None else link_cut
    rules = [ClassRule({1: Fraction(1)}, past if wanted == 1 else below, cut)]
    if factor > 1:
        share = factor / (1 + factor)
        first: Operator = ">=" if wanted == 1 else "<="
        rules.append(ClassRule({1: Fraction(1)}, first, share if wanted == 1 else 1 - share))
    return tuple(rules)


def refused_probability(number: Fraction) -> Refusal:
    """The refusal of a number that no probability of a score equals."""
    message = f"the model predicts probabilities strictly between 0 and 1, never {decimal(number)}"
    return message, "write a probability between 0 and 100 %, e.g. 0.05 or 5%"
