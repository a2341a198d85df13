"""Tightens or relaxes questions by the rounding errors of a library.

A library adds floats, and predicts a class by probabilities that are rounded once more. Answers to a question that is
tightened by these errors are answers in the library; answers to a relaxed question include all answers of the library.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import partial
from math import exp

import numpy as np

from treesens.compiler.model import Ensemble
from treesens.compiler.query.bounds import LogRational
from treesens.compiler.query.dependencies import points_in
from treesens.compiler.query.predicted_classes import (
    CLASS_ROW,
    STEEPEST,
    compares_scores,
    is_drawn_at_ties,
    resolution_of,
    unit_of,
    unshown,
    voter_of,
    with_rows,
)
from treesens.compiler.query.query import (
    AllOf,
    AnyOf,
    AtLeast,
    Constraint,
    ProbabilitySum,
    Query,
    ScoreTerm,
)


def harden(query: Query) -> Query:
    """The question with every score constraint tightened by twice its numerical band, so that all answers hold in the library.

    For an unknown order of additions, three times the band is used: a sum in one order must exceed the bound by twice the band.
    """

    def harder(row: AtLeast | ProbabilitySum) -> Constraint:
        return _harder(query, row, 3 if _any_order(query, row) else 2)

    return replace(query, constraints=tuple(with_rows(c, harder) for c in query.constraints))


def _harder(query: Query, row: AtLeast | ProbabilitySum, times: int) -> Constraint:
    if isinstance(row, ProbabilitySum):
        return replace(row, bound=row.bound + times * _band_of_sum(query, row))
    moved = _moved(query, row, 1)
    if moved is None and is_drawn_at_ties(query, row):
        # Even without rounding, a lead of 0 is a tie.
        hidden = 2 * _hidden_by_probabilities(query, row)
        return replace(row, bound=row.bound + LogRational(times * _off_by(query, row) + hidden), strict=True)
    return moved or replace(row, bound=row.bound + LogRational(times * _off_by(query, row)))


def in_every_order(query: Query, constraint: Constraint) -> Constraint:
    """The constraint tightened by twice the band of models with an unknown order of additions, to hold in every order."""

    def harder(row: AtLeast | ProbabilitySum) -> Constraint:
        if not _any_order(query, row):
            return row
        made = _harder(query, row, 2)
        # The probability in one order does not determine that in another: the score is compared, with a larger distance.
        return replace(made, shown=None) if isinstance(made, AtLeast) else made

    return with_rows(constraint, harder)


def in_some_order(query: Query, constraint: Constraint) -> Constraint:
    """The constraint relaxed by twice the band of models with unknown order: it holds if the original holds in some order."""

    def easier(row: AtLeast | ProbabilitySum) -> Constraint:
        if not _any_order(query, row):
            return row
        if isinstance(row, ProbabilitySum):
            return replace(row, bound=row.bound - 2 * _band_of_sum(query, row), strict=False)
        return _moved(query, row, -1) or _easier_by(row, 2 * _off_by(query, row))

    return with_rows(constraint, easier)


def _any_order(query: Query, row: AtLeast | ProbabilitySum) -> bool:
    return any(_ensemble(query, point).accumulation.any_order for point in points_in(row))


def soften(query: Query) -> Query:
    """The question with every score constraint relaxed by its numerical band, and by the leads that rounding of probabilities
    may hide.

    Any input that answers the original question by the library's scores and classes also answers the relaxed question. Inputs
    that answer the original question by probabilities also answer the relaxed question if these probabilities differ from 0.
    """

    def easier(row: AtLeast | ProbabilitySum) -> Constraint:
        if isinstance(row, ProbabilitySum):
            return replace(row, bound=row.bound - _band_of_sum(query, row), strict=False)
        return _moved(query, row, -1) or _easier_by(row, _off_by(query, row) + _hidden_by_probabilities(query, row))

    return replace(query, constraints=tuple(with_rows(c, easier) for c in query.constraints))


def told_apart_anywhere(query: Query, constraint: Constraint) -> Constraint:
    """The constraint, tightened so that every lead of a class over an earlier class is visible in the library at all inputs."""

    def harder(row: AtLeast | ProbabilitySum) -> Constraint:
        if isinstance(row, ProbabilitySum):
            return replace(row, bound=row.bound + unshown(query, row))
        if row.shown is not None:
            calibrated = _ensemble(query, row.shown.point).link.written_slack is not None
            vague = _uncalibrated(query, row) if calibrated else _hidden_by_probabilities(query, row)
            return replace(row, bound=row.bound + LogRational(vague))
        if row.name.startswith(CLASS_ROW) and row.form.scores:
            ensemble = _ensemble(query, row.form.scores[0].point)
            if ensemble.ranks_sums and ensemble.average & (ensemble.average - 1):
                # Different sums may have equal quotients: only a visible lead is certain. Division by a power of two is exact.
                return replace(row, strict=True)
        drawn = is_drawn_at_ties(query, row)
        shown = drawn or (row.strict and row.name.startswith(CLASS_ROW))
        hidden = _hidden_by_probabilities(query, row) if shown else 0
        if drawn:
            return replace(row, bound=row.bound + LogRational(Fraction(hidden)), strict=True)
        return replace(row, bound=row.bound + LogRational(Fraction(hidden)), strict=False) if hidden else row

    return with_rows(constraint, harder)


def band_of(query: Query, row: AtLeast) -> Fraction:
    """An upper bound on the library's error for the left side of a row, in units of scores."""
    return sum((_off(query, term) for term in row.form.scores), Fraction(0))


