"""Classes as a library separates them: margins that differ by less than the precision of the library's probabilities are a tie.

LightGBM, XGBoost and CatBoost predict the class with the greatest probability, which is rounded after an exponential and a
division. If two margins differ only in the last digit, their probabilities are equal, and the first class wins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from math import exp

import numpy as np

from treesens.compiler.base.arrays import FloatArray
from treesens.compiler.base.floats import NumberType, next_up
from treesens.compiler.model import Ensemble
from treesens.compiler.model.ties import are_near
from treesens.compiler.query.bounds import LogRational
from treesens.compiler.query.dependencies import points_in
from treesens.compiler.query.evaluate import Inputs
from treesens.compiler.query.query import (
    AllOf,
    AnyOf,
    AtLeast,
    Constraint,
    ProbabilitySum,
    Query,
    ScoreTerm,
    Shown,
    parts_in,
)

CLASS_ROW = "class."
"""Prefix in the names of rows that compare scores of classes."""

STEEPEST = 700.0
"""About the largest x for which e**x is a double; beyond this x, no two probabilities differ."""

_RESOLUTION = {NumberType.FLOAT32: Fraction(1, 2**21), NumberType.FLOAT64: Fraction(1, 2**50)}
"""Four units in the last place of 1: an exponential, a sum and a division each have an error below one unit."""


def resolution_of(ensemble: Ensemble) -> Fraction:
    """The minimum difference at which the library certainly separates two probabilities of a model."""
    members = () if ensemble.blend is None else ensemble.blend.members
    single = ensemble.link.is_single or ensemble.accumulation.number_type is NumberType.FLOAT32
    own = _RESOLUTION[NumberType.FLOAT32 if single else NumberType.FLOAT64]
    return max((own, *map(resolution_of, members), *(member.link.least_lead for member in members)))


def voter_of(ensemble: Ensemble, output: int) -> tuple[Ensemble, int]:
    """The model whose class a score decides (the ensemble or, for votes, the member with this score), and the index of that
    model's first score.
    """
    if not ensemble.link.votes:
        return ensemble, 0
    assert ensemble.blend is not None
    member, first = next((member, first) for member, first, end in ensemble.blend.parts() if output < end)
    voter, inside = voter_of(member, output - first)
    return voter, first + inside


def unit_of(term: ScoreTerm, ensemble: Ensemble) -> Fraction:
    """The contribution of a margin of 1 to a row: rows bound sums of leaves, and a margin may be an average over trees."""
    return abs(term.coefficient) * ensemble.average


def compares_scores(ensemble: Ensemble) -> bool:
    """True if the library predicts a class by comparing summed scores instead of probabilities."""
    if ensemble.decides_at is not None:
        return True
    return ensemble.link.is_linear or (ensemble.ranks_scores and ensemble.cutoff is None)


def sure_classes(ensemble: Ensemble, margins: FloatArray) -> list[int | None]:
    """The classes that the library predicts for its margins [rows, n_outputs]; None if only rounding or a hash decides.

    A library that compares probabilities ignores leads below the rounding error of probabilities; equal margins are a tie.
    """
    if (sure := ensemble.link.sure_winners(ensemble, margins)) is not None:
        return sure
    classes = ensemble.predicted_classes(margins)
    if ensemble.ties is not None:
        return [None if _may_tie(ensemble, row) else int(c) for c, row in zip(classes, margins, strict=True)]
    if compares_scores(ensemble):
        if not (ensemble.accumulation.any_order or ensemble.ranks_sums):
            return [int(c) for c in classes]
        hides = _depends_on_order if ensemble.accumulation.any_order else _hides_best
        return [None if hides(ensemble, row) else int(c) for c, row in zip(classes, margins, strict=True)]
    shown = np.asarray(ensemble.probabilities(margins), np.float64)
    near = float(resolution_of(ensemble))
    result: list[int | None] = []
    for row, best, own in zip(shown, classes.tolist(), margins, strict=True):
        if ensemble.link.averages and ensemble.cutoff is None:
            # Equal scores of several models are not a tie of two classes, since only rounded probabilities are compared.
            unsure = (row[best] - np.delete(row, best) <= near).any()
        elif ensemble.n_outputs > 1 and not ensemble.link.averages:
            unsure = ((row[best] - row <= near) & (own != own[best])).any()
        else:
            cut = 0.5 if ensemble.cutoff is None else float(ensemble.cutoff)
            exactly = ensemble.cutoff is None and ensemble.link.decides_at_zero and own[0] == 0
            unsure = _may_pass(ensemble, own) or (
                ensemble.link.is_probability and abs(row[-1] - cut) <= near and not exactly
            )
        result.append(None if unsure else int(best))
    return result


def _may_tie(ensemble: Ensemble, margins: FloatArray) -> bool:
    """True if the two best of `margins`, [n_outputs], may round to the same probability in the library."""
    # For a softmax, a lead of scores is at least the lead of probabilities; shares are relative to the sum.
    assert ensemble.ties is not None
    scores = [float(m) * float(factor) for m, factor in zip(margins, ensemble.ties.factors, strict=True)]
    size = Fraction(1) if ensemble.link.is_share else sum((Fraction(abs(score)) for score in scores), Fraction(0))
    return are_near(np.array(scores), resolution_of(ensemble) * size * ensemble.ties.coarse)


def _may_pass(ensemble: Ensemble, margins: FloatArray) -> bool:
    """True if, in another order of additions, the score may be on the other side of the cut-off."""
    if not ensemble.accumulation.any_order:
        return False
    cut = ensemble.link.score_at(0.5 if ensemble.cutoff is None else float(ensemble.cutoff))
    if cut is None:
        return False
    # With a wide band, a coarse logarithm is precise enough.
    past = abs(float(margins[0]) - cut)
    return past <= float(2 * ensemble.bands()[0]) + 2.0**-44 * (1 + abs(float(margins[0])))


def _depends_on_order(ensemble: Ensemble, margins: FloatArray) -> bool:
    """True if another order of additions may give another class: each compared sum may differ by twice its band."""
    bands, own = ensemble.bands(), [Fraction(float(margin)) for margin in margins]
    if ensemble.decides_at is not None:
        return abs(own[-1] - Fraction(ensemble.decides_at)) <= 2 * bands[-1]
    if len(own) == 1:
        return abs(own[0]) <= 2 * bands[0]
    best = own.index(max(own))
    return any(own[best] - m <= 2 * (bands[best] + bands[k]) for k, m in enumerate(own) if k != best)


def _hides_best(ensemble: Ensemble, margins: FloatArray) -> bool:
    """True if two classes share the greatest margin, but their sums may differ."""
    return int((margins == margins.max()).sum()) > 1 and hides_sums(ensemble, float(margins.max()))


def hides_sums(ensemble: Ensemble, quotient: float) -> bool:
    """True if two different sums, divided by `average`, can give this float in a library that compares sums."""
    if not ensemble.ranks_sums or ensemble.average == 1:
        return False
    kind, count = ensemble.accumulation.number_type, ensemble.average
    sums = np.array([float(kind.cast(quotient * count))] * 3)
    sums[1], sums[2] = next_up(sums[0], kind), -next_up(-sums[0], kind)
    dtype = kind.dtype.type
    return int((dtype(sums) / dtype(count) == quotient).sum()) > 1


def rows_in(constraints: Sequence[Constraint]) -> Iterator[AtLeast | ProbabilitySum]:
    """All rows of scores and sums of probabilities in constraints, including those inside formulas."""
    return (part for part in parts_in(constraints) if isinstance(part, AtLeast | ProbabilitySum))


def told_apart(query: Query, constraint: Constraint, seen: Inputs) -> Constraint:
    """The constraint, tightened so that every lead of a class over an earlier class is visible in the library's probabilities.

    A lead over a later class may be 0, and is unchanged: at a tie the first class wins. `seen` contains the library's scores.
    """

    def harder(row: AtLeast | ProbabilitySum) -> Constraint:
        if isinstance(row, ProbabilitySum):
            return replace(row, bound=row.bound + unshown(query, row))
        if row.shown is not None:
            return _as_shown(query, row, row.shown, seen, doubted=False)
        if _is_hidden_tie(query, row, seen) or _is_drawn(query, row, seen):
            return AnyOf(())
        hidden = _hidden_lead(query, row, seen) if row.strict else 0
        return replace(row, bound=row.bound + LogRational(Fraction(hidden)), strict=False) if hidden else row

    return with_rows(constraint, harder)


def blurred(query: Query, constraint: Constraint, seen: Inputs) -> Constraint:
    """The constraint with every lead of a class relaxed by the largest lead that the library's probabilities may hide."""

    def easier(row: AtLeast | ProbabilitySum) -> Constraint:
        if isinstance(row, ProbabilitySum):
            hidden = unshown(query, row)
            return replace(row, bound=row.bound - hidden, strict=False) if hidden else row
        if row.shown is not None:
            return _as_shown(query, row, row.shown, seen, doubted=True)
        if _is_hidden_tie(query, row, seen) or _is_drawn(query, row, seen):
            return AllOf(())
        hidden = _hidden_lead(query, row, seen)
        return replace(row, bound=row.bound + LogRational(-hidden), strict=False) if hidden else row

    return with_rows(constraint, easier)


