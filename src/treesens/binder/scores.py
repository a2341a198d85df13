"""Constraints on a model's output, as exact linear constraints on raw sums.

Margins and averaged votes are linear. A probability bound is transformed by the exact inverse of its link: for logistic outputs

    prob(P) >= c  <=>  margin(P) >= ln(c / (1 - c)),

for an exponential output value(P) >= c <=> margin(P) >= ln c, and for two classes of one softmax prob(P, C1) >= g prob(P, C2)
<=> margin(P, C1) - margin(P, C2) >= ln g. Scores of a typed question are sums before averaging, so bounds are multiplied by the
number of trees averaged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from math import fsum, lcm
from typing import TypeAlias

import numpy as np

from treesens.binder.inputs import MIRRORED, NEGATED, all_of, any_of
from treesens.binder.scope import Pending, Scope
from treesens.binder.terms import Affine, Atom, LinkedAtom, ScoreAtom, predicts_probabilities
from treesens.compiler.base.diagnostics import Span
from treesens.compiler.model import Ensemble
from treesens.compiler.query import query as q
from treesens.compiler.query.bounds import LogRational
from treesens.grammar.tree import ast
from treesens.links import ScorePlace

Terms = Mapping[ScoreAtom, Fraction]
Chance: TypeAlias = LinkedAtom | ScoreAtom
"""A probability: the result of a link, or a score of a model whose scores are probabilities."""
Chances: TypeAlias = Mapping[LinkedAtom, Fraction] | Mapping[Chance, Fraction]


def at_least(scope: Scope, terms: Terms, bound: LogRational, name: str, strict: bool = False) -> Pending:
    """The row sum of coefficient * margin >= bound, on raw sums."""
    scores, scale = raw_sums(scope, terms)
    row = q.AtLeast(q.LinearForm(scores), bound * scale, strict, name)
    return lambda _space: row


def raw_sums(scope: Scope, terms: Terms) -> tuple[tuple[q.ScoreTerm, ...], int]:
    """Margins as sums before averaging: the terms, and the factor by which the inequality is multiplied."""
    average = {atom: scope.model(atom.point).ensemble.average for atom in terms}
    scale = lcm(*average.values())
    return tuple(q.ScoreTerm(a.point, a.output, c * (scale // average[a])) for a, c in terms.items()), scale


def compare(
    scope: Scope, terms: Terms, operator: ast.Operator, bound: LogRational, positive: bool, name: str
) -> Pending:
    """Compares the sum of coefficient * margin with a number."""
    opposite = {atom: -c for atom, c in terms.items()}
    match operator if positive else NEGATED[operator]:
        case ">=" | ">" as found:
            return at_least(scope, terms, bound, name, found == ">")
        case "<=" | "<" as found:
            return at_least(scope, opposite, -bound, name, found == "<")
        case "=":
            return all_of((at_least(scope, terms, bound, name), at_least(scope, opposite, -bound, name)))
        case "!=":
            sides = at_least(scope, terms, bound, name, True), at_least(scope, opposite, -bound, name, True)
            return any_of(sides)


def row_name(scope: Scope, terms: Iterable[ScoreAtom | LinkedAtom]) -> str:
    """`margin.a`, `margin.a.b`: the name of the row in printed IR."""
    return ".".join(("margin", *dict.fromkeys(scope.points[atom.point] for atom in terms)))


# --- probabilities and predictions ------------------------------------------------------------------------------------------


def compare_linked(
    scope: Scope,
    terms: Mapping[LinkedAtom, Fraction],
    operator: ast.Operator,
    number: Fraction,
    positive: bool,
    span: Span,
) -> Pending:
    """Compares the sum of coefficient * probability with a number: by scores, for a probability or ratio of probabilities."""
    atoms = list(terms)
    if len(atoms) == 1:
        factor = terms[atoms[0]]
        found = operator if factor > 0 else MIRRORED[operator]
        number /= factor
        if factor < 0:
            number = atoms[0].link.mirrored(number)
        return compare_one(scope, atoms[0], found, number, positive, span)
    if len(atoms) == 2 and number == 0 and terms[atoms[0]] * terms[atoms[1]] < 0:
        return _ratio(scope, terms, operator, positive, span)
    return compare_probabilities(scope, terms, operator, number, positive, span)


def compare_one(
    scope: Scope, atom: LinkedAtom, operator: ast.Operator, number: Fraction, positive: bool, span: Span
) -> Pending:
    """Compares one prediction with a number, by the score that yields this prediction if the link can invert it."""
    if (refusal := atom.link.refuse_number(number)) is not None:
        raise scope.fail("E211", refusal[0], span, refusal[1])
    if atom.link.least_score(number, strict=False) is None:
        return compare_probabilities(scope, {atom: Fraction(1)}, operator, number, positive, span)
    return compare_by_score(scope, atom.point, operator if positive else NEGATED[operator], number)


def compare_by_score(
    scope: Scope, point: int, operator: ast.Operator, number: Fraction, name: str | None = None
) -> Pending:
    """Compares a prediction that is non-decreasing in the model's only score with a number."""
    match operator:
        case "=" | "!=":
            sides: tuple[ast.Operator, ast.Operator] = (">=", "<=") if operator == "=" else (">", "<")
            parts = [compare_by_score(scope, point, side, number, name) for side in sides]
            return (all_of if operator == "=" else any_of)(parts)
        case ">=" | ">" | "<=" | "<":
            shown = q.Shown(point, number, operator in (">=", ">"), operator in (">", "<"))
            return _row_by_score(scope, shown, name)


