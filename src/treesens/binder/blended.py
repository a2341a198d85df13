"""Probabilities of a mean of several models, as sums of functions of their scores, and classes by counted votes."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from treesens.binder.inputs import all_of, any_of
from treesens.binder.scope import Pending
from treesens.compiler.base.arrays import BoolArray
from treesens.compiler.model import Ensemble, Link
from treesens.compiler.model.blend import Blend
from treesens.compiler.model.calibration import Learnt, Odds, Sigmoid
from treesens.compiler.query import query as q
from treesens.errors import InternalError

_LOGISTIC = Sigmoid(-1.0, 0.0)
"""1 / (1 + e**-s)."""


def blended_terms(
    whole: Ensemble, point: int, wanted: int, factor: Fraction, member: Ensemble | None = None, first: int = 0
) -> tuple[q.Summand, ...]:
    """factor times the probability of a class, or of the second one of two, term by term.

    `member` is a blend inside of the whole, whose scores begin at `first`.
    """
    blend = (member or whole).blend
    assert blend is not None
    result: list[q.Summand] = []
    for inner, share in zip(blend.members, blend.shares, strict=True):
        result += _terms_of(whole, inner, point, first, wanted, factor * share)
        first += inner.n_outputs
    return tuple(result)


def _terms_of(
    whole: Ensemble, member: Ensemble, point: int, first: int, wanted: int, factor: Fraction
) -> tuple[q.Summand, ...]:
    one = Fraction(1, whole.average)
    match member.link:
        case Link.BLENDED:
            return blended_terms(whole, point, wanted, factor, member, first)
        case Link.LOGISTIC:
            return (_curve(whole, point, first, factor, _LOGISTIC),)
        case Link.CALIBRATED:
            if isinstance(member.calibration, Odds):
                raise InternalError("a mean of models with other odds")
            return (_curve(whole, point, first, factor, member.calibration),)
        case Link.IDENTITY:
            return (_curve(whole, point, first + (wanted if member.n_outputs > 1 else 0), factor, None),)
        case Link.SOFTMAX:
            mine = q.ScoreTerm(point, first + wanted, -one)
            others = (first + i for i in range(member.n_outputs) if i != wanted)
            return (q.Probability(factor, tuple(q.Exponent((q.ScoreTerm(point, i, one), mine)) for i in others)),)
        case Link.COUNTED if member.compares_classes:
            weights = tuple(Fraction(int(i == wanted)) for i in range(member.n_outputs))
            return (q.Quotient(factor, weights, _calibrated_scores(whole, member, point, first)),)
        case Link.RAW | Link.EXP | Link.COUNTED:
            raise InternalError("a mean of models that predict no probabilities")


def _calibrated_scores(whole: Ensemble, member: Ensemble, point: int, first: int) -> tuple[q.Curve, ...]:
    """The calibrated score of each class, of a member that divides them by their sum, and whose scores begin at `first`."""
    assert member.blend is not None
    curves = []
    for number, one in enumerate(member.blend.members):
        assert isinstance(one.calibration, Learnt)
        curves.append(_curve(whole, point, first + number, Fraction(1), one.calibration))
    return tuple(curves)


def calibrated_score(ensemble: Ensemble, point: int, factor: Fraction) -> q.Curve:
    """factor times the calibrated probability of the second class, of a model with one score."""
    assert isinstance(ensemble.calibration, Learnt)
    return _curve(ensemble, point, 0, factor, ensemble.calibration)


def score_itself(ensemble: Ensemble, point: int, output: int, factor: Fraction) -> q.Curve:
    """factor times the probability of a class, of a model whose scores are probabilities."""
    return _curve(ensemble, point, output, factor, None)


def calibrated_term(whole: Ensemble, point: int, output: int, factor: Fraction) -> q.Curve:
    """factor times the calibrated score of a class, of a model that compares these."""
    assert whole.blend is not None
    calibration = whole.blend.members[output].calibration
    assert isinstance(calibration, Learnt)
    return _curve(whole, point, output, factor, calibration)


def _curve(whole: Ensemble, point: int, output: int, factor: Fraction, calibration: Learnt | None) -> q.Curve:
    low, high = score_range(whole, output)
    return q.Curve(factor, (q.ScoreTerm(point, output, Fraction(1, whole.average)),), calibration, low, high)


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


Predicts = Callable[[int, int, bool], Pending]
"""(member, class, whether it does) -> the constraint that the member predicts the class, or that it does not."""


def elected(blend: Blend, classes: int, wanted: int, positive: bool, predicts: Predicts) -> Pending:
    """Class `wanted` has the most votes, or (`positive` False) another one has."""
    shape = (classes,) * len(blend.members)
    votes = np.stack(np.unravel_index(np.arange(np.prod(shape)), shape), axis=1)
    table = ((blend.elected(votes, classes) == wanted) == positive).reshape(shape)
    if table.all() or not table.any():
        return all_of(()) if table.all() else any_of(())
    return _formula(table, 0, predicts)


def _formula(table: BoolArray, member: int, predicts: Predicts) -> Pending:
    """What the members from this one on must predict, of a table that is neither true nor false everywhere."""
    parts: list[Pending] = []
    for rest in {left.tobytes(): left for left in table if left.any()}.values():
        allowed = [bool(left[rest].all()) for left in table]
        needed = [] if all(allowed) else [_one_of(member, allowed, predicts)]
        parts.append(all_of((*needed, *([] if rest.all() else [_formula(rest, member + 1, predicts)]))))
    return any_of(parts)


def _one_of(member: int, allowed: list[bool], predicts: Predicts) -> Pending:
    """The member predicts one of the allowed classes, told by those that it does or does not predict, whichever are fewer."""
    positive = 2 * sum(allowed) <= len(allowed)
    named = [predicts(member, c, positive) for c, fine in enumerate(allowed) if fine is positive]
    return (any_of if positive else all_of)(named)
