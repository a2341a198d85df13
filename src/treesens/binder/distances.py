"""Distances between points, and from points to rows, in domain widths; sensitive features are excluded.

l0 and linf become constraints on single features. l1 and l2 are sums over values (`compiler/query/values.py`): such a sum is
bounded over cells, and an answer's values satisfy the constraint exactly.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from treesens.binder.data_terms import put_on_side
from treesens.binder.inputs import MIRRORED, NEGATED, all_of, any_of, is_missing, region, same_value
from treesens.binder.scope import Pending, Scope
from treesens.binder.terms import DistanceAtom
from treesens.compiler.base.arrays import frozen
from treesens.compiler.base.diagnostics import Span
from treesens.compiler.base.floats import ceil_to, floor_to, next_up
from treesens.compiler.query import query as q
from treesens.compiler.query.bounds import LogRational
from treesens.compiler.query.values import DistanceTerm, ValueSum, changed_features
from treesens.data.rows import changes_from_value
from treesens.grammar.tree import ast
from treesens.visible import declaration


def counted_features(scope: Scope) -> tuple[int, ...]:
    """The features included in distances: all except the sensitive features."""
    return tuple(f for f in range(len(scope.inputs.features)) if f not in scope.varied)


WIDEST = Fraction(sys.float_info.max)
"""Maximum width of a domain. Distances are doubles: with a domain wider than this, all distances would be zero."""


def width_of(scope: Scope, feature: int, data: ast.Name | None, span: Span) -> Fraction:
    """The unit of a feature in distances: the width of its domain or, without a domain, the range of its column."""
    spec = scope.spec(feature)
    if spec.unordered:
        return Fraction(1)
    width = spec.width
    if width is None and data is not None:
        column = scope.matrix(data)[:, feature]
        present = column[np.isfinite(column)]
        width = Fraction(float(present.max())) - Fraction(float(present.min())) if len(present) else Fraction(1)
    if width is None:
        message = f"`{spec.name}` is unbounded, so its distances lack a unit"
        remedy = f"declare {declaration(spec.name, 'real in [lo, hi]')}, or `domain from DATA`"
        raise scope.fail("E312", message, span, remedy)
    if width > WIDEST:
        message = f"the domain of `{spec.name}` is wider than the largest number, so its distances lack a unit"
        remedy = f"declare a narrower domain, e.g. {declaration(spec.name, 'real in [lo, hi]')}"
        raise scope.fail("E312", message, span, remedy)
    return width or Fraction(1)


def counted_apart(scope: Scope, span: Span) -> tuple[int, ...]:
    """The features in a distance between two points; raises an error if the points agree on all of them."""
    if scope.varied:
        names = ", ".join(sorted(scope.spec(f).name for f in scope.varied))
        message = (
            f"the points differ in the sensitive features only ({names}), which a distance excludes: it is always 0"
        )
        remedy = "count them with `changes(a, b)`, or bound each with `abs(a.f - b.f) <= c`"
        raise scope.fail("E218", message, span, remedy)
    return counted_features(scope)


def apart_terms(scope: Scope, atom: DistanceAtom, span: Span) -> tuple[DistanceTerm, ...]:
    """The distance of a point to another point or to a row, feature by feature, in widths (squared for l2)."""
    target = atom.target
    assert not isinstance(target, ast.NearestRow)
    between = isinstance(target, int)
    features = counted_apart(scope, span) if between else counted_features(scope)
    data = None if isinstance(target, int) else target.data
    row = None if isinstance(target, int) else scope.row(target)
    key = ("widths", features, None if data is None else data.text)
    if key not in scope.inputs.cache:
        scope.inputs.cache[key] = scope.every(lambda f: width_of(scope, f, data, span), features)
    widths: list[Fraction] = scope.inputs.cache[key]  # type: ignore[assignment]
    return tuple(
        DistanceTerm(
            atom.point,
            f,
            target if isinstance(target, int) else None,
            float(row[f]) if row is not None else 0.0,
            width,
            2 if atom.norm == "l2" else 1,
            scope.spec(f).unordered,
        )
        for f, width in zip(features, widths, strict=True)
    )


def compare_distance(
    scope: Scope,
    terms: Mapping[DistanceAtom, Fraction],
    operator: ast.Operator,
    number: Fraction,
    positive: bool,
    span: Span,
) -> Pending:
    """A distance, or for l1 a sum of distances, compared with a number."""
    if any(isinstance(atom.target, ast.NearestRow) for atom in terms):
        remedy = "minimize it instead, or name the row: `row N of DATA`"
        raise scope.fail("E220", "a distance to the nearest row cannot be in a constraint", span, remedy)
    if len(terms) > 1:
        if any(atom.norm != "l1" for atom in terms):
            remedy = "write one constraint for each distance, or use `l1` for all of them"
            raise scope.fail("E220", "only l1 distances can be added up or compared with each other", span, remedy)
        return _sum(scope, terms, operator if positive else NEGATED[operator], number, span)
    ((atom, factor),) = terms.items()
    found = operator if factor > 0 else MIRRORED[operator]
    limit = number / factor
    if limit < 0:
        raise scope.fail("E309", "a distance is never negative", span, "compare with a number of at least 0")
    if atom.norm == "linf":
        return _largest(scope, atom, found, limit, positive, span)
    found = found if positive else NEGATED[found]
    if atom.norm != "l0":
        return _sum(scope, {atom: Fraction(1)}, found, limit * limit if atom.norm == "l2" else limit, span)
    if isinstance(atom.target, int):
        return _changed(scope, atom, atom.target, found, limit, span)
    assert isinstance(atom.target, ast.Row)
    return _changed_from_row(scope, atom, atom.target, found, limit, span)


def _sum(
    scope: Scope, terms: Mapping[DistanceAtom, Fraction], operator: ast.Operator, number: Fraction, span: Span
) -> Pending:
    """l1 and l2: a sum over the values of all features, compared with a number."""
    parts = [replace(term, factor=factor) for atom, factor in terms.items() for term in apart_terms(scope, atom, span)]

    def side(direction: int, strict: bool) -> Pending:
        signed = tuple(replace(term, factor=-direction * term.factor) for term in parts)
        relation = ValueSum(signed, -direction * number, strict, "distance")
        return lambda _space: relation

    return put_on_side(operator, side)


def _changed(
    scope: Scope, atom: DistanceAtom, other: int, operator: ast.Operator, limit: Fraction, span: Span
) -> Pending:
    """l0 between points: the number of features with different values."""
    features = counted_apart(scope, span)

    def side(direction: int, strict: bool) -> Pending:
        terms = changed_features(atom.point, other, features, Fraction(-direction))
        relation = ValueSum(terms, -direction * limit, strict, "distance")
        return lambda _space: relation

    return put_on_side(operator, side)


def _changed_from_row(
    scope: Scope, atom: DistanceAtom, row: ast.Row, operator: ast.Operator, limit: Fraction, span: Span
) -> Pending:
    """l0 to a row: the number of features that differ from the row."""
    costs = changes_from_row(scope, atom, row, span)

    def side(direction: int, strict: bool) -> Pending:
        def build(space: q.Space) -> q.AtLeast:
            form = q.LinearForm(costs=costs(space, direction))
            return q.AtLeast(form, LogRational(limit * direction), strict, "distance")

        return build

    return put_on_side(operator, side)


def changes_from_row(
    scope: Scope, atom: DistanceAtom, row: ast.Row, span: Span
) -> Callable[[q.Space, int], tuple[q.CellCost, ...]]:
    """Makes the signed costs of cells: 1 for a cell that does not contain the row's value. This value has its own cell."""
    del span
    values = scope.row(row)
    features = counted_features(scope)
    for f in features:
        if not (np.isnan(values[f]) or scope.spec(f).coded):
            scope.cut(f, *scope.spec(f).only(float(values[f])))

    def costs(space: q.Space, sign: int) -> tuple[q.CellCost, ...]:
        result = []
        for f in features:
            changed = changes_from_value(scope.spec(f).domain, space.grid[f], space.legal[f], float(values[f]))
            result.append(q.CellCost(atom.point, f, frozen(changed * sign), 0))
        return tuple(result)

    return costs


