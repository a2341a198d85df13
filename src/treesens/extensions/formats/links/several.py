"""Links of models of models: the weighted mean of the members' probabilities, or their votes for classes (`blend.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from math import exp
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesens.binder.inputs import all_of, any_of
from treesens.binder.scope import Pending, Scope
from treesens.binder.scores import compare, compare_terms, row_name
from treesens.binder.terms import ScoreAtom
from treesens.compiler.base.arrays import BoolArray, FloatArray, Int64Array
from treesens.compiler.model import Ensemble
from treesens.compiler.query.bounds import LogRational
from treesens.compiler.query.predicted_classes import STEEPEST, sure_classes, unit_of
from treesens.compiler.query.query import ScoreTerm, Summand
from treesens.compiler.query.rounding import largest_score
from treesens.errors import InternalError
from treesens.extensions.formats.links.blend import members_of
from treesens.extensions.formats.links.calibrated import calibration_of
from treesens.extensions.formats.links.calibration import Learnt, Sigmoid
from treesens.extensions.formats.links.curve_sums import Curve, curve
from treesens.extensions.formats.links.quotients import Quotient
from treesens.links.link import ClassRule, Link, OfMember, Operator, Refusal, Require, ScorePlace, second_class_rules
from treesens.links.logistic import Logistic

_SIGMOID = Sigmoid(-1.0, 0.0)
"""1 / (1 + e**-score)."""


@dataclass(frozen=True)
class Mean(Link):
    """The weighted mean of the members' probabilities: one mean per class, or only the mean for the second of two classes."""

    name = "blended"
    advice = (
        "prob(P), class(P), `sensitive m to {f} gap g`, `gap`, `why`, `reasons`, `robust`: it averages the "
        "probabilities of several models. `repair` and shares of inputs require a single score"
    )
    is_probability = True
    averages = True
    several = "averages the probabilities of several"
    prefers_gaps = True
    leads_by_margin, leads_by_factor = False, True

    def predict(self, ensemble: Ensemble, scores: NDArray[Any]) -> NDArray[Any]:
        return members_of(ensemble).probabilities(scores.astype(np.float64), len(ensemble.classes))

    def validate(self, ensemble: Ensemble, require: Require) -> None:
        require_members(ensemble, require)

    def probability_of(self, ensemble: Ensemble, wanted: int) -> tuple[int, bool]:
        return (1, True) if len(ensemble.classes) == 2 and wanted == 0 else (wanted, False)

    def refuse_margin(self, point: str) -> Refusal:
        return "the model predicts the mean prediction of several models, and has no margin", f"write `prob({point})`"

    def summands(self, place: ScorePlace, output: int, factor: Fraction) -> tuple[Summand, ...]:
        blend, first = members_of(place.model), place.first
        result: list[Summand] = []
        for member, share in zip(blend.members, blend.shares, strict=True):
            inside = ScorePlace(place.point, place.whole, member, first)
            own = member.link.summands(inside, output, factor * share)
            if own is None:
                raise InternalError("a mean of models that predict no probabilities")
            if member.link == Logistic():
                # Lines above a sigmoid of one score are tighter than the bounds 0 and 1.
                own = (curve(inside, 0, factor * share, _SIGMOID),)
            result += own
            first += member.n_outputs
        return tuple(result)

    def class_rules(self, ensemble: Ensemble, wanted: int, factor: Fraction) -> tuple[ClassRule, ...]:
        if len(ensemble.classes) == 2:
            return second_class_rules(ensemble.cutoff, wanted, factor)
        rules = []
        for other in range(len(ensemble.classes)):
            if other != wanted:
                first: Operator = ">=" if wanted < other or factor > 1 else ">"
                rules.append(ClassRule({wanted: Fraction(1), other: -factor}, first, Fraction(0)))
        return tuple(rules)


def require_members(ensemble: Ensemble, require: Require) -> None:
    """Requires the members whose predictions the link of an ensemble combines."""
    require(ensemble.blend is not None, "a link of several models needs members")
    require(not ensemble.ranks_scores, "the scores of several models are not compared")


