"""The normal form of relations between values: upper bounds on sums, and groups of equal places."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction

from treesens.compiler.base.arrays import BoolArray
from treesens.compiler.query.bounds import LogRational
from treesens.compiler.query.query import (
    AllOf,
    AnyOf,
    AtLeast,
    CellSet,
    Constraint,
    Difference,
    Objective,
    OneHot,
    Query,
    SameExcept,
    parts_in,
)
from treesens.compiler.query.values import DistanceTerm, LinearTerm, Place, Term, ValueSum


def relates_values(query: Query) -> bool:
    """True if the question relates values in a way that cells alone do not decide."""
    return any(relates(c) for c in query.constraints)


def relates(constraint: Constraint) -> bool:
    """True if a constraint may depend on values inside cells."""
    if isinstance(constraint, AllOf | AnyOf):
        return any(relates(part) or isinstance(part, SameExcept) for part in constraint.parts)
    return isinstance(constraint, Difference | ValueSum) or (
        isinstance(constraint, AtLeast) and bool(constraint.values)
    )


def better_than(goal: Objective, value: Fraction, *, strict: bool = False) -> Constraint:
    """The relation that the objective is at least as good as a value (better, if strict)."""
    sign = -1 if goal.maximize else 1
    if goal.probability is not None:
        turned = tuple(replace(term, factor=-sign * term.factor) for term in goal.probability.terms)
        return replace(goal.probability, terms=turned, bound=-sign * value, strict=strict)
    terms = tuple(replace(term, factor=sign * term.factor) for term in goal.values)
    if goal.form.scores:
        up = goal.form if goal.maximize else goal.form.negative()
        values = tuple(replace(t, factor=-t.factor) for t in terms if isinstance(t, LinearTerm))
        return AtLeast(up, LogRational(-sign * value), strict, "objective", values=values)
    if not goal.largest:
        return ValueSum(terms, sign * value, strict, "objective")
    parts = tuple(ValueSum((term,), sign * value, strict, "objective") for term in terms)
    return AnyOf(parts) if goal.maximize else AllOf(parts)


def canonical_terms(terms: Sequence[Term], roots: dict[Place, Place]) -> tuple[Term, ...]:
    """Terms over the first places of groups of equal places: linear terms of a place are summed, and zero distances omitted."""
    linear: dict[Place, Fraction] = {}
    result: list[Term] = []
    for term in terms:
        if isinstance(term, LinearTerm):
            root = roots[term.point, term.feature]
            linear[root] = linear.get(root, Fraction(0)) + term.factor
            continue
        point, _ = roots[term.point, term.feature]
        other = term.other if term.other is None else roots[term.other, term.feature][0]
        if other != point:
            result.append(DistanceTerm(**{**vars(term), "point": point, "other": other}))
    return (*(LinearTerm(p, f, factor) for (p, f), factor in linear.items()), *result)


def places_named(constraint: Constraint) -> set[Place] | None:
    """The points and features that a constraint depends on; None for scores and whole points."""
    match constraint:
        case CellSet(point, feature):
            return {(point, feature)}
        case OneHot(_, members):
            return {(m.point, m.feature) for m in members}
        case Difference():
            return {(constraint.left, constraint.feature), (constraint.right, constraint.other)}
        case ValueSum():
            return set(constraint.places)
        case AllOf(parts) | AnyOf(parts):
            named = [places_named(part) for part in parts]
            with_names = [n for n in named if n is not None]
            return set[Place]().union(*with_names) if len(with_names) == len(named) else None
        case _:
            return None


def rows_with_values(constraints: Iterable[Constraint]) -> list[AtLeast]:
    """All rows of scores and values, including those inside formulas."""
    return [part for part in parts_in(constraints) if isinstance(part, AtLeast) and part.values]


def firm_rows(constraints: Sequence[Constraint]) -> list[AtLeast]:
    """All unconditional rows of scores and values."""
    parts = [firm_rows(c.parts) if isinstance(c, AllOf) else [c] for c in constraints]
    return [c for part in parts for c in part if isinstance(c, AtLeast) and c.values]


def at_scores(row: AtLeast, scores: Fraction) -> ValueSum:
    """The relation between values that a row of scores and values requires if the row's scores have this sum."""
    terms = tuple(replace(term, factor=-term.factor) for term in row.values)
    return ValueSum(terms, scores - row.bound.rational, row.strict, row.name)


def relations_of(constraint: Difference | ValueSum) -> tuple[ValueSum, ...]:
    """The relation as upper bounds on sums."""
    if isinstance(constraint, ValueSum):
        return (constraint,)
    d = constraint
    terms = (LinearTerm(d.left, d.feature, d.left_factor), LinearTerm(d.right, d.other, -d.right_factor))
    turned = tuple(LinearTerm(t.point, t.feature, -t.factor) for t in terms)
    sides = []
    if d.high is not None:
        sides.append(ValueSum(terms, d.high, d.high_strict))
    if d.low is not None:
        sides.append(ValueSum(turned, -d.low, d.low_strict))
    return tuple(sides)


def firm_relations(constraints: Sequence[Constraint]) -> list[ValueSum]:
    """All unconditional ("firm") relations."""
    found: list[ValueSum] = []
    for constraint in constraints:
        if isinstance(constraint, Difference | ValueSum):
            found += relations_of(constraint)
        elif isinstance(constraint, AllOf):
            found += firm_relations(constraint.parts)
    return found


def equal_groups(constraints: Sequence[Constraint], points: int, features: int) -> dict[Place, Place]:
    """Maps every (point, feature) to the first (point, feature) with the same value."""
    parent = {(p, f): (p, f) for p in range(points) for f in range(features)}

    def root(key: Place) -> Place:
        while parent[key] != key:
            key = parent[key]
        return key

    def join(parts: Sequence[Constraint]) -> None:
        for constraint in parts:
            if isinstance(constraint, AllOf):
                join(constraint.parts)
            elif isinstance(constraint, SameExcept):
                for f in range(features):
                    if f not in constraint.varied:
                        a, b = sorted((root((constraint.left, f)), root((constraint.right, f))))
                        parent[b] = a

    join(constraints)
    return {key: root(key) for key in parent}


def merged_mask(query: Query, point: int, feature: int) -> BoolArray:
    """Marks the legal cells of a point's feature that all unconditional sets allow, bool[n_cells]."""
    mask = query.space.legal[feature].copy()
    for constraint in query.constraints:
        if isinstance(constraint, CellSet) and (constraint.point, constraint.feature) == (point, feature):
            mask &= constraint.mask
    return mask