def unshown(query: Query, row: ProbabilitySum) -> Fraction:
    """The minimum lead in a row of mean probabilities at which the library certainly predicts its class; 0 for other rows."""
    if not row.name.startswith(CLASS_ROW):
        return Fraction(0)
    return max(resolution_of_class(query.models[query.points[point].model].ensemble) for point in points_in(row))


def resolution_of_class(ensemble: Ensemble) -> Fraction:
    """The minimum difference of two probabilities, or calibrated scores, at which the library certainly separates their
    classes."""
    # The sum by which calibrated scores are divided is at most the number of classes.
    divisor = len(ensemble.classes) if ensemble.link.least_lead else 1
    return divisor * max(ensemble.link.least_lead, resolution_of(ensemble))


def _as_shown(query: Query, row: AtLeast, shown: Shown, seen: Inputs, *, doubted: bool) -> Constraint:
    """The row's truth value by the library's own probability, read as a decimal: 0.3 means 3/10.

    Libraries round sigmoids and other link functions differently: if only this rounding decides, the result is `doubted`.
    """
    whole = query.models[query.points[shown.point].model].ensemble
    voter, first = voter_of(whole, row.form.scores[0].output)
    margins = [float(score / whole.average) for score in seen.scores[shown.point][first : first + voter.n_outputs]]
    probability = Fraction(repr(float(voter.probabilities(np.array([margins]))[0, -1])))
    ahead = probability - shown.probability if shown.above else shown.probability - probability
    holds = ahead > 0 or (ahead == 0 and not shown.strict)
    if voter.link.varies_by_library and abs(ahead) <= resolution_of(voter):
        holds = doubted
    return AllOf(()) if holds else AnyOf(())


