"""Binds objectives: margins, products of likelihoods, distances to rows, numbers of changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import lcm

import numpy as np

from treesens.binder.data_terms import log_costs, use_likelihoods
from treesens.binder.distances import WIDEST, apart_terms, changes_from_row, counted_apart, counted_features, width_of
from treesens.binder.domains import FeatureSpec
from treesens.binder.inputs import is_missing, no_order
from treesens.binder.ladders import ladder_of_points, objective_to_row
from treesens.binder.mixed_sums import is_mixed, mixed_objective, remedy_for_mixed
from treesens.binder.scope import Pending, Scope
from treesens.binder.scores import Chances, chances_of, probability_sum, raw_sums
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
    kind_of,
)
from treesens.binder.typicality import typicality_objective
from treesens.compiler.base.arrays import frozen
from treesens.compiler.base.diagnostics import Span
from treesens.compiler.query import query as q
from treesens.compiler.query.values import LinearTerm, changed_features
from treesens.grammar.tree import ast
from treesens.values.row_costs import best_of_cells
from treesens.visible import declaration

PendingObjective = Callable[[q.Space], q.Objective]

_FORMS = (
    "margins, probabilities, features, margins and features, a product of likelihoods, typicalities, a distance to a row or "
    "to the nearest row, or `changes(a, b)`"
)


def objective(scope: Scope, node: ast.Objective) -> PendingObjective:
    """The objective of a question."""
    form = affine(scope, node.expression)
    upwards = node.sense == "maximize"
    span = node.expression.span
    atoms = [atom for atom, _ in form.terms]
    if scores := form.only(ScoreAtom):
        return _margins(scope, scores, form.constant, upwards)
    if is_mixed(form):
        return mixed_objective(scope, form, upwards, span, _bounded)
    if typicalities := form.only(TypicalityAtom):
        return typicality_objective(scope, typicalities, form.constant, upwards)
    if features := form.only(FeatureAtom):
        return _features(scope, features, form.constant, upwards, span)
    if changes := form.only(ChangesAtom):
        return _changes(scope, changes, form.constant, upwards)
    if len(atoms) == 1 and isinstance(atoms[0], LikelihoodAtom):
        return _likelihood(scope, atoms[0], form, upwards, span)
    if len(atoms) == 1 and isinstance(atoms[0], DistanceAtom):
        return _distance(scope, atoms[0], form, upwards, span)
    if not atoms:
        raise scope.fail("E218", "the objective does not depend on a point", span, f"use {_FORMS}")
    if any(isinstance(atom, LikelihoodAtom) for atom in atoms):
        raise scope.fail(
            "E215", "likelihoods cannot be added", span, "multiply them: `likelihood(a, D) * likelihood(b, D)`"
        )
    if chances := form.only(LinkedAtom) or chances_of(scope, form):
        return _probability(scope, chances, form.constant, upwards, span)
    kinds = " and ".join(dict.fromkeys(kind_of(atom) for atom in atoms))
    remedy = remedy_for_mixed(scope, form) or f"use {_FORMS}"
    if form.only(AbsoluteAtom):
        remedy = "leave `abs` out, and ask for each direction in a query of its own"
    raise scope.fail("E209", f"{kinds} cannot be {node.sense}d in this form", span, remedy)


def _margins(scope: Scope, terms: dict[ScoreAtom, Fraction], offset: Fraction, upwards: bool) -> PendingObjective:
    """A sum of margins. Coefficients are scaled to integers; `unit` scales the value back."""
    scores, scale = raw_sums(scope, terms)
    whole = lcm(*(term.coefficient.denominator for term in scores))
    form = q.LinearForm(tuple(q.ScoreTerm(t.point, t.output, t.coefficient * whole) for t in scores))
    found = q.Objective(form, upwards, "margin", Fraction(1, scale * whole), offset)
    return lambda _space: found


def _probability(scope: Scope, terms: Chances, offset: Fraction, upwards: bool, span: Span) -> PendingObjective:
    if any(isinstance(atom, LinkedAtom) and atom.link.grows for atom in terms):
        name, sense = scope.points[next(iter(terms)).point], "maximize" if upwards else "minimize"
        remedy = f"use the margin, which increases with the prediction: `{sense} margin({name})`"
        raise scope.fail("E209", "a prediction is not a linear objective", span, remedy)
    row = probability_sum(scope, terms, span)
    goal = q.Objective(q.LinearForm(), upwards, "probability", offset=offset, probability=row)
    return lambda _space: goal


def _features(
    scope: Scope, terms: dict[FeatureAtom, Fraction], offset: Fraction, upwards: bool, span: Span
) -> PendingObjective:
    """A sum of features in typed units, (stored - stored(0)) / slope. The form's unit is the width of the widest feature."""
    specs = {atom: scope.spec(atom.feature) for atom in terms}
    for spec in specs.values():
        if spec.unordered:
            raise no_order(scope, spec, span)
    unit = max(abs(terms[atom] / spec.slope) * _bounded(scope, spec, span) for atom, spec in specs.items())
    factors = {atom: terms[atom] / spec.slope / unit for atom, spec in specs.items()}
    offset -= sum((terms[atom] * spec.stored(Fraction(0)) / spec.slope for atom, spec in specs.items()), Fraction(0))
    values = tuple(LinearTerm(atom.point, atom.feature, factor) for atom, factor in factors.items())
    return lambda space: q.Objective(
        best_of_cells(space, values, upwards), upwards, "features", unit, offset, values=values
    )