def _largest(
    scope: Scope, atom: DistanceAtom, operator: ast.Operator, limit: Fraction, positive: bool, span: Span
) -> Pending:
    """linf: the distance in every feature is within the limit, exactly."""
    if operator in ("=", "!="):
        both = [_largest(scope, atom, side, limit, positive is (operator == "="), span) for side in ("<=", ">=")]
        return (all_of if positive is (operator == "=") else any_of)(both)
    closed = operator in ("<=", ">")
    inside = positive is (operator in ("<", "<="))
    if isinstance(atom.target, int):
        features = counted_apart(scope, span)
        return near_points(scope, atom.point, atom.target, features, limit, closed, inside, span)
    assert isinstance(atom.target, ast.Row)
    row = atom.target
    if not counted_features(scope):
        # A distance over no features is 0.
        within = limit > 0 or (closed and limit == 0)
        return all_of(()) if within is inside else any_of(())
    parts = scope.every(
        lambda f: _near_row(scope, atom.point, row, f, limit, closed, inside, span), counted_features(scope)
    )
    return (all_of if inside else any_of)(parts)


def near_points(
    scope: Scope,
    left: int,
    right: int,
    features: Sequence[int],
    limit: Fraction,
    closed: bool,
    inside: bool,
    span: Span,
) -> Pending:
    """The points are within the limit on every feature or, if `inside` is False, exceed it on some feature."""
    parts = scope.every(lambda f: _near_point(scope, left, right, f, limit, closed, inside, span), features)
    return (all_of if inside else any_of)(parts)


