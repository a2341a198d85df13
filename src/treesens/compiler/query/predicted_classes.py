"""Classes that a library tells apart: margins that differ by less than its probabilities do are a tie to it.

LightGBM, XGBoost and CatBoost predict the class of the greatest probability, which is rounded after an exponential and a
division. Of two margins that differ in their last digit both probabilities are the same number, and the first class wins.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from treesens.compiler.base.floats import NumberType
from treesens.compiler.model import Link
from treesens.compiler.query.bounds import LogRational
from treesens.compiler.query.query import AllOf, AnyOf, AtLeast, Constraint, Query

CLASS_ROW = "class."
"""How the names of rows begin that compare the scores of classes."""

_RESOLUTION = {NumberType.FLOAT32: Fraction(1, 2**21), NumberType.FLOAT64: Fraction(1, 2**50)}
"""Four units in the last place of 1: an exponential, a sum and a division are off by less than one each."""


def told_apart(query: Query, constraint: Constraint) -> Constraint:
    """The constraint with every lead of one class over an earlier one no smaller than the library's probabilities show.

    A lead over a later class may be 0, and stays as it is: at a tie the first class wins.
    """
    match constraint:
        case AtLeast():
            needed = _resolution(query, constraint)
            return (
                replace(constraint, bound=constraint.bound + LogRational(needed), strict=False)
                if needed
                else constraint
            )
        case AllOf(parts) | AnyOf(parts):
            return replace(constraint, parts=tuple(told_apart(query, part) for part in parts))
    return constraint


def _resolution(query: Query, row: AtLeast) -> Fraction:
    """The least lead that the library shows; 0 for rows that are no such lead, and for libraries that compare margins."""
    if not row.strict or not row.name.startswith(CLASS_ROW) or not row.form.scores:
        return Fraction(0)
    ensemble = query.models[query.points[row.form.scores[0].point].model].ensemble
    if ensemble.link not in (Link.LOGISTIC, Link.SOFTMAX):
        return Fraction(0)
    return _RESOLUTION[ensemble.accumulation.number_type]