@dataclass(frozen=True)
class Votes(Link):
    """The link that predicts the class with the most votes of members; the model has neither probabilities nor margins."""

    name = "counted"
    advice = (
        "class(P), `audit`, `why`, `reasons`, `robust`: it counts the classes of several models, or compares "
        "calibrated scores of its classes, and has neither probabilities nor margins here"
    )
    votes = True
    several = "counts the classes of several"
    lacks = "the model counts the classes that several models predict, and has neither probabilities nor margins"
    inside, instead = "one of the models inside", "train it with voting='soft'"
    decide = "votes for classes are counted"

    def winners(self, ensemble: Ensemble, scores: FloatArray) -> Int64Array:
        return members_of(ensemble).winners(np.asarray(scores, np.float64), len(ensemble.classes))

    def sure_winners(self, ensemble: Ensemble, scores: FloatArray) -> list[int | None] | None:
        """For each row, the class that wins regardless of the predictions of uncertain members, or None."""
        count = len(ensemble.classes)
        votes = [sure_classes(member, scores[:, first:end]) for member, first, end in members_of(ensemble).parts()]
        result: list[int | None] = []
        for own in zip(*votes, strict=True):
            possible = np.array(list(product(*(range(count) if vote is None else (vote,) for vote in own))), np.int64)
            winners = set(members_of(ensemble).elected(possible, count).tolist())
            result.append(winners.pop() if len(winners) == 1 else None)
        return result

    def predicts(self, scope: Scope, voter: ScorePlace, wanted: int, positive: bool, each: OfMember) -> Pending:  # noqa: ARG002
        """States that the class `wanted` has the most votes or, with `positive=False`, that another class has more votes."""
        blend, classes = members_of(voter.model), len(voter.model.classes)
        members = [replace(voter, model=m, first=voter.first + first) for m, first, _ in blend.parts()]
        shape = (classes,) * len(members)
        votes = np.stack(np.unravel_index(np.arange(np.prod(shape)), shape), axis=1)
        table = ((blend.elected(votes, classes) == wanted) == positive).reshape(shape)
        if table.all() or not table.any():
            return all_of(()) if table.all() else any_of(())
        return _formula(table, members, each)

    def validate(self, ensemble: Ensemble, require: Require) -> None:
        require_members(ensemble, require)
        require(len(ensemble.classes) > 1 and ensemble.cutoff is None, "votes are for classes")

    def refuse_margin(self, point: str) -> Refusal:
        return self.lacks, f"write `class({point}) = C`, or ask about {self.inside}"

    def refuse_probability(self, point: str) -> Refusal:
        return self.lacks, f"write `class({point}) = C`, or {self.instead}"

    def refuse_lead(self, point: str, factor: Fraction, margin: Fraction) -> Refusal | None:
        message = f"the {self.decide}: leads are neither probabilities nor margins"
        return None if factor == 1 and not margin else (message, f"write `class({point}) = C` alone")


