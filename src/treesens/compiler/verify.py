"""Verification of witnesses: concrete values, exact replay, and replay in the library's arithmetic (SEMANTICS.md, 3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.base.arrays import FloatArray, Int32Array
from treesens.compiler.query.domain import RealDomain, ValueDomain, cell_range, pick_value, whole_range
from treesens.compiler.query.evaluate import (
    Inputs,
    difference_holds,
    holds,
    inputs_of,
    linear_constraints,
    scores_of_margins,
    slack,
)
from treesens.compiler.query.query import AllOf, AnyOf, AtLeast, Constraint, Difference, Query, SameExcept
from treesens.compiler.result import Replay, Witness

NativePredict = Callable[[NDArray[np.float64]], NDArray[Any]]


@dataclass(frozen=True)
class Rejected:
    """Why a candidate is no witness. `numerical` where only the arithmetic of the library stands against it."""

    reason: str
    numerical: bool = False


def verify_cells(
    query: Query,
    cells: Int32Array,
    *,
    near: FloatArray | None = None,
    native: Sequence[NativePredict] | None = None,
) -> Witness | Rejected:
    """Turns cells int32[points, features] into a witness, or says why they are none.

    `near` float64[features] (NaN where nothing is preferred) is what values are chosen close to; `native` holds, per
    model, the library's own predict for the second level of replay.
    """
    for point in range(len(query.points)):
        for feature, legal in enumerate(query.space.legal):
            if not legal[cells[point, feature]]:
                name = query.space.names[feature]
                return Rejected(f"{query.points[point].name}.{name} lies in a cell without a legal value")
    values = concretise(query, cells, near)
    if values is None:
        return Rejected("no values in these cells satisfy the relations between features")
    return verify_values(query, values, native=native)


def verify_values(
    query: Query, values: FloatArray, *, native: Sequence[NativePredict] | None = None
) -> Witness | Rejected:
    """Judges concrete points float64[points, features] exactly and in the library's arithmetic."""
    x = inputs_of(query, values)
    for constraint in query.constraints:
        if not holds(constraint, x):
            return Rejected(f"exact replay: {describe(constraint, x)} does not hold")
    margins = _margins(query, values, None)
    broken = _library_breaks(query, x, margins)
    if broken is not None:
        return Rejected(f"in the arithmetic of the library {broken} does not hold", numerical=True)
    replay = Replay.EMULATED
    if native is not None:
        margins = _margins(query, values, native)
        broken = _library_breaks(query, x, margins)
        if broken is not None:
            return Rejected(f"in the library itself {broken} does not hold", numerical=True)
        replay = Replay.NATIVE
    probabilities = tuple(
        tuple(float(p) for p in np.ravel(query.models[point.model].ensemble.probabilities(row[None, :])))
        for point, row in zip(query.points, margins, strict=True)
    )
    return Witness(
        values=values,
        cells=x.cells,
        margins=tuple(tuple(float(m) for m in row) for row in margins),
        probabilities=probabilities,
        exact=x.scores,
        replay=replay,
        in_band=_inside_band(query, x),
    )


def _margins(query: Query, values: FloatArray, native: Sequence[NativePredict] | None) -> list[NDArray[Any]]:
    rows = []
    for number, point in enumerate(query.points):
        row = values[number : number + 1]
        if native is None:
            rows.append(np.ravel(query.models[point.model].ensemble.margins_emulated(row)))
        else:
            rows.append(np.ravel(native[point.model](row)))
    return rows


def _library_breaks(query: Query, x: Inputs, margins: list[NDArray[Any]]) -> str | None:
    """The first constraint that does not hold with the library's scores; None where all hold."""
    seen = Inputs(x.values, x.cells, scores_of_margins(query, margins))
    for constraint in query.constraints:
        if linear_constraints((constraint,)) and not holds(constraint, seen):
            return describe(constraint, seen)
    return None


def _inside_band(query: Query, x: Inputs) -> bool:
    """Whether some linear constraint holds by less than what the library's sums may be off."""
    bands = [query.models[p.model].ensemble.bands() for p in query.points]
    averages = [query.models[p.model].ensemble.average for p in query.points]
    for constraint in linear_constraints(query.constraints):
        band = sum(
            (abs(t.coefficient) * bands[t.point][t.output] * averages[t.point] for t in constraint.form.scores),
            Fraction(0),
        )
        if constraint.form.scores and abs(slack(constraint, x)[1]) <= float(band):
            return True
    return False


def describe(constraint: Constraint, x: Inputs) -> str:
    """A constraint in a few words, with by how much it fails where that is a number."""
    if isinstance(constraint, AtLeast):
        return f"{constraint.name} (off by {slack(constraint, x)[1]:.3g})"
    return type(constraint).__name__