def _row_by_score(scope: Scope, shown: q.Shown, name: str | None) -> Pending:
    ensemble = scope.model(shown.point).ensemble
    # p < c negates p >= c, and p <= c negates p > c.
    beyond = shown.strict if shown.above else not shown.strict
    bound = ensemble.link.least_score(shown.probability, strict=beyond)
    assert bound is not None
    if isinstance(bound, bool):
        # If all scores satisfy the comparison, or none do, it is a row all the same: studies and shares handle no constants.
        bound = _beyond_all_scores(ensemble) * (-1 if bound else 1)
    margin, sign = ScoreAtom(shown.point, 0), 1 if shown.above else -1
    scores, scale = raw_sums(scope, {margin: Fraction(sign)})
    name, noted = name or row_name(scope, [margin]), shown if ensemble.link.is_noted else None
    row = q.AtLeast(q.LinearForm(scores), bound * (sign * scale), shown.strict, name, noted)
    return lambda _space: row


def _beyond_all_scores(ensemble: Ensemble) -> LogRational:
    """A number greater than every raw score; its negative is smaller than every raw score."""
    weight = np.abs(ensemble.tree_weight[ensemble.leaf_tree])[:, None]
    leaves = fsum((weight * np.abs(ensemble.leaf_value)).ravel().tolist())  # a factor of two covers all rounding
    return LogRational(2 * Fraction(leaves) + sum(abs(Fraction(float(b))) for b in ensemble.base) + 1)


def _ratio(
    scope: Scope, terms: Mapping[LinkedAtom, Fraction], operator: ast.Operator, positive: bool, span: Span
) -> Pending:
    """p1 >= g p2 for two predictions with the same link: a row of scores for a softmax or exponential link, and for g = 1."""
    one, other = terms
    if terms[one] < 0:
        one, other = other, one
    ratio = -terms[other] / terms[one]
    one_margin, other_margin = (ScoreAtom(atom.point, atom.link.score_of(atom.output)) for atom in (one, other))
    # Predictions by one increasing function compare like their scores, as do shares of one sum.
    shares = one.link == other.link and one.link.is_share and one.point == other.point
    rises = one.link == other.link and one.link.rises
    if not (one.link.ratios_are_exponential or ratio == 1) or not (shares or rises):
        return compare_probabilities(scope, terms, operator, Fraction(0), positive, span)
    difference = {one_margin: Fraction(1), other_margin: Fraction(-1)}
    name = row_name(scope, difference)
    return compare(scope, difference, operator, LogRational.ln(ratio), positive, name)


def chances_of(scope: Scope, form: Affine) -> dict[Chance, Fraction]:
    """The terms if all of them are probabilities and at least one is not a score (of a forest); otherwise empty."""

    def is_chance(atom: Atom) -> bool:
        if isinstance(atom, ScoreAtom):
            return predicts_probabilities(scope.model(atom.point).ensemble)
        return isinstance(atom, LinkedAtom) and not atom.link.grows

    terms = {atom: c for atom, c in form.terms if isinstance(atom, ScoreAtom | LinkedAtom) and is_chance(atom)}
    mixed = len(terms) == len(form.terms) and any(isinstance(atom, LinkedAtom) for atom in terms)
    return terms if mixed else {}


def compare_probabilities(
    scope: Scope,
    terms: Chances,
    operator: ast.Operator,
    number: Fraction,
    positive: bool,
    span: Span,
    name: str | None = None,
) -> Pending:
    """Compares the sum of coefficient * probability, which is nonlinear, with a number, by linear approximations."""
    row = probability_sum(scope, terms, span)
    return compare_terms(row.terms, operator, number, positive, name or row.name)


def probability_sum(scope: Scope, terms: Chances, span: Span) -> q.ProbabilitySum:
    """The sum of coefficient * probability >= 0; callers set the bound."""
    parts: list[q.Summand] = []
    for part in (part for atom, c in terms.items() for part in _parts_of(scope, atom, c, span)):
        joined = ((place, both) for place, own in enumerate(parts) if (both := own.plus(part)) is not None)
        place, both = next(joined, (len(parts), part))
        parts[place : place + 1] = [both]
    name = ".".join(("prob", *dict.fromkeys(scope.points[atom.point] for atom in terms)))
    return q.ProbabilitySum(tuple(parts), Fraction(0), name=name)


def compare_terms(
    parts: tuple[q.Summand, ...], operator: ast.Operator, number: Fraction, positive: bool, name: str
) -> Pending:
    """Compares a sum of functions of scores with a number; with `positive=False`, the negation."""
    found = operator if positive else NEGATED[operator]
    opposite = tuple(replace(part, factor=-part.factor) for part in parts)
    up = [q.ProbabilitySum(parts, number, strict, name) for strict in (False, True)]
    down = [q.ProbabilitySum(opposite, -number, strict, name) for strict in (False, True)]

    def fixed(constraint: q.Constraint) -> Pending:
        return lambda _space: constraint

    match found:
        case ">=" | ">":
            return fixed(up[found == ">"])
        case "<=" | "<":
            return fixed(down[found == "<"])
        case "=":
            return all_of((fixed(up[False]), fixed(down[False])))
        case "!=":
            return any_of((fixed(up[True]), fixed(down[True])))


def _parts_of(scope: Scope, atom: Chance, factor: Fraction, span: Span) -> tuple[q.Summand, ...]:
    """factor * probability, as terms of a sum."""
    ensemble = scope.model(atom.point).ensemble
    found = ensemble.link.summands(ScorePlace(atom.point, ensemble, ensemble), atom.output, factor)
    if found is None:
        remedy = "compare each prediction with a number, or compare margins: `margin(a) - margin(b) >= m`"
        raise scope.fail("E204", "sums and optima of these predictions are not supported", span, remedy)
    return found