def _off_by(query: Query, row: AtLeast) -> Fraction:
    """The band of a row, plus the decimal rounding of a probability and of its cut-off."""
    written = Fraction(0)
    if row.shown is not None:
        written = sum((unit_of(term, _ensemble(query, term.point)) for term in row.form.scores), Fraction(0)) / (
            1 << 50
        )
    return band_of(query, row) + written


def _easier_by(row: AtLeast, slack: Fraction) -> AtLeast:
    # A relaxed row no longer requires its class, so replay compares no labels.
    name = f"about.{row.name}" if row.name.startswith(CLASS_ROW) else row.name
    easier = replace(row, bound=row.bound + LogRational(-slack), strict=False, name=name, shown=None)
    return easier if slack else row


def _band_of_sum(query: Query, row: ProbabilitySum) -> Fraction:
    """An upper bound on the library's error for a sum of probabilities."""
    ensembles = (_ensemble(query, term.reads()[0].point) for term in row.terms)
    errors = (term.error(model, partial(_off, query)) for term, model in zip(row.terms, ensembles, strict=True))
    return sum(errors, Fraction(0))


def _off(query: Query, term: ScoreTerm) -> Fraction:
    ensemble = _ensemble(query, term.point)
    return unit_of(term, ensemble) * ensemble.bands()[term.output]


def _moved(query: Query, row: AtLeast, direction: int) -> Constraint | None:
    """A row about a calibrated probability, tightened (1) or relaxed (-1) by the library's rounding; None for other rows."""
    if row.shown is None:
        return None
    ensemble = _ensemble(query, row.shown.point)
    if (slack := ensemble.link.written_slack) is None:
        return None
    # The compared probability is rounded, and so is the score from which it is computed.
    sign = 1 if row.shown.above else -1
    moved = row.shown.probability + sign * direction * slack
    bound = ensemble.link.least_score(moved, strict=(direction > 0) is (sign > 0))
    assert bound is not None
    if isinstance(bound, bool):
        return AllOf(()) if bound is (sign > 0) else AnyOf(())
    scale = sign * unit_of(row.form.scores[0], ensemble)
    harder = replace(row, bound=bound * scale, strict=False, shown=None)
    hidden = 2 * band_of(query, row) + _uncalibrated(query, harder)
    return replace(harder, bound=harder.bound + LogRational(direction * hidden))


def _uncalibrated(query: Query, row: AtLeast) -> Fraction:
    """The score difference hidden by rounding the uncalibrated probability; 0 if the calibration takes scores."""
    ensemble = _ensemble(query, row.form.scores[0].point)
    if not ensemble.link.of_probability:
        return Fraction(0)
    unit = unit_of(row.form.scores[0], ensemble)
    flatness = Fraction(exp(min(abs(float(row.bound)) / float(unit), STEEPEST)))
    return unit * resolution_of(ensemble) * (2 + flatness)


def _hidden_by_probabilities(query: Query, row: AtLeast) -> Fraction:
    """The difference of scores that may disappear in the library's probabilities; 0 if the scores are probabilities."""
    hidden = Fraction(0)
    for term in row.form.scores:
        whole = _ensemble(query, term.point)
        if (slack := whole.link.slack(whole, term)) is not None:
            hidden += slack
            continue
        ensemble, _ = voter_of(whole, term.output)
        if ensemble.ties is not None and not ensemble.ties.drawn and row.name.startswith(CLASS_ROW):
            # No probability is above 1, and the rounding of a quotient is relative.
            hidden += 2 * unit_of(term, whole) * resolution_of(ensemble) * ensemble.ties.coarse
            continue
        if ensemble.link.is_linear or (row.name.startswith(CLASS_ROW) and compares_scores(ensemble)):
            continue
        # The slope of a sigmoid is p (1 - p), which is least at the bound or, for several sigmoids, at the largest score.
        alone = ensemble.link.is_share or ensemble.n_outputs == 1
        unit = unit_of(term, whole)
        largest = abs(float(row.bound)) / float(unit) if alone else float(largest_score(ensemble)) * 1.001
        flatness = Fraction(ensemble.link.flatness(largest))
        hidden += unit * resolution_of(ensemble) * (2 + flatness)
    return hidden


def largest_score(ensemble: Ensemble) -> Fraction:
    """An upper bound on the absolute raw sums of a model, and therefore on its scores."""
    exact = ensemble.scaled_contributions
    sizes = np.abs(exact.values).max(axis=1)
    largest = np.zeros(ensemble.n_trees, sizes.dtype)
    np.maximum.at(largest, ensemble.leaf_tree, sizes)
    return sum(map(int, largest)) * exact.step + ensemble.average * max(abs(Fraction(float(b))) for b in ensemble.base)


def _ensemble(query: Query, point: int) -> Ensemble:
    return query.models[query.points[point].model].ensemble