def _full_width(limit: Fraction, closed: bool) -> bool:
    """True if a distance of one width (for unequal categories, and for a missing value) is within the limit."""
    return limit > 1 or (closed and limit == 1)


def _near_point(
    scope: Scope, left: int, right: int, feature: int, limit: Fraction, closed: bool, positive: bool, span: Span
) -> Pending:
    spec = scope.spec(feature)
    wide = _full_width(limit, closed)
    never = limit == 0 and not closed
    if spec.unordered:
        if wide or never:
            return all_of(()) if wide is positive else any_of(())
        return same_value(scope, left, right, feature, positive)
    reach = limit * width_of(scope, feature, None, span)
    parts: list[Pending] = []
    if positive:
        near = q.Difference(left, feature, right, feature, -reach, reach, not closed, not closed)
        parts.append(lambda _space: near)
    else:
        above = q.Difference(left, feature, right, feature, reach, None, closed, False)
        below = q.Difference(left, feature, right, feature, None, -reach, False, closed)
        parts += [lambda _space: above, lambda _space: below]
    if spec.missing:
        lost = [is_missing(scope, point, feature) for point in (left, right)]
        there = [is_missing(scope, point, feature, False) for point in (left, right)]
        if not never and positive:
            parts.append(all_of(lost))
        if wide is positive:
            parts += [all_of((lost[0], there[1])), all_of((there[0], lost[1]))]
    return any_of(parts)


def _near_row(
    scope: Scope, point: int, row: ast.Row, feature: int, limit: Fraction, closed: bool, positive: bool, span: Span
) -> Pending:
    spec = scope.spec(feature)
    value = float(scope.row(row)[feature])
    wide = _full_width(limit, closed)
    if np.isnan(value):
        everything = [(-np.inf, np.inf)] if wide else []
        return region(scope, point, feature, everything, missing=limit > 0 or closed, positive=positive)
    if spec.unordered:
        runs = [(-np.inf, np.inf)] if wide else [spec.only(value)] if limit > 0 or closed else []
        return region(scope, point, feature, runs, missing=wide, positive=positive)
    reach = limit * width_of(scope, feature, row.data, span)
    low, high = Fraction(value) - reach, Fraction(value) + reach
    number_type = spec.number_type
    first, last = ceil_to(low, number_type), next_up(floor_to(high, number_type), number_type)
    if not closed:
        first, last = next_up(floor_to(low, number_type), number_type), ceil_to(high, number_type)
    return region(scope, point, feature, [(first, last)], missing=wide, positive=positive)
