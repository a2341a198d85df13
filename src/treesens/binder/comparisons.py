"""Binds comparisons: of features, scores, classes, distances, counts and likelihoods."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from treesens.binder import classes
from treesens.binder import data_terms as bind_data
from treesens.binder import distances as bind_distances
from treesens.binder import inputs as bind_inputs
from treesens.binder import scores as bind_scores
from treesens.binder.inputs import all_of, any_of
from treesens.binder.mixed_sums import compare_mixed, is_mixed, remedy_for_mixed
from treesens.binder.scope import Pending, Scope
from treesens.binder.terms import (
    AbsoluteAtom,
    Affine,
    ChangesAtom,
    DistanceAtom,
    FeatureAtom,
    LikelihoodAtom,
    LinkedAtom,
    ScoreAtom,
    TypicalityAtom,
    affine,
    class_index,
    kind_of,
)
from treesens.binder.typicality import compare_typicalities
from treesens.compiler.base.diagnostics import Span
from treesens.compiler.query.bounds import LogRational
from treesens.grammar.tree import ast


def comparison(scope: Scope, node: ast.Comparison, positive: bool) -> Pending:
    """`E OP E`"""
    left, right = node.left, node.right
    if isinstance(left, ast.ClassOf) or isinstance(right, ast.ClassOf):
        return _classes(scope, node, positive)
    for side, other in ((left, right), (right, left)):
        if isinstance(side, ast.Name) and isinstance(other, ast.FeatureOf):
            return _named_category(scope, node, other, side, positive)
    one, two = scope.every(lambda side: affine(scope, side), (left, right))
    return compare(scope, one - two, node.operator, positive, node.span)


def _named_category(
    scope: Scope, node: ast.Comparison, feature: ast.FeatureOf, name: ast.Name, positive: bool
) -> Pending:
    point, index = scope.point(feature.point), scope.feature(feature.feature)
    spec = scope.spec(index)
    run = bind_inputs.run_of_label(scope, spec, name)
    if node.operator not in ("=", "!="):
        raise bind_inputs.no_order(scope, spec, node.span)
    return bind_inputs.region(scope, point, index, [run], positive=(node.operator == "=") is positive)


def _classes(scope: Scope, node: ast.Comparison, positive: bool) -> Pending:
    """`class(P) != C`, `class(P) = class(Q)`, `class(P) != class(Q)`."""
    if node.operator not in ("=", "!="):
        raise scope.fail("E205", "classes have no order", node.span, "use `=` or `!=`")
    equal = (node.operator == "=") is positive
    left, right = (node.left, node.right) if isinstance(node.left, ast.ClassOf) else (node.right, node.left)
    assert isinstance(left, ast.ClassOf)
    match right:
        case ast.ClassOf(other):
            one, two = scope.pair(left.point, other, node.span)
            return classes.same_class(scope, one, two, equal, node.span)
        case ast.Name() | ast.Number():
            point = scope.point(left.point)
            return classes.class_wins(scope, point, class_index(scope, point, right), positive=equal)
        case _:
            remedy = "compare with a class, or with `class(Q)`"
            raise scope.fail("E205", f"a class cannot be compared with `{right.span.text}`", node.span, remedy)


def compare(scope: Scope, form: Affine, operator: ast.Operator, positive: bool, span: Span) -> Pending:
    """The constraint `form operator 0`."""
    if not form.terms:
        raise scope.fail("E218", "neither side depends on a point", span, "compare a quantity of a point")
    number = -form.constant
    if features := form.only(FeatureAtom):
        return _features(scope, features, operator, number, positive, span)
    if scores := form.only(ScoreAtom):
        name = bind_scores.row_name(scope, scores)
        return bind_scores.compare(scope, scores, operator, LogRational(number), positive, name)
    if is_mixed(form):
        return compare_mixed(scope, form, operator, positive, span)
    if linked := form.only(LinkedAtom):
        return bind_scores.compare_linked(scope, linked, operator, number, positive, span)
    if chances := bind_scores.chances_of(scope, form):
        return bind_scores.compare_probabilities(scope, chances, operator, number, positive, span)
    if likelihoods := form.only(LikelihoodAtom):
        return bind_data.compare_likelihoods(scope, likelihoods, operator, number, positive, span)
    if typicalities := form.only(TypicalityAtom):
        return compare_typicalities(scope, typicalities, operator, number, positive)
    if changes := form.only(ChangesAtom):
        return bind_data.compare_changes(scope, changes, operator, number, positive)
    if distances := form.only(DistanceAtom):
        return bind_distances.compare_distance(scope, distances, operator, number, positive, span)
    if absolutes := form.only(AbsoluteAtom):
        return _absolute(scope, absolutes, operator, number, positive, span)
    kinds = list(dict.fromkeys(kind_of(atom) for atom, _ in form.terms))
    if len(kinds) == 1:
        raise scope.fail("E204", f"{kinds[0]} cannot be combined", span, "compare one of them with a number")
    message = f"{' and '.join(kinds)} cannot be compared with each other"
    raise scope.fail("E205", message, span, remedy_for_mixed(scope, form) or "compare quantities of one kind")


def _features(
    scope: Scope,
    terms: Mapping[FeatureAtom, Fraction],
    operator: ast.Operator,
    number: Fraction,
    positive: bool,
    span: Span,
) -> Pending:
    atoms = list(terms.items())
    if len(atoms) > 1:
        return bind_inputs.relate(scope, atoms, operator, number, positive, span)
    atom, factor = atoms[0]
    found = operator if factor > 0 else bind_inputs.MIRRORED[operator]
    spec = scope.spec(atom.feature)
    runs = bind_inputs.runs_of_comparison(scope, spec, found, number / factor, span)
    return bind_inputs.region(scope, atom.point, atom.feature, runs, positive=positive is (found != "!="))


def _absolute(
    scope: Scope,
    terms: Mapping[AbsoluteAtom, Fraction],
    operator: ast.Operator,
    number: Fraction,
    positive: bool,
    span: Span,
) -> Pending:
    """|E| <= c means E <= c and -E <= c; |E| >= c means E >= c or -E >= c."""
    if len(terms) > 1:
        raise scope.fail(
            "E220", "only one absolute value may be compared at a time", span, "write one constraint for each"
        )
    ((atom, factor),) = terms.items()
    found = operator if factor > 0 else bind_inputs.MIRRORED[operator]
    bound = Affine(number / factor)
    if found in ("=", "!=") and bound.constant < 0:
        raise scope.fail("E309", "an absolute value is never negative", span, "compare with a number of at least 0")
    sides = (atom.inner - bound, atom.inner * Fraction(-1) - bound)
    both = found in ("<", "<=", "!=")
    return (all_of if both is positive else any_of)(compare(scope, side, found, positive, span) for side in sides)