@dataclass(frozen=True)
class Compared(Votes):
    """The link of models that predict the class with the greatest calibrated score; each member scores one class."""

    compares_members = True
    least_lead = Fraction(2.0**-40)
    """The least relative lead: if all scores are near the smallest double, exponents near 745 make the last digits wrong."""
    several = "compares the calibrated scores of its classes"
    lacks = "the model compares the calibrated scores of its classes, and has neither probabilities nor margins"
    inside, instead = "the model inside", "calibrate one class against the others"
    decide = "calibrated scores of classes are compared"

    def sure_winners(self, ensemble: Ensemble, scores: FloatArray) -> list[int | None] | None:
        shown = np.asarray(members_of(ensemble).probabilities(np.asarray(scores, np.float64), len(ensemble.classes)))
        best = shown.argmax(axis=1)
        ahead = [row[b] - np.delete(row, b).max() for row, b in zip(shown, best.tolist(), strict=True)]
        return [int(b) if lead > self.least_lead else None for b, lead in zip(best, ahead, strict=True)]

    def slack(self, ensemble: Ensemble, term: ScoreTerm) -> Fraction:
        """The greatest difference between scores that may be lost when sigmoids are rounded."""
        largest, slope = 0.0, Fraction(1)
        for number, member in enumerate(members_of(ensemble).members):
            own = calibration_of(member)
            if not isinstance(own, Sigmoid):
                continue
            largest = max(largest, abs(own.slope) * largest_score(member) / member.average + abs(own.intercept))
            slope = abs(Fraction(own.slope)) if number == term.output else slope
        flatness = Fraction(exp(min(largest, STEEPEST)))
        return unit_of(term, ensemble) / slope * len(ensemble.classes) * self.least_lead * (2 + flatness)

    def predicts(self, scope: Scope, voter: ScorePlace, wanted: int, positive: bool, each: OfMember) -> Pending:  # noqa: ARG002
        """States that the class's calibrated score exceeds all others; the common divisor (the sum of all scores) cancels."""
        ensemble, parts = voter.model, []
        name, mine = f"class.{scope.points[voter.point]}", calibration_of(members_of(ensemble).members[wanted])
        for other, member in enumerate(members_of(ensemble).members):
            if other == wanted:
                continue
            operator: Operator = ">=" if wanted < other else ">"
            lead = tuple(score_of_class(voter, k, Fraction(s)) for k, s in ((wanted, 1), (other, -1)))
            rows, theirs = [compare_terms(lead, operator, Fraction(0), positive, name)], calibration_of(member)
            if isinstance(mine, Sigmoid) and isinstance(theirs, Sigmoid):
                # For two sigmoids, a linear row of scores is equivalent, and such a row is decided quickly.
                zero = LogRational(Fraction(mine.intercept) - Fraction(theirs.intercept))
                one, two = (ScoreAtom(voter.point, k) for k in (wanted, other))
                ahead = {one: -Fraction(mine.slope), two: Fraction(theirs.slope)}
                rows.append(compare(scope, ahead, operator, zero, positive, row_name(scope, ahead)))
            parts.append(all_of(rows))
        return (all_of if positive else any_of)(parts)

    def summands(self, place: ScorePlace, output: int, factor: Fraction) -> tuple[Summand, ...]:
        """A class's share of the sum of all calibrated scores."""
        weights = tuple(Fraction(int(i == output)) for i in range(place.model.n_outputs))
        return (Quotient(factor, weights, tuple(score_of_class(place, i) for i in range(len(weights)))),)


def score_of_class(place: ScorePlace, number: int, factor: Fraction = Fraction(1)) -> Curve:
    """The term factor * calibrated score of a class, for a model that compares calibrated scores."""
    calibration = calibration_of(members_of(place.model).members[number])
    assert isinstance(calibration, Learnt)
    return curve(place, number, factor, calibration)


def _formula(table: BoolArray, members: Sequence[ScorePlace], of_member: OfMember) -> Pending:
    """A formula over the members' classes that is true exactly where `table` is true; `table` must not be constant."""
    parts: list[Pending] = []
    for rest in {left.tobytes(): left for left in table if left.any()}.values():
        allowed = [bool(left[rest].all()) for left in table]
        needed = [] if all(allowed) else [_one_of(members[0], allowed, of_member)]
        parts.append(all_of((*needed, *([] if rest.all() else [_formula(rest, members[1:], of_member)]))))
    return any_of(parts)


def _one_of(member: ScorePlace, allowed: list[bool], of_member: OfMember) -> Pending:
    """States that the member predicts an allowed class; lists the allowed or the excluded classes, whichever are fewer."""
    positive = 2 * sum(allowed) <= len(allowed)
    named = [of_member(member, c, positive) for c, fine in enumerate(allowed) if fine is positive]
    return (any_of if positive else all_of)(named)
