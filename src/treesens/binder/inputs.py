"""Constraints on inputs: a feature's values and intervals, relations of two features, equal points, pinned rows, missing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np

from treesens.binder.domains import FeatureSpec
from treesens.binder.feature_specs import interval_ends
from treesens.binder.scope import Pending, Scope
from treesens.binder.terms import FeatureAtom
from treesens.compiler.base.arrays import BoolArray, frozen
from treesens.compiler.base.diagnostics import Span, did_you_mean
from treesens.compiler.base.floats import ceil_to, floor_to
from treesens.compiler.query import query as q
from treesens.compiler.query.values import LinearTerm, ValueSum
from treesens.data.rows import cell_starts
from treesens.grammar.tree import ast
from treesens.visible import declaration

Run = tuple[float, float]
"""The floats v with low <= v < high (codes, if the model reads categories)."""

NEGATED: dict[ast.Operator, ast.Operator] = {"<": ">=", "<=": ">", "=": "!=", "!=": "=", ">=": "<", ">": "<="}
MIRRORED: dict[ast.Operator, ast.Operator] = {"<": ">", "<=": ">=", "=": "=", "!=": "!=", ">=": "<=", ">": "<"}


def all_of(parts: Iterable[Pending]) -> Pending:
    """Conjunction; a single part is returned unchanged."""
    waiting = list(parts)
    return waiting[0] if len(waiting) == 1 else lambda space: q.AllOf(tuple(part(space) for part in waiting))


def any_of(parts: Iterable[Pending]) -> Pending:
    """Disjunction; a single part is returned unchanged."""
    waiting = list(parts)
    return waiting[0] if len(waiting) == 1 else lambda space: q.AnyOf(tuple(part(space) for part in waiting))


def region(
    scope: Scope, point: int, feature: int, runs: Sequence[Run], *, missing: bool = False, positive: bool = True
) -> Pending:
    """The feature is in one of the runs or, if `missing` is set, is missing; with `positive=False`, the complement."""
    if not scope.spec(feature).coded:
        for low, high in runs:
            scope.cut(feature, low, high)

    def build(space: q.Space) -> q.CellSet:
        mask = region_mask(space, feature, runs, missing)
        return q.CellSet(point, feature, frozen(mask if positive else ~mask, bool))

    return build


def region_mask(space: q.Space, feature: int, runs: Sequence[Run], missing: bool) -> BoolArray:
    """Marks the cells in runs whose ends are cuts of the grid, bool[n_cells]."""
    grid = space.grid[feature]
    # The first cell starts at the least finite value, and a run may start there too.
    starts = np.maximum(cell_starts(grid), -grid.number_type.max)
    mask = np.zeros(grid.n_cells, bool)
    for low, high in runs:
        mask[: len(starts)] |= (starts >= low) & (starts < high)
    if grid.missing:
        mask[grid.missing_cell] = missing
    return mask


def is_missing(scope: Scope, point: int, feature: int, positive: bool = True) -> Pending:
    return region(scope, point, feature, (), missing=True, positive=positive)


# --- one feature -------------------------------------------------------------------------------------------------------------


def runs_of_comparison(
    scope: Scope, spec: FeatureSpec, operator: ast.Operator, number: Fraction, span: Span
) -> list[Run]:
    """The values for which `value operator number` holds."""
    _check_meaning(scope, spec, span)
    if spec.unordered and operator not in ("=", "!="):
        raise no_order(scope, spec, span)
    match operator:
        case ">=":
            return [(spec.at_least(number), math.inf)]
        case ">":
            return [(spec.above(number), math.inf)]
        case "<":
            return [(-math.inf, spec.at_least(number))]
        case "<=":
            return [(-math.inf, spec.above(number))]
        case _:
            return [run_of_number(scope, spec, number, span)]


def no_order(scope: Scope, spec: FeatureSpec, span: Span) -> Exception:
    message = f"`{spec.name}` is a category, and categories have no order"
    return scope.fail("E206", message, span, "use `=`, `!=` or `in {..}`")


def run_of_number(scope: Scope, spec: FeatureSpec, number: Fraction, span: Span) -> Run:
    """The stored values that a typed number denotes; raises an error if there are none."""
    _check_meaning(scope, spec, span)
    if spec.unordered and spec.labels and number not in spec.typed:
        if str(number) in spec.labels:  # a number that is a category name, quoted or not
            return spec.only(spec.labels[str(number)])
        known = ", ".join(f"`{label}`" for label in list(spec.labels)[:8])
        raise scope.fail("E106", f"`{spec.name}` has no category with this number", span, f"its categories are {known}")
    if spec.coded and number not in spec.typed and (number.denominator != 1 or number < 0):
        raise scope.fail("E306", f"`{spec.name}` is read as codes 0, 1, 2, ..", span, "use one of the codes")
    run = spec.equal(number)
    if run is not None:
        return run
    if spec.whole:
        raise scope.fail("E306", f"`{spec.name}` takes whole numbers only", span, "use a whole number")
    stored = spec.stored(number)
    below, above = floor_to(stored, spec.number_type), ceil_to(stored, spec.number_type)
    if spec.unit:
        remedy = "use an interval, `in [lo, hi]`, or declare the feature `integer`"
    else:
        remedy = f"use an interval, `in [lo, hi]`; the nearest {spec.number_type.value} are {below!r} and {above!r}"
    message = f"no {spec.number_type.value} number of `{spec.name}` is exactly {span.text}"
    raise scope.fail("E311", message, span, remedy)


def _check_meaning(scope: Scope, spec: FeatureSpec, span: Span) -> None:
    """Raises an error if a number may be a code or a name (`Feature.unsure`) and no declaration decides which."""
    if spec.unsure:
        message = (
            f"`{span.text}` may be a code of `{spec.name}` or a name: the model does not link its names to features"
        )
        remedy = f"declare the feature, e.g. {declaration(spec.name, 'category {NAME = code, ..}')}"
        raise scope.fail("E310", message, span, remedy)


def run_of_label(scope: Scope, spec: FeatureSpec, label: ast.Label) -> Run:
    """The stored values of a category name or a number."""
    if isinstance(label, ast.Number):
        return run_of_number(scope, spec, label.value, label.span)
    if label.text in spec.labels:
        return spec.only(spec.labels[label.text])
    if label.text.lower() in _MISSING:
        message = f"`{label.text}` is not a value of `{spec.name}`"
        raise scope.fail("E106", message, label.span, f"a missing value is written `missing(P.{spec.name})`")
    if spec.labels:
        message = f"`{spec.name}` has no category `{label.text}`"
        raise scope.fail("E106", message, label.span, did_you_mean(label.text, spec.labels))
    kind = "a category without names" if spec.unordered else "a number"
    named = declaration(spec.name, f"category {{{label.text} = value, ..}}")
    remedy = f"write a number, or declare names: {named}"
    raise scope.fail("E205", f"`{spec.name}` is {kind}, but `{label.text}` is a name", label.span, remedy)


_MISSING = ("null", "none", "nan", "na", "missing")


def in_interval(scope: Scope, atom: FeatureAtom, interval: ast.Interval, positive: bool) -> Pending:
    spec = scope.spec(atom.feature)
    if spec.unordered:
        raise no_order(scope, spec, interval.span)
    _check_meaning(scope, spec, interval.span)
    low, high = interval_ends(scope.found, interval)
    first = -math.inf if low is None else spec.above(low) if interval.low_open else spec.at_least(low)
    last = math.inf if high is None else spec.at_least(high) if interval.high_open else spec.above(high)
    return region(scope, atom.point, atom.feature, [(first, last)], positive=positive)


def in_set(scope: Scope, atom: FeatureAtom, values: ast.ValueSet, positive: bool) -> Pending:
    spec = scope.spec(atom.feature)
    runs = scope.every(lambda value: run_of_label(scope, spec, value), values.values)
    return region(scope, atom.point, atom.feature, runs, positive=positive)


# --- two features ------------------------------------------------------------------------------------------------------------


def same_value(scope: Scope, left: int, right: int, feature: int, positive: bool) -> Pending:
    """The two points agree on a feature (two missing values are equal), or differ on it."""
    if positive:
        others = frozenset(range(len(scope.inputs.features))) - {feature}
        same = q.SameExcept(left, right, others)
        return lambda _space: same
    zero = Fraction(0)
    sides: list[Pending] = [
        _difference(q.Difference(left, feature, right, feature, zero, None, low_strict=True)),
        _difference(q.Difference(left, feature, right, feature, None, zero, high_strict=True)),
    ]
    if scope.spec(feature).missing:
        for absent, present in ((left, right), (right, left)):
            sides.append(all_of((is_missing(scope, absent, feature), is_missing(scope, present, feature, False))))
    return any_of(sides)


def _equal_present(scope: Scope, left: int, right: int, feature: int, positive: bool) -> Pending:
    """`P.f = Q.f`: both values are present, and they are equal; with `positive=False`, the negation."""
    same = same_value(scope, left, right, feature, positive)
    if not scope.spec(feature).missing:
        return same
    # `same_value` treats two missing values as equal, so it is enough to check one of the two points.
    return (all_of if positive else any_of)((same, is_missing(scope, left, feature, not positive)))


def _difference(relation: q.Difference) -> Pending:
    return lambda _space: relation


def relate(
    scope: Scope,
    terms: Sequence[tuple[FeatureAtom, Fraction]],
    operator: ast.Operator,
    constant: Fraction,
    positive: bool,
    span: Span,
) -> Pending:
    """`sum operator constant` for two or more features, in typed units."""
    (x, p), (y, q_) = terms[:2]
    if len(terms) == 2 and x.feature == y.feature and p == -q_ and constant == 0 and operator in ("=", "!="):
        return _equal_present(scope, x.point, y.point, x.feature, (operator == "=") is positive)
    if operator == "!=":
        # `!=` is `not =`, for missing values too.
        operator, positive = "=", not positive
    specs = [scope.spec(atom.feature) for atom, _ in terms]
    for spec in specs:
        if spec.unordered:
            raise no_order(scope, spec, span)
    factors = [factor for _, factor in terms]
    step = _lattice(specs, factors)
    # typed = (stored - stored(0)) / slope
    offset = sum((f * s.stored(Fraction(0)) / s.slope for f, s in zip(factors, specs, strict=True)), Fraction(0))
    constant += offset
    factors = [f / s.slope for f, s in zip(factors, specs, strict=True)]
    if factors[0] < 0:
        factors = [-f for f in factors]
        constant, offset, operator = -constant, -offset, MIRRORED[operator]
    atoms = [atom for atom, _ in terms]
    parts = _sides(operator if positive else NEGATED[operator], constant, step, offset)
    found = [_side(atoms, factors, *part) for part in parts]
    if not positive:
        # A missing value satisfies no relation, and therefore every negated one.
        absent = [atom for atom in atoms if scope.spec(atom.feature).missing]
        found += [is_missing(scope, atom.point, atom.feature) for atom in absent]
    return any_of(found)


def _side(
    atoms: Sequence[FeatureAtom],
    factors: Sequence[Fraction],
    low: Fraction | None,
    high: Fraction | None,
    low_strict: bool,
    high_strict: bool,
) -> Pending:
    """low <= sum <= high on stored values: two features become a `Difference`, more features become sums bounded from above."""
    if len(atoms) == 2:
        (x, y), (p, q_) = atoms, factors
        scale = p if p == -q_ else Fraction(1)
        return _difference(
            q.Difference(
                x.point,
                x.feature,
                y.point,
                y.feature,
                None if low is None else low / scale,
                None if high is None else high / scale,
                low_strict,
                high_strict,
                p / scale,
                -q_ / scale,
            )
        )
    sums: list[q.Constraint] = []
    for bound, strict, sign in ((low, low_strict, -1), (high, high_strict, 1)):
        if bound is not None:
            terms = tuple(LinearTerm(a.point, a.feature, sign * f) for a, f in zip(atoms, factors, strict=True))
            sums.append(ValueSum(terms, sign * bound, strict))
    both = sums[0] if len(sums) == 1 else q.AllOf(tuple(sums))
    return lambda _space: both


_Side = tuple[Fraction | None, Fraction | None, bool, bool]


def _lattice(specs: Sequence[FeatureSpec], factors: Sequence[Fraction]) -> Fraction | None:
    """The step of a sum whose terms are all whole numbers, some being stored as rounded fractions; None for other sums."""
    if not (all(spec.whole for spec in specs) and any(spec.steps for spec in specs)):
        return None
    denominator = math.lcm(*(f.denominator for f in factors))
    return Fraction(math.gcd(*(int(f * denominator) for f in factors)), denominator)


def _sides(operator: ast.Operator, constant: Fraction, step: Fraction | None, offset: Fraction) -> list[_Side]:
    """The allowed ranges of a difference: two ranges for `!=`, otherwise one.

    Sums of rounded steps are compared with the midpoint between two steps of the lattice, which rounding cannot reach.
    """
    if step is None:
        match operator:
            case ">=" | ">":
                return [(constant, None, operator == ">", False)]
            case "<=" | "<":
                return [(None, constant, False, operator == "<")]
            case "=":
                return [(constant, constant, False, False)]
            case "!=":
                return [(constant, None, True, False), (None, constant, False, True)]
    typed = (constant - offset) / step
    first, last = -((-typed).__floor__()), typed.__floor__()  # the lattice points at or above, and at or below

    def middle(lattice: int, side: int) -> Fraction:
        return (lattice + Fraction(side, 2)) * step + offset

    match operator:
        case ">=":
            return [(middle(first, -1), None, False, False)]
        case ">":
            return [(middle(last, 1), None, False, False)]
        case "<=":
            return [(None, middle(last, 1), False, False)]
        case "<":
            return [(None, middle(first, -1), False, False)]
        case "=":
            return [(middle(first, -1), middle(last, 1), False, False)]
        case "!=":
            return [(middle(last, 1), None, False, False), (None, middle(first, -1), False, False)]


# --- whole points ------------------------------------------------------------------------------------------------------------


def points_equal(scope: Scope, node: ast.PointsEqual, positive: bool) -> Pending:
    left, right = scope.pair(node.left, node.right, node.span)
    varied = scope.features(node.varied)
    if positive:
        same = q.SameExcept(left, right, varied)
        return lambda _space: same
    kept = [f for f in range(len(scope.inputs.features)) if f not in varied]
    return any_of(same_value(scope, left, right, f, False) for f in kept)


def point_is_row(scope: Scope, node: ast.PointIsRow, positive: bool) -> Pending:
    """Every feature has exactly the row's value: the grid is cut such that the value's cell contains this float only."""
    point, varied = scope.point(node.point), scope.features(node.varied)
    row = scope.row(node.row)
    kept = [f for f in range(len(row)) if f not in varied]
    outside = [f for f in kept if not scope.spec(f).allows(row[f : f + 1])[0]]
    if outside:
        f = outside[0]
        shown = "missing" if np.isnan(row[f]) else repr(float(row[f]))
        message = (
            f"row {node.row.index.value} of `{node.row.data.text}` lies outside the domain of `{scope.spec(f).name}`"
        )
        listed = ", ".join(scope.spec(i).name for i in outside)
        raise scope.fail(
            "E306", f"{message}: {shown}", node.row.span, f"widen the domain, or add `except {{{listed}}}`"
        )
    return (all_of if positive else any_of)(_pinned(scope, point, f, float(row[f]), positive) for f in kept)


def _pinned(scope: Scope, point: int, feature: int, value: float, positive: bool) -> Pending:
    if np.isnan(value):
        return is_missing(scope, point, feature, positive)
    return region(scope, point, feature, [scope.spec(feature).only(value)], positive=positive)