def with_rows(constraint: Constraint, change: Callable[[AtLeast | ProbabilitySum], Constraint]) -> Constraint:
    """The constraint with `change` applied to every row of scores and every sum of probabilities."""
    match constraint:
        case AtLeast() | ProbabilitySum():
            return change(constraint)
        case AllOf(parts) | AnyOf(parts):
            return replace(constraint, parts=tuple(with_rows(part, change) for part in parts))
    return constraint


def _hidden_lead(query: Query, row: AtLeast, seen: Inputs) -> Fraction:
    """The least visible lead in a row about two classes; 0 for other rows, and if the library compares scores."""
    if not row.name.startswith(CLASS_ROW) or not row.form.scores:
        return Fraction(0)
    whole = query.models[query.points[row.form.scores[0].point].model].ensemble
    ensemble, _ = voter_of(whole, row.form.scores[0].output)
    if compares_scores(ensemble):
        return Fraction(0)
    unit = unit_of(row.form.scores[0], whole)
    if ensemble.n_outputs == 1 or ensemble.link.is_share:
        return resolution_of(ensemble) * unit
    # Each class has its own sigmoid, which is flat far from 0: at 40 and 45 both probabilities are 1.
    one, other = (float(seen.scores[term.point][term.output] / whole.average) for term in row.form.scores)
    apart = abs(_sigmoid(one) - _sigmoid(other))
    return Fraction(abs(one - other) + 1) * unit if apart <= resolution_of(ensemble) else Fraction(0)


def _is_hidden_tie(query: Query, row: AtLeast, seen: Inputs) -> bool:
    """True if a row compares two classes whose scores are equal, but whose sums may differ before the library divides them."""
    if not row.name.startswith(CLASS_ROW) or len(row.form.scores) != 2:
        return False
    whole = query.models[query.points[row.form.scores[0].point].model].ensemble
    ensemble, _ = voter_of(whole, row.form.scores[0].output)
    one, other = (seen.scores[term.point][term.output] / whole.average for term in row.form.scores)
    return one == other and hides_sums(ensemble, float(one))


def is_drawn_at_ties(query: Query, row: AtLeast) -> bool:
    """True if a row is about a class that a hash of the input decides at a lead of 0."""
    if not row.name.startswith(CLASS_ROW) or not row.form.scores:
        return False
    return query.models[query.points[row.form.scores[0].point].model].ensemble.ties is not None


def tied_point(query: Query, constraint: Constraint, seen: Inputs) -> str | None:
    """The name of a point whose class is constrained and decided by a hash of the input, or None."""
    for row in rows_in([constraint]):
        if isinstance(row, AtLeast) and _is_drawn(query, row, seen):
            return query.points[row.form.scores[0].point].name
    return None


def _is_drawn(query: Query, row: AtLeast, seen: Inputs) -> bool:
    """True if a row is about the class of a point, and a hash of the input decides this class."""
    if not is_drawn_at_ties(query, row):
        return False
    point = row.form.scores[0].point
    whole = query.models[query.points[point].model].ensemble
    return _may_tie(whole, np.array([float(score / whole.average) for score in seen.scores[point]]))


def _sigmoid(score: float) -> float:
    return 1 / (1 + exp(min(max(-score, -STEEPEST), STEEPEST)))