def _bounded(scope: Scope, spec: FeatureSpec, span: Span) -> Fraction:
    """The width of a feature's domain, in stored units."""
    if spec.width is not None and spec.width <= WIDEST:
        return spec.width
    message = f"`{spec.name}` is unbounded, so it may have no best value"
    remedy = f"declare {declaration(spec.name, 'real in [lo, hi]')}, or `domain from DATA`"
    raise scope.fail("E312", message, span, remedy)


def present_values(scope: Scope, node: ast.Objective) -> list[Pending]:
    """Additional constraints for an objective: missing values are excluded, because they have no magnitude."""
    atoms = [atom for atom, _ in affine(scope, node.expression).terms if isinstance(atom, FeatureAtom)]
    return [is_missing(scope, a.point, a.feature, False) for a in atoms if scope.spec(a.feature).missing]


def _changes(scope: Scope, terms: dict[ChangesAtom, Fraction], offset: Fraction, upwards: bool) -> PendingObjective:
    every = tuple(range(len(scope.inputs.features)))
    whole = lcm(*(c.denominator for c in terms.values()))
    scaled = [(a.left, a.right, int(c * whole)) for a, c in terms.items()]
    found = _count(scaled, every, upwards, "changes", Fraction(1, whole), offset)
    return lambda _space: found


def _count(
    pairs: Sequence[tuple[int, int, int]],
    features: tuple[int, ...],
    upwards: bool,
    kind: str,
    unit: Fraction = Fraction(1),
    offset: Fraction = Fraction(0),
) -> q.Objective:
    """A multiple of the number of differing features: values determine the number, and cells bound it."""
    form = tuple(q.Changes(a, b, features, c, most=(c > 0) is upwards) for a, b, c in pairs)
    values = tuple(term for a, b, c in pairs for term in changed_features(a, b, features, Fraction(c)))
    return q.Objective(q.LinearForm(changes=form), upwards, kind, unit, offset, values=values)


def _likelihood(scope: Scope, atom: LikelihoodAtom, form: Affine, upwards: bool, span: Span) -> PendingObjective:
    """A product of likelihoods, as a sum of logarithms."""
    if form.constant or form.terms[0][1] != 1:
        raise scope.fail("E209", "maximize a likelihood alone, without numbers", span, "leave the numbers out")
    use_likelihoods(scope, [atom])
    return lambda space: q.Objective(
        q.LinearForm(costs=log_costs(scope, space, atom.factors, 1, "nearest")), upwards, "log-likelihood"
    )


def _distance(scope: Scope, atom: DistanceAtom, form: Affine, upwards: bool, span: Span) -> PendingObjective:
    if form.constant or form.terms[0][1] != 1:
        raise scope.fail("E209", "minimize a distance alone, without numbers", span, "leave the numbers out")
    if isinstance(atom.target, ast.NearestRow):
        if upwards:
            raise scope.fail("E209", "the distance to the nearest row can only be minimized", span, "write `minimize`")
        return _nearest(scope, atom, atom.target, span)
    if atom.norm == "l0":
        return _changed(scope, atom, upwards, span)
    terms = apart_terms(scope, atom, span)
    kind = f"distance {atom.norm}"
    if atom.norm == "linf":
        if isinstance(atom.target, int):
            return ladder_of_points(scope, terms, upwards, span)
        return lambda space: objective_to_row(space, terms, upwards)
    return lambda space: q.Objective(best_of_cells(space, terms, upwards), upwards, kind, values=terms)


def _changed(scope: Scope, atom: DistanceAtom, upwards: bool, span: Span) -> PendingObjective:
    """l0: the number of features that differ."""
    if isinstance(atom.target, int):
        pair = (atom.point, atom.target, 1)
        found = _count([pair], counted_apart(scope, span), upwards, "distance l0")
        return lambda _space: found
    assert isinstance(atom.target, ast.Row)
    costs = changes_from_row(scope, atom, atom.target, span)
    return lambda space: q.Objective(q.LinearForm(costs=costs(space, 1)), upwards, "distance l0")


def _nearest(scope: Scope, atom: DistanceAtom, target: ast.NearestRow, span: Span) -> PendingObjective:
    """The distance to the nearest row; a search over rows optimises it."""
    scope.found.service("answers", span)
    features = counted_features(scope)
    widths = scope.every(lambda f: width_of(scope, f, target.data, span), features)
    rows = scope.matrix(target.data)[:, list(features)]
    nearest = q.NearestRows(
        atom.point,
        features,
        frozen(rows),
        frozen(np.array([float(w) for w in widths])),
        frozen(np.array([scope.spec(f).unordered for f in features], bool)),
        frozen(np.arange(len(rows))),
        atom.norm,
    )
    found = q.Objective(q.LinearForm(), False, f"distance {atom.norm}", nearest=nearest)
    return lambda _space: found
