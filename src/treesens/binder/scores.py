"""Constraints on what a model says, as exact linear constraints on raw sums.

Margins and averaged votes are linear. A probability goes through the exact inverse of its link: for a logistic output

    prob(P) >= c  <=>  margin(P) >= ln(c / (1 - c)),

for exponential ones value(P) >= c <=> margin(P) >= ln c, and for two classes of one softmax
prob(P, C1) >= g prob(P, C2) <=> margin(P, C1) - margin(P, C2) >= ln g. Scores of a typed question are sums before averaging, so
bounds are multiplied by the number of averaged trees.

Ties: `class(P) = C` holds if the library predicts C, and a library predicts one class. Of several best classes that is the
first one; a model with one score predicts `Ensemble.class_at_zero` at a margin of 0. If a hash of the input breaks ties, the
constraint is that the class may be predicted, and that another one may be is its negation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import fsum, lcm
from typing import TypeAlias

import numpy as np

from treesens.binder.blended import blended_terms, calibrated_score, calibrated_term, elected, score_itself
from treesens.binder.inputs import MIRRORED, NEGATED, all_of, any_of
from treesens.binder.scope import Pending, Scope
from treesens.binder.terms import Affine, Atom, LinkedAtom, ScoreAtom, class_index, predicts_probabilities
from treesens.compiler.base.diagnostics import Span
from treesens.compiler.model import Ensemble, Link
from treesens.compiler.model.calibration import Isotonic, Sigmoid
from treesens.compiler.model.ties import CutShares, HashedTies, Thresholds, Ties
from treesens.compiler.query import query as q
from treesens.compiler.query.bounds import LogRational
from treesens.compiler.query.calibrated import bound_of_second, least_margin
from treesens.compiler.query.quotients import joined
from treesens.grammar.tree import ast

Terms = Mapping[ScoreAtom, Fraction]
Chance: TypeAlias = LinkedAtom | ScoreAtom
"""A probability; a score is one of a model whose scores are probabilities."""
Chances: TypeAlias = Mapping[LinkedAtom, Fraction] | Mapping[Chance, Fraction]


def at_least(scope: Scope, terms: Terms, bound: LogRational, name: str, strict: bool = False) -> Pending:
    """sum of coefficient * margin >= bound, on raw sums."""
    scores, scale = raw_sums(scope, terms)
    row = q.AtLeast(q.LinearForm(scores), bound * scale, strict, name)
    return lambda _space: row


def raw_sums(scope: Scope, terms: Terms) -> tuple[tuple[q.ScoreTerm, ...], int]:
    """Margins as sums before averaging: the terms, and what the whole inequality is multiplied by."""
    average = {atom: scope.model(atom.point).ensemble.average for atom in terms}
    scale = lcm(*average.values())
    return tuple(q.ScoreTerm(a.point, a.output, c * (scale // average[a])) for a, c in terms.items()), scale


def compare(
    scope: Scope, terms: Terms, operator: ast.Operator, bound: LogRational, positive: bool, name: str
) -> Pending:
    """sum of coefficient * margin, compared with a number."""
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
    """`margin.a`, `margin.a.b`: a name for the row, for whoever reads the IR."""
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
    """sum of coefficient * probability, compared with a number: one probability, or the ratio of two."""
    atoms = list(terms)
    if len(atoms) == 1:
        factor = terms[atoms[0]]
        found = operator if factor > 0 else MIRRORED[operator]
        number /= factor
        calibration = scope.model(atoms[0].point).ensemble.calibration
        if factor < 0 and calibration is not None:
            number = bound_of_second(calibration, number)
        return _one_linked(scope, atoms[0], found, number, positive, span)
    if len(atoms) == 2 and number == 0 and terms[atoms[0]] * terms[atoms[1]] < 0:
        return _ratio(scope, terms, operator, positive, span)
    return compare_probabilities(scope, terms, operator, number, positive, span)


def _one_linked(
    scope: Scope, atom: LinkedAtom, operator: ast.Operator, number: Fraction, positive: bool, span: Span
) -> Pending:
    """The link is increasing, so the comparison is the same one between margins."""
    if atom.link is Link.SOFTMAX:
        if not 0 < number < 1:
            message = f"the model predicts strictly between 0 and 1, never {_decimal(number)}"
            raise scope.fail("E211", message, span, "use a number between 0 and 1")
        return compare_probabilities(scope, {atom: Fraction(1)}, operator, number, positive, span)
    if atom.link is Link.BLENDED:
        return compare_probabilities(scope, {atom: Fraction(1)}, operator, number, positive, span)
    if atom.link is Link.CALIBRATED:
        return compare_calibrated(scope, atom.point, operator if positive else NEGATED[operator], number)
    if atom.link is Link.LOGISTIC:
        if not 0 < number < 1:
            message = f"a logistic model predicts strictly between 0 and 1, never {_decimal(number)}"
            raise scope.fail("E211", message, span, "use a number between 0 and 1")
        bound = LogRational.ln(number / (1 - number))
    else:
        if number <= 0:
            message = f"the model predicts positive values only, never {_decimal(number)}"
            raise scope.fail("E211", message, span, "use a positive number")
        bound = LogRational.ln(number)
    margin = ScoreAtom(atom.point, 0)
    return compare(scope, {margin: Fraction(1)}, operator, bound, positive, row_name(scope, [margin]))


def compare_calibrated(
    scope: Scope, point: int, operator: ast.Operator, probability: Fraction, name: str | None = None
) -> Pending:
    """The calibrated probability of the second class, compared with a number: its score, compared with what that comes from."""
    match operator:
        case "=" | "!=":
            sides: tuple[ast.Operator, ast.Operator] = (">=", "<=") if operator == "=" else (">", "<")
            parts = [compare_calibrated(scope, point, side, probability, name) for side in sides]
            return (all_of if operator == "=" else any_of)(parts)
        case ">=" | ">" | "<=" | "<":
            return _calibrated_row(
                scope, q.Shown(point, probability, operator in (">=", ">"), operator in (">", "<")), name
            )


def _calibrated_row(scope: Scope, shown: q.Shown, name: str | None) -> Pending:
    calibration = scope.model(shown.point).ensemble.calibration
    assert calibration is not None
    # p < c is not p >= c, and p <= c is not p > c.
    beyond = shown.strict if shown.above else not shown.strict
    bound = least_margin(calibration, shown.probability, strict=beyond)
    if isinstance(bound, bool):
        # A row like any other, that all scores meet or none: studies and shares know rows, and no constants.
        bound = _beyond_all_scores(scope.model(shown.point).ensemble) * (-1 if bound else 1)
    margin = ScoreAtom(shown.point, 0)
    sign = 1 if shown.above else -1
    scores, scale = raw_sums(scope, {margin: Fraction(sign)})
    name = name or row_name(scope, [margin])
    row = q.AtLeast(q.LinearForm(scores), bound * (sign * scale), shown.strict, name, shown)
    return lambda _space: row


def _beyond_all_scores(ensemble: Ensemble) -> LogRational:
    """A number that is greater than every raw score, and whose negative is smaller."""
    weight = np.abs(ensemble.tree_weight[ensemble.leaf_tree])[:, None]
    leaves = fsum((weight * np.abs(ensemble.leaf_value)).ravel().tolist())  # twice as much covers each rounding
    return LogRational(2 * Fraction(leaves) + sum(abs(Fraction(float(b))) for b in ensemble.base) + 1)


def _decimal(number: Fraction) -> str:
    return str(int(number)) if number.denominator == 1 else f"{float(number):g}"


def _ratio(
    scope: Scope, terms: Mapping[LinkedAtom, Fraction], operator: ast.Operator, positive: bool, span: Span
) -> Pending:
    """p1 >= g p2, where both go through the same link: linear for one softmax or exponential link, monotone if g = 1."""
    one, other = terms
    if terms[one] < 0:
        one, other = other, one
    ratio = -terms[other] / terms[one]
    one_margin = ScoreAtom(one.point, one.output if one.link is Link.SOFTMAX else 0)
    other_margin = ScoreAtom(other.point, other.output if other.link is Link.SOFTMAX else 0)
    softmax = one.link is other.link is Link.SOFTMAX and one.point == other.point
    increasing = _rise_alike(scope, one, other) and (ratio == 1 or one.link is Link.EXP)
    if not (softmax or increasing):
        return compare_probabilities(scope, terms, operator, Fraction(0), positive, span)
    difference = {one_margin: Fraction(1), other_margin: Fraction(-1)}
    name = row_name(scope, difference)
    return compare(scope, difference, operator, LogRational.ln(ratio), positive, name)


def _rise_alike(scope: Scope, one: LinkedAtom, other: LinkedAtom) -> bool:
    """Whether two predictions are one function of their margins, which rises wherever these do: then margins compare them.

    Two models have calibrations of their own, and an isotonic one is level in places.
    """
    if one.link is not other.link or one.link not in (Link.LOGISTIC, Link.CALIBRATED, Link.EXP):
        return False
    first, second = (scope.model(atom.point).ensemble.calibration for atom in (one, other))
    return first == second and not isinstance(first, Isotonic)


def chances_of(scope: Scope, form: Affine) -> dict[Chance, Fraction]:
    """The terms of a sum of probabilities of which some are linear in scores (forests) and some are not; else none."""

    def is_chance(atom: Atom) -> bool:
        if isinstance(atom, ScoreAtom):
            return predicts_probabilities(scope.model(atom.point).ensemble)
        return isinstance(atom, LinkedAtom) and atom.link is not Link.EXP

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
    """sum of coefficient * probability, compared with a number: no linear constraint, but one that linear ones close in on."""
    row = probability_sum(scope, terms, span)
    return compare_terms(row.terms, operator, number, positive, name or row.name)


def probability_sum(scope: Scope, terms: Chances, span: Span) -> q.ProbabilitySum:
    """sum of coefficient * probability >= 0, for those who set the bound."""
    parts = tuple(part for atom, c in terms.items() for part in _parts_of(scope, atom, c, span))
    quotients = [part for part in parts if isinstance(part, q.Quotient)]
    parts = (*(part for part in parts if not isinstance(part, q.Quotient)), *joined(quotients))
    name = ".".join(("prob", *dict.fromkeys(scope.points[atom.point] for atom in terms)))
    return q.ProbabilitySum(parts, Fraction(0), name=name)


def compare_terms(
    parts: tuple[q.Summand, ...], operator: ast.Operator, number: Fraction, positive: bool, name: str
) -> Pending:
    """A sum of functions of scores, compared with a number; the negation if it is not `positive`."""
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
    """A probability times a number, as terms of a sum."""
    if isinstance(atom, ScoreAtom):
        return (score_itself(scope.model(atom.point).ensemble, atom.point, atom.output, factor),)
    if atom.link is Link.BLENDED:
        return blended_terms(scope.model(atom.point).ensemble, atom.point, atom.output, factor)
    calibration = scope.model(atom.point).ensemble.calibration
    if isinstance(calibration, Isotonic) or (isinstance(calibration, Sigmoid) and calibration.of_probability):
        return (calibrated_score(scope.model(atom.point).ensemble, atom.point, factor),)
    return (q.Probability(factor, _exponents(scope, atom, span)),)


def _exponents(scope: Scope, atom: LinkedAtom, span: Span) -> tuple[q.Exponent, ...]:
    """What a probability is made of: 1 / (1 + sum of e**exponent)."""
    ensemble = scope.model(atom.point).ensemble
    one = Fraction(1, ensemble.average)
    if atom.link is Link.SOFTMAX:
        mine = q.ScoreTerm(atom.point, atom.output, -one)
        others = (i for i in range(ensemble.n_outputs) if i != atom.output)
        return tuple(q.Exponent((q.ScoreTerm(atom.point, i, one), mine)) for i in others)
    if atom.link is Link.LOGISTIC:
        return (q.Exponent((q.ScoreTerm(atom.point, 0, -one),)),)
    if isinstance(ensemble.calibration, Sigmoid) and not ensemble.calibration.of_probability:
        slope, intercept = (Fraction(x) for x in (ensemble.calibration.slope, ensemble.calibration.intercept))
        return (q.Exponent((q.ScoreTerm(atom.point, 0, slope * one),), intercept),)
    remedy = "compare each with a number, or compare margins: `margin(a) - margin(b) >= m`"
    raise scope.fail("E204", "sums of these predictions are no function of scores that can be followed", span, remedy)


# --- classes -----------------------------------------------------------------------------------------------------------------


def class_is(scope: Scope, node: ast.ClassIs, positive: bool) -> Pending:
    """`class(P) = C [by factor g] [by margin m]`: C is predicted, and leads every other class by so much."""
    point = scope.point(node.point)
    wanted = class_index(scope, point, node.label)
    if node.factor is not None and node.factor.value < 1:
        raise scope.fail("E212", "a factor is at least 1", node.factor.span, "use a number from 1 on")
    if node.margin is not None and node.margin.value < 0:
        raise scope.fail("E212", "a margin is not negative", node.margin.span, "use a number from 0 on")
    factor = node.factor.value if node.factor else Fraction(1)
    margin = node.margin.value if node.margin else Fraction(0)
    asked = scope.model(point).ensemble
    if asked.link is Link.COUNTED and (factor > 1 or margin):
        what = (
            "calibrated scores of classes are compared" if asked.compares_classes else "votes for classes are counted"
        )
        message = f"the {what}, and no class leads by a probability or a margin"
        raise scope.fail("E219", message, node.span, f"write `class({node.point.text}) = C` alone")
    if node.margin is not None and margin and (asked.calibration is not None or asked.link is Link.BLENDED):
        message = "a calibrated model, or a mean of several, leads by a probability, and not by a margin"
        raise scope.fail("E219", message, node.margin.span, "write `by factor g`, or compare `prob(P)` with a number")
    return class_wins(scope, point, wanted, factor, margin, positive)


def class_wins(
    scope: Scope,
    point: int,
    wanted: int,
    factor: Fraction = Fraction(1),
    margin: Fraction = Fraction(0),
    positive: bool = True,
) -> Pending:
    """Class `wanted` is predicted, with a lead in probability ratio and margin; `positive` False is the negation."""
    ensemble = scope.model(point).ensemble
    if ensemble.calibration is not None:
        return _calibrated_class(scope, point, wanted, factor, positive)
    if ensemble.link is Link.BLENDED:
        return _blended_class(scope, point, wanted, factor, positive)
    return _predicts(scope, _Voter(point, ensemble), wanted, factor, margin, positive)


@dataclass(frozen=True)
class _Voter:
    """Who predicts a class: a model, or a member of one whose scores begin at `first`."""

    point: int
    ensemble: Ensemble
    first: int = 0

    def score(self, output: int) -> ScoreAtom:
        return ScoreAtom(self.point, self.first + output)


def _predicts(scope: Scope, voter: _Voter, wanted: int, factor: Fraction, margin: Fraction, positive: bool) -> Pending:
    """The class follows from scores of the voter itself, or from what those predict whose votes it counts."""
    ensemble = voter.ensemble
    if ensemble.link is Link.COUNTED:
        assert ensemble.blend is not None
        if ensemble.compares_classes:
            return _compared(scope, voter.point, wanted, positive)
        members = [_Voter(voter.point, m, voter.first + first) for m, first, _ in ensemble.blend.parts()]

        def of_member(number: int, own: int, does: bool) -> Pending:
            return _predicts(scope, members[number], own, factor, margin, does)

        return elected(ensemble.blend, len(ensemble.classes), wanted, positive, of_member)
    if ensemble.cutoff is not None:
        parts = [_past_threshold(scope, voter, wanted, ensemble.cutoff, positive)]
    elif isinstance(ensemble.ties, Thresholds | CutShares):
        parts = [_may_win(scope, voter, ensemble.ties, wanted, positive)]
    elif ensemble.decides_at is not None:
        parts = [_past_score(scope, voter, wanted, ensemble.decides_at, positive)]
    else:
        return _leads(scope, voter, wanted, factor, margin, positive)
    if _bounds(factor, margin):
        parts.append(_leads(scope, voter, wanted, factor, margin, positive))
    return (all_of if positive else any_of)(parts)


def _compared(scope: Scope, point: int, wanted: int, positive: bool) -> Pending:
    """The calibrated score of a class is ahead of that of every other one: the sum of all, which divides them, is the same."""
    ensemble, parts = scope.model(point).ensemble, []
    assert ensemble.blend is not None
    mine = ensemble.blend.members[wanted].calibration
    for other, member in enumerate(ensemble.blend.members):
        if other == wanted:
            continue
        operator: ast.Operator = ">=" if wanted < other else ">"
        lead = tuple(calibrated_term(ensemble, point, k, Fraction(s)) for k, s in ((wanted, 1), (other, -1)))
        rows = [compare_terms(lead, operator, Fraction(0), positive, f"class.{scope.points[point]}")]
        if isinstance(mine, Sigmoid) and isinstance(member.calibration, Sigmoid):
            # Of two sigmoids the same says a row of scores, which is proved at once.
            theirs, zero = member.calibration, Fraction(mine.intercept) - Fraction(member.calibration.intercept)
            ahead = {
                ScoreAtom(point, wanted): -Fraction(mine.slope),
                ScoreAtom(point, other): Fraction(theirs.slope),
            }
            rows.append(compare(scope, ahead, operator, LogRational(zero), positive, row_name(scope, ahead)))
        parts.append(all_of(rows))
    return (all_of if positive else any_of)(parts)


def _calibrated_class(scope: Scope, point: int, wanted: int, factor: Fraction, positive: bool) -> Pending:
    """The second class has a probability above 1/2 (or one from the cut-off on), or the first is wanted and it has not."""
    ensemble = scope.model(point).ensemble
    name = f"class.{scope.points[point]}"
    past: ast.Operator = ">" if ensemble.cutoff is None else ">="
    rules: list[tuple[ast.Operator, Fraction]] = [
        (past if wanted == 1 else NEGATED[past], Fraction(1, 2) if ensemble.cutoff is None else ensemble.cutoff)
    ]
    if factor > 1:
        share = factor / (1 + factor)
        rules.append((">=", share) if wanted == 1 else ("<=", 1 - share))
    parts = [compare_calibrated(scope, point, op if positive else NEGATED[op], c, name) for op, c in rules]
    return (all_of if positive else any_of)(parts)


def _blended_class(scope: Scope, point: int, wanted: int, factor: Fraction, positive: bool) -> Pending:
    """The mean of the probabilities of a class is ahead of that of every other one, or past the cut-off."""
    ensemble = scope.model(point).ensemble
    name = f"class.{scope.points[point]}"

    def compared(terms: dict[LinkedAtom, Fraction], operator: ast.Operator, number: Fraction) -> Pending:
        return compare_probabilities(scope, terms, operator, number, positive, ast.NOWHERE, name)

    rules: list[Pending] = []
    if len(ensemble.classes) == 2:
        second = {LinkedAtom(point, 1, Link.BLENDED): Fraction(1)}
        past: ast.Operator = ">" if ensemble.cutoff is None else ">="
        rules.append(compared(second, past if wanted == 1 else NEGATED[past], ensemble.cutoff or Fraction(1, 2)))
        if factor > 1:
            share = factor / (1 + factor)
            rules.append(compared(second, *((">=", share) if wanted == 1 else ("<=", 1 - share))))
        return (all_of if positive else any_of)(rules)
    for other in range(len(ensemble.classes)):
        if other != wanted:
            lead = {
                LinkedAtom(point, wanted, Link.BLENDED): Fraction(1),
                LinkedAtom(point, other, Link.BLENDED): -factor,
            }
            first: ast.Operator = ">=" if wanted < other or factor > 1 else ">"
            rules.append(compared(lead, first, Fraction(0)))
    return (all_of if positive else any_of)(rules)


def _past_threshold(scope: Scope, voter: _Voter, wanted: int, threshold: Fraction, positive: bool) -> Pending:
    """The second class has at least this probability, or (the first is wanted) less."""
    ensemble, name = voter.ensemble, f"class.{scope.points[voter.point]}"
    operator: ast.Operator = ">=" if wanted == 1 else "<"
    shown = q.Shown(voter.point, threshold, (wanted == 1) is positive, (wanted == 1) is not positive)
    if predicts_probabilities(ensemble):
        votes = {voter.score(1): Fraction(1)}
        return _about(shown, compare(scope, votes, operator, LogRational(threshold), positive, name))
    if ensemble.link is Link.LOGISTIC:
        bound, margin = LogRational.ln(threshold / (1 - threshold)), {voter.score(0): Fraction(1)}
        return _about(shown, compare(scope, margin, operator, bound, positive, name))
    return _one_linked(scope, LinkedAtom(voter.point, 1, ensemble.link), operator, threshold, positive, ast.NOWHERE)


def _about(shown: q.Shown, row: Pending) -> Pending:
    """A row of scores that is about a probability."""

    def made(space: q.Space) -> q.Constraint:
        found = row(space)
        assert isinstance(found, q.AtLeast)
        return replace(found, shown=shown)

    return made


def _past_score(scope: Scope, voter: _Voter, wanted: int, decides_at: float, positive: bool) -> Pending:
    """The last margin is above what the library compares it with, or (the first class is wanted) it is not."""
    last = {voter.score(voter.ensemble.n_outputs - 1): Fraction(1)}
    operator: ast.Operator = ">" if wanted == 1 else "<="
    name = f"class.{scope.points[voter.point]}"
    return compare(scope, last, operator, LogRational(Fraction(decides_at)), positive, name)


def _leads(scope: Scope, voter: _Voter, wanted: int, factor: Fraction, margin: Fraction, positive: bool) -> Pending:
    """Class `wanted` is ahead of every other one; without a lead it wins ties as the library breaks them."""
    ensemble, bounds = voter.ensemble, _bounds(factor, margin)
    name = f"class.{scope.points[voter.point]}"
    first: ast.Operator = ">="
    parts: list[Pending] = []
    if ensemble.n_outputs == 1:
        sign = Fraction(1 if wanted == 1 else -1)
        if not bounds:
            bounds, first = [LogRational()], ">=" if wanted == ensemble.class_at_zero else ">"
        # ln(p1 / p0) is the margin itself.
        parts += [compare(scope, {voter.score(0): sign}, first, bound, positive, name) for bound in bounds]
        return (all_of if positive else any_of)(parts)
    if isinstance(ensemble.ties, HashedTies) and not bounds:
        return _may_win(scope, voter, ensemble.ties, wanted, positive)
    # The shares of a sum have the ratios of what is added up.
    votes = predicts_probabilities(ensemble) or (isinstance(ensemble.ties, HashedTies) and ensemble.link is Link.RAW)
    for other in range(ensemble.n_outputs):
        if other == wanted:
            continue
        one, two = voter.score(wanted), voter.score(other)
        plain = {one: Fraction(1), two: Fraction(-1)}
        if not bounds:
            parts.append(compare(scope, plain, ">=" if wanted < other else ">", LogRational(), positive, name))
        elif votes:
            parts.append(compare(scope, {one: Fraction(1), two: -factor}, ">=", LogRational(), positive, name))
            if margin:
                parts.append(compare(scope, plain, ">=", LogRational(margin), positive, name))
        else:
            parts += [compare(scope, plain, ">=", bound, positive, name) for bound in bounds]
    return (all_of if positive else any_of)(parts)


def _may_win(scope: Scope, voter: _Voter, ties: Ties, wanted: int, positive: bool) -> Pending:
    """Class `wanted` may be predicted, or (`positive` False) another one may be: at a tie several of them. Replay asks for one
    that is ahead of all others, so that what is found is no tie.
    """
    name, classes = f"class.{scope.points[voter.point]}", range(voter.ensemble.n_outputs)
    rest = [other for other in classes if other != wanted]

    def reaches(one: int, other: int) -> Pending:
        lead = {voter.score(one): ties.factors[one], voter.score(other): -ties.factors[other]}
        return compare(scope, lead, ">=", LogRational(), True, name)

    def is_best(one: int) -> Pending:
        return all_of([reaches(one, other) for other in classes if other != one])

    if not positive:
        return any_of([is_best(other) for other in rest])
    if not ties.may_stray(wanted):
        return is_best(wanted)
    # Two of the others are the best ones, and the class is on the list: it equals the best of those before it, or is the first.
    strays = [any_of([reaches(two, one) for two in rest if two != one]) for one in rest]
    if wanted:
        strays += [reaches(wanted, other) for other in range(wanted)]
        strays.append(any_of([reaches(other, wanted) for other in range(wanted)]))
    return any_of((is_best(wanted), all_of(strays)))


def _bounds(factor: Fraction, margin: Fraction) -> list[LogRational]:
    """What the lead of a class must reach: ln factor and the margin, each if it says more than 0."""
    return [*([LogRational.ln(factor)] if factor > 1 else []), *([LogRational(margin)] if margin else [])]


def same_class(scope: Scope, left: int, right: int, positive: bool, span: Span) -> Pending:
    """`class(P) = class(Q)`, or `!=`: some pair of equal (different) classes, by name where the models differ."""
    one, other = (scope.model(point).ensemble.classes for point in (left, right))
    if not one or not other:
        raise scope.fail("E219", "a regressor has no classes", span, "compare `value(P)`")
    if positive and not set(map(str, one)) & set(map(str, other)):
        raise scope.fail("E216", "the models have no class in common", span, "compare with a class by name")
    pairs = [
        all_of((class_wins(scope, left, i), class_wins(scope, right, j)))
        for i, first in enumerate(one)
        for j, second in enumerate(other)
        if (str(first) == str(second)) is positive
    ]
    return any_of(pairs)
