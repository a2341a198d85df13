"""Constraints on a point's class: the library's prediction, by the rule of its link or by its scores.

Ties: `class(P) = C` holds if the library predicts C; a library predicts a single class, the first of tied classes. A model with
one score predicts `Ensemble.class_at_zero` at a margin of 0. If a hash of the input breaks ties, the constraint means that the
library may predict C, and its negation that the library may predict another class.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from treesens.binder.inputs import NEGATED, all_of, any_of
from treesens.binder.scope import Pending, Scope
from treesens.binder.scores import compare, compare_by_score, compare_one, compare_probabilities
from treesens.binder.terms import LinkedAtom, ScoreAtom, class_index, predicts_probabilities
from treesens.compiler.base.diagnostics import Span
from treesens.compiler.model.ties import Ties
from treesens.compiler.query import query as q
from treesens.compiler.query.bounds import LogRational
from treesens.grammar.tree import ast
from treesens.links import ClassRule, ScorePlace


def class_is(scope: Scope, node: ast.ClassIs, positive: bool) -> Pending:
    """`class(P) = C [by factor g] [by margin m]`: C is predicted, and leads every other class by this factor and margin."""
    point = scope.point(node.point)
    wanted = class_index(scope, point, node.label)
    if node.factor is not None and node.factor.value < 1:
        raise scope.fail("E212", "a factor must be at least 1", node.factor.span, "use a number of at least 1")
    if node.margin is not None and node.margin.value < 0:
        raise scope.fail("E212", "a margin must not be negative", node.margin.span, "use a number of at least 0")
    factor = node.factor.value if node.factor else Fraction(1)
    margin = node.margin.value if node.margin else Fraction(0)
    link = scope.model(point).ensemble.link
    if (refusal := link.refuse_lead(node.point.text, factor, margin)) is not None:
        span = node.span if node.margin is None or link.votes else node.margin.span
        raise scope.fail("E219", refusal[0], span, refusal[1])
    return class_wins(scope, point, wanted, factor, margin, positive)


def class_wins(
    scope: Scope,
    point: int,
    wanted: int,
    factor: Fraction = Fraction(1),
    margin: Fraction = Fraction(0),
    positive: bool = True,
) -> Pending:
    """Class `wanted` is predicted, with a lead in probability ratio and margin; with `positive=False`, the negation."""
    ensemble = scope.model(point).ensemble
    rules = ensemble.link.class_rules(ensemble, wanted, factor)
    if rules is None:
        return _predicts(scope, ScorePlace(point, ensemble, ensemble), wanted, factor, margin, positive)
    name = f"class.{scope.points[point]}"

    def holds(rule: ClassRule) -> Pending:
        if set(rule.terms) == {1} and ensemble.link.least_score(rule.number, strict=False) is not None:
            return compare_by_score(
                scope, point, rule.operator if positive else NEGATED[rule.operator], rule.number, name
            )
        terms = {LinkedAtom(point, output, ensemble.link): c for output, c in rule.terms.items()}
        return compare_probabilities(scope, terms, rule.operator, rule.number, positive, ast.NOWHERE, name)

    return (all_of if positive else any_of)([holds(rule) for rule in rules])


def _score(voter: ScorePlace, output: int) -> ScoreAtom:
    return ScoreAtom(voter.point, voter.first + output)


def _predicts(
    scope: Scope, voter: ScorePlace, wanted: int, factor: Fraction, margin: Fraction, positive: bool
) -> Pending:
    """The voter predicts class `wanted`, by its own scores or by the predictions of the members whose votes it counts."""
    ensemble = voter.model

    def of_member(member: ScorePlace, own: int, does: bool) -> Pending:
        return _predicts(scope, member, own, factor, margin, does)

    found = ensemble.link.predicts(scope, voter, wanted, positive, of_member)
    if found is not None:
        return found
    if ensemble.cutoff is not None:
        parts = [_past_threshold(scope, voter, wanted, ensemble.cutoff, positive)]
    elif ensemble.ties is not None and not ensemble.ties.drawn:
        parts = [_may_win(scope, voter, ensemble.ties, wanted, positive)]
    elif ensemble.decides_at is not None:
        parts = [_past_score(scope, voter, wanted, ensemble.decides_at, positive)]
    else:
        return _leads(scope, voter, wanted, factor, margin, positive)
    if _bounds(factor, margin):
        parts.append(_leads(scope, voter, wanted, factor, margin, positive))
    return (all_of if positive else any_of)(parts)


def _past_threshold(scope: Scope, voter: ScorePlace, wanted: int, threshold: Fraction, positive: bool) -> Pending:
    """The probability of the second class is at least `threshold`, or, if the first class is wanted, below it."""
    ensemble, name = voter.model, f"class.{scope.points[voter.point]}"
    operator: ast.Operator = ">=" if wanted == 1 else "<"
    shown = q.Shown(voter.point, threshold, (wanted == 1) is positive, (wanted == 1) is not positive)
    if predicts_probabilities(ensemble):
        votes = {_score(voter, 1): Fraction(1)}
        return _about(shown, compare(scope, votes, operator, LogRational(threshold), positive, name))
    bound = ensemble.link.least_score(threshold, strict=False)
    if isinstance(bound, LogRational):
        return _about(shown, compare(scope, {_score(voter, 0): Fraction(1)}, operator, bound, positive, name))
    return compare_one(scope, LinkedAtom(voter.point, 1, ensemble.link), operator, threshold, positive, ast.NOWHERE)


def _about(shown: q.Shown, row: Pending) -> Pending:
    """Marks a linear row of scores with `shown`, the probability that it expresses."""

    def made(space: q.Space) -> q.Constraint:
        found = row(space)
        assert isinstance(found, q.AtLeast)
        return replace(found, shown=shown)

    return made


def _past_score(scope: Scope, voter: ScorePlace, wanted: int, decides_at: float, positive: bool) -> Pending:
    """The last margin is above the library's threshold or, if the first class is wanted, at most the threshold."""
    last = {_score(voter, voter.model.n_outputs - 1): Fraction(1)}
    operator: ast.Operator = ">" if wanted == 1 else "<="
    name = f"class.{scope.points[voter.point]}"
    return compare(scope, last, operator, LogRational(Fraction(decides_at)), positive, name)


