"""Distances between points and to rows, in widths of the domains, the sensitive features left out.

l0 and linf are exact. l1 and l2 to a row are sums over features of the distance of each cell, which is that of its nearest
legal value; they are rounded to multiples of 2**-40, in a constraint so that it becomes weaker (see `bind_data`).
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from treesens.compiler.base.arrays import frozen
from treesens.compiler.base.diagnostics import Span
from treesens.compiler.base.floats import ceil_to, floor_to, next_up
from treesens.compiler.query import query as q
from treesens.compiler.query.bounds import Bound
from treesens.frontends.bind_data import sided
from treesens.frontends.bind_inputs import MIRRORED, NEGATED, all_of, any_of, is_missing, region, same_value
from treesens.frontends.bind_scope import Pending, Scope
from treesens.frontends.bind_terms import DistanceAtom
from treesens.grammar import ast
from treesens.summaries.rows import SHIFT, Rounding, distances_to_row, rounded


def counted_features(scope: Scope) -> tuple[int, ...]:
    """The features that distances count: all but the sensitive ones."""
    return tuple(f for f in range(len(scope.inputs.features)) if f not in scope.varied)


def width_of(scope: Scope, feature: int, data: ast.Name | None, span: Span) -> Fraction:
    """The unit of a feature in distances: the width of its domain, or else the range of its column."""
    spec = scope.spec(feature)
    if spec.unordered:
        return Fraction(1)
    width = spec.width
    if width is None and data is not None:
        column = scope.matrix(data)[:, feature]
        present = column[np.isfinite(column)]
        width = Fraction(float(present.max())) - Fraction(float(present.min())) if len(present) else Fraction(1)
    if width is None:
        message = f"nothing bounds `{spec.name}`, so a distance has no unit in it"
        remedy = f"declare `feature {spec.name}: real in [lo, hi]`, or `domain from DATA`"
        raise scope.fail("E312", message, span, remedy)
    return width or Fraction(1)


def compare_distance(
    scope: Scope,
    terms: Mapping[DistanceAtom, Fraction],
    operator: ast.Operator,
    number: Fraction,
    positive: bool,
    span: Span,
) -> Pending:
    """A distance against a number."""
    if len(terms) > 1:
        raise scope.fail("E220", "only one distance may be compared at a time", span, "write one constraint for each")
    ((atom, factor),) = terms.items()
    found = operator if factor > 0 else MIRRORED[operator]
    limit = number / factor
    if limit < 0:
        raise scope.fail("E309", "a distance is never negative", span, "compare with a number from 0 on")
    if isinstance(atom.target, ast.NearestRow):
        remedy = "minimize it instead, or name the row: `row N of DATA`"
        raise scope.fail("E220", "the nearest of many rows cannot stand in a constraint", span, remedy)
    if atom.norm == "linf":
        return _largest(scope, atom, found, limit, positive, span)
    found = found if positive else NEGATED[found]
    if isinstance(atom.target, int):
        return _between_points(scope, atom, atom.target, found, limit, span)
    return _to_row(scope, atom, atom.target, found, limit, span)


def _between_points(
    scope: Scope, atom: DistanceAtom, other: int, operator: ast.Operator, limit: Fraction, span: Span
) -> Pending:
    if atom.norm != "l0":
        message = f"the {atom.norm} distance of two unknown points has no exact form over cells yet"
        remedy = "use `linf`, bound each feature (`abs(a.f - b.f) <= c`), or measure the distance to a row"
        raise scope.fail("E220", message, span, remedy)
    features = counted_features(scope)

    def side(direction: int, strict: bool) -> Pending:
        form = q.LinearForm(changes=(q.Changes(atom.point, other, features, direction),))
        row = q.AtLeast(form, Bound(limit * direction), strict, "distance")
        return lambda space: row

    return sided(operator, side)


def _to_row(
    scope: Scope, atom: DistanceAtom, row: ast.Row, operator: ast.Operator, limit: Fraction, span: Span
) -> Pending:
    if atom.norm != "l0":
        if operator not in ("<", "<="):
            message = f"a lower bound on the {atom.norm} distance to a row has no exact form over cells yet"
            raise scope.fail("E220", message, span, "use `l0` or `linf`, or an upper bound")
        anchor(scope, atom, row, span)
    bound = limit * limit if atom.norm == "l2" else limit
    measure = Measure(scope, atom, row, span)

    def side(direction: int, strict: bool) -> Pending:
        def build(space: q.Space) -> q.AtLeast:
            form = q.LinearForm(costs=measure.costs(space, direction, "up"))
            return q.AtLeast(form, Bound(bound * direction), strict, "distance")

        return build

    return sided(operator, side)


def anchor(scope: Scope, atom: DistanceAtom, row: ast.Row, span: Span) -> None:
    """Notes that the values of a point have to be the nearest to a row; two rows at once cannot both be."""
    values = scope.row(row)
    known = scope.anchors.setdefault(atom.point, (values, row))
    if known[1] != row:
        message = "two distances of one point to different rows have no exact form over cells yet"
        raise scope.fail("E220", message, span, "use `linf` or `l0` for one of them")


class Measure:
    """The distance of a point to a row, feature by feature and cell by cell."""

    def __init__(self, scope: Scope, atom: DistanceAtom, row: ast.Row, span: Span) -> None:
        self.point, self.norm = atom.point, atom.norm
        self.values = scope.row(row)
        self.features = counted_features(scope)
        self.specs = [scope.spec(f) for f in self.features]
        if atom.norm != "l0":
            self.widths = scope.every(lambda f: width_of(scope, f, row.data, span), self.features)
            return
        self.widths = [Fraction(1)] * len(self.features)
        # For l0 a cell either holds the row's value and nothing else, or does not hold it.
        for f, spec in zip(self.features, self.specs, strict=True):
            if not (np.isnan(self.values[f]) or spec.coded):
                scope.cut(f, *spec.only(float(self.values[f])))

    def costs(self, space: q.Space, sign: int, rounding: Rounding) -> tuple[q.CellCost, ...]:
        """sign * distance (squared for l2), a cost per cell in units of 2**-SHIFT, or exact whole numbers for l0."""
        result = []
        for f, spec, width in zip(self.features, self.specs, self.widths, strict=True):
            grid = space.grid[f]
            ordered = not spec.unordered and self.norm != "l0"
            distances = distances_to_row(spec.domain, grid, float(self.values[f]), width, ordered=ordered)
            if self.norm == "l0":
                result.append(q.CellCost(self.point, f, frozen(np.array([int(d) * sign for d in distances])), 0))
                continue
            powers = [d * d for d in distances] if self.norm == "l2" else distances
            whole = [rounded(sign * d, rounding) for d in powers]
            wide = any(abs(v) >= 1 << 61 for v in whole)
            result.append(q.CellCost(self.point, f, frozen(np.array(whole, object if wide else np.int64)), SHIFT))
        return tuple(result)


def _largest(
    scope: Scope, atom: DistanceAtom, operator: ast.Operator, limit: Fraction, positive: bool, span: Span
) -> Pending:
    """linf: every feature is within the limit, exactly."""
    match operator:
        case "<=" | "<":
            closed, inside = operator == "<=", positive
        case ">" | ">=":
            closed, inside = operator == ">", not positive
        case _:
            message = "an exact linf distance is no statement about single features"
            raise scope.fail("E220", message, span, "use `<=` or `>=`")
    features = counted_features(scope)
    if isinstance(atom.target, int):
        other = atom.target
        parts = scope.every(lambda f: _near_point(scope, atom.point, other, f, limit, closed, inside, span), features)
    else:
        assert isinstance(atom.target, ast.Row)
        row = atom.target
        parts = scope.every(lambda f: _near_row(scope, atom.point, row, f, limit, closed, inside, span), features)
    return (all_of if inside else any_of)(parts)


def _full_width(limit: Fraction, closed: bool) -> bool:
    """Whether a whole width, the distance of unequal categories and of missing values, is within the limit."""
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
        parts.append(lambda space: near)
    else:
        above = q.Difference(left, feature, right, feature, reach, None, closed, False)
        below = q.Difference(left, feature, right, feature, None, -reach, False, closed)
        parts += [lambda space: above, lambda space: below]
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