def concretise(query: Query, cells: Int32Array, near: FloatArray | None = None) -> FloatArray | None:
    """Values for cells: equal where the question says equal, jointly chosen where it relates them; None if impossible.

    Points that agree on a feature get one value. Related features are chosen by trying, for every point, the legal
    candidates of its cell (both ends, the preferred value, and the ends shifted by the bounds of the relation).
    """
    points, features = cells.shape
    values = np.full(cells.shape, np.nan)
    groups = _equal_groups(query, points, features)
    wanted = _preferences(query, points, features, near)
    related = _relations(query.constraints)
    partners: dict[tuple[int, int], list[tuple[Difference, tuple[int, int], bool]]] = {}
    for relation in related:
        left = groups[relation.left, relation.feature]
        right = groups[relation.right, relation.other]
        partners.setdefault(left, []).append((relation, right, True))
        partners.setdefault(right, []).append((relation, left, False))
    chosen: dict[tuple[int, int], float] = {}
    for point in range(points):
        for feature in range(features):
            key = groups[point, feature]
            if key not in chosen and key not in partners:
                preferred = _preferred(wanted, key)
                chosen[key] = pick_value(
                    query.space.domains[feature], query.space.grid[feature], int(cells[key[0], key[1]]), preferred
                )
    if not _choose_related(query, cells, partners, chosen, wanted):
        return None
    for point in range(points):
        for feature in range(features):
            values[point, feature] = chosen[groups[point, feature]]
    return values


def _preferences(query: Query, points: int, features: int, near: FloatArray | None) -> FloatArray:
    """What every value is chosen close to, float64[points, features]; NaN where nothing is preferred.

    An anchor goes before `near`: a bound on the distance to its row holds for the nearest value of the cell only.
    """
    result = np.full((points, features), np.nan)
    if near is not None:
        result[:] = near
    for anchor in query.anchors:
        known = ~np.isnan(anchor.values)
        result[anchor.point, known] = anchor.values[known]
    return result


def _preferred(near: FloatArray, key: tuple[int, int]) -> float | None:
    return None if np.isnan(near[key]) else float(near[key])


def _equal_groups(query: Query, points: int, features: int) -> dict[tuple[int, int], tuple[int, int]]:
    """For every (point, feature) the first one that has to have the same value."""
    parent = {(p, f): (p, f) for p in range(points) for f in range(features)}

    def root(key: tuple[int, int]) -> tuple[int, int]:
        while parent[key] != key:
            key = parent[key]
        return key

    for constraint in query.constraints:
        if isinstance(constraint, SameExcept):
            for f in range(features):
                if f not in constraint.varied:
                    a, b = sorted((root((constraint.left, f)), root((constraint.right, f))))
                    parent[b] = a
    return {key: root(key) for key in parent}


def _relations(constraints: tuple[Constraint, ...]) -> list[Difference]:
    """Relations that must hold; those inside disjunctions are tried too, and judged by the exact replay."""
    found: list[Difference] = []
    for constraint in constraints:
        if isinstance(constraint, Difference):
            found.append(constraint)
        elif isinstance(constraint, AllOf):
            found += _relations(constraint.parts)
        elif isinstance(constraint, AnyOf):
            continue
    return found


def _choose_related(
    query: Query,
    cells: Int32Array,
    partners: dict[tuple[int, int], list[tuple[Difference, tuple[int, int], bool]]],
    chosen: dict[tuple[int, int], float],
    near: FloatArray,
) -> bool:
    """Depth-first choice among candidate values; sets of related features are small."""
    order = list(partners)

    def consistent(key: tuple[int, int], value: float) -> bool:
        for relation, other, is_left in partners[key]:
            if other not in chosen and other != key:
                continue
            against = value if other == key else chosen[other]
            pair = (value, against) if is_left else (against, value)
            if not difference_holds(relation, *pair):
                return False
        return True

    def descend(position: int) -> bool:
        if position == len(order):
            return True
        key = order[position]
        for value in _candidates(query, cells, key, partners[key], chosen, near):
            if consistent(key, value):
                chosen[key] = value
                if descend(position + 1):
                    return True
                del chosen[key]
        return False

    return descend(0)


def _candidates(
    query: Query,
    cells: Int32Array,
    key: tuple[int, int],
    relations: list[tuple[Difference, tuple[int, int], bool]],
    chosen: dict[tuple[int, int], float],
    near: FloatArray,
) -> list[float]:
    point, feature = key
    domain, grid = query.space.domains[feature], query.space.grid[feature]
    cell = int(cells[point, feature])
    if grid.missing and cell == grid.missing_cell:
        return [float("nan")]
    if isinstance(domain, ValueDomain):
        return [float(v) for v in domain.values[grid.cell_of(domain.values) == cell]]
    assert isinstance(domain, RealDomain)
    low, high = cell_range(domain, grid, cell)
    targets = [low, high]
    for relation, other, is_left in relations:
        if other in chosen and not np.isnan(chosen[other]):
            against = Fraction(chosen[other])
            bounds = [bound for bound in (relation.low, relation.high) if bound is not None]
            targets += [float(relation.partner(against, bound, is_left)) for bound in (*bounds, Fraction(0))]
    picked = [pick_value(domain, grid, cell, _preferred(near, key))]
    for target in targets:
        if not np.isfinite(target):
            continue
        for neighbour in (target, float(np.nextafter(target, np.inf)), float(np.nextafter(target, -np.inf))):
            picked += [
                float(step)
                for step in (neighbour, *_float_neighbours(neighbour, grid.number_type))
                if low <= step <= high and (not domain.whole or float(step).is_integer())
            ]
        if domain.whole:
            first, last = whole_range(low, high)
            picked += [float(v) for v in (round(target) - 1, round(target), round(target) + 1) if first <= v <= last]
    return list(dict.fromkeys(picked))


def _float_neighbours(value: float, number_type: Any) -> tuple[float, float, float]:
    kind = number_type.dtype.type
    cast = kind(value)
    return float(cast), float(np.nextafter(cast, kind(np.inf))), float(np.nextafter(cast, kind(-np.inf)))