def _leads(scope: Scope, voter: ScorePlace, wanted: int, factor: Fraction, margin: Fraction, positive: bool) -> Pending:
    """Class `wanted` may be predicted or, with `positive=False`, another class may be predicted: at a tie both are possible."""
    ensemble, bounds = voter.model, _bounds(factor, margin)
    name = f"class.{scope.points[voter.point]}"
    first: ast.Operator = ">="
    parts: list[Pending] = []
    if ensemble.n_outputs == 1:
        sign = Fraction(1 if wanted == 1 else -1)
        if not bounds:
            bounds, first = [LogRational()], ">=" if wanted == ensemble.class_at_zero else ">"
        # ln(p1 / p0) is the margin itself.
        parts += [compare(scope, {_score(voter, 0): sign}, first, bound, positive, name) for bound in bounds]
        return (all_of if positive else any_of)(parts)
    ties = ensemble.ties
    if ties is not None and ties.drawn and not bounds:
        return _may_win(scope, voter, ties, wanted, positive)
    # Shares of a sum have the ratios of its terms.
    votes = predicts_probabilities(ensemble) or (ties is not None and ties.drawn and not ensemble.link.is_known)
    for other in range(ensemble.n_outputs):
        if other == wanted:
            continue
        one, two = _score(voter, wanted), _score(voter, other)
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


def _may_win(scope: Scope, voter: ScorePlace, ties: Ties, wanted: int, positive: bool) -> Pending:
    """Replay requires a strict lead over all other classes, so ties are never returned. The required leads of a class:
    ln(factor) and the margin, each only if positive.
    """
    name, classes = f"class.{scope.points[voter.point]}", range(voter.model.n_outputs)
    rest = [other for other in classes if other != wanted]

    def reaches(one: int, other: int) -> Pending:
        lead = {_score(voter, one): ties.factors[one], _score(voter, other): -ties.factors[other]}
        return compare(scope, lead, ">=", LogRational(), True, name)

    def is_best(one: int) -> Pending:
        return all_of([reaches(one, other) for other in classes if other != one])

    if not positive:
        return any_of([is_best(other) for other in rest])
    if not ties.may_stray(wanted):
        return is_best(wanted)
    # Two other classes are best, and `wanted` is on the list: its score equals the best score before it, or it is the first.
    strays = [any_of([reaches(two, one) for two in rest if two != one]) for one in rest]
    if wanted:
        strays += [reaches(wanted, other) for other in range(wanted)]
        strays.append(any_of([reaches(other, wanted) for other in range(wanted)]))
    return any_of((is_best(wanted), all_of(strays)))


def _bounds(factor: Fraction, margin: Fraction) -> list[LogRational]:
    """The leads that a class must have: ln(factor) and the margin, each only if positive."""
    return [*([LogRational.ln(factor)] if factor > 1 else []), *([LogRational(margin)] if margin else [])]


def same_class(scope: Scope, left: int, right: int, positive: bool, span: Span) -> Pending:
    """`class(P) = class(Q)` (or `!=`): the disjunction over all pairs of equal (or different) classes, compared by name."""
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
